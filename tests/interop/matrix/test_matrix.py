"""Every kind of table that JVM Hudi makes: joined, or refused by name, as docs/compatibility.md says; never wrong.

HUDI_LOCKS_WRITE_MATRIX=1 writes what is found into that page: `tox -e interop -- -n 0 tests/interop/matrix`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matrix_page import EQUAL, NOT_RUN, find_row, write_row
from matrix_services import serve_table
from other_readers import Jvm
from table_kinds import TABLES
from table_matrix import join_table

pytestmark = pytest.mark.interop

PAGE = Path(__file__).parents[3] / "docs" / "compatibility.md"
WRITES = bool(os.environ.get("HUDI_LOCKS_WRITE_MATRIX"))
ALWAYS = ("copy on write: dates as folders", "merge on read: no partitions")
"""In every run; what the others do is shown by tests of their own, and by the nightly run."""


RELEASES = pytest.mark.parametrize(
    "jvm",
    [
        pytest.param(("0.15.0", 6), marks=pytest.mark.nightly),
        ("1.0.2", 8),
        pytest.param(("1.1.1", 9), marks=pytest.mark.nightly),
        ("1.2.0", 9),
    ],
    indirect=True,
    ids=["0.15.0-v6", "1.0.2-v8", "1.1.1-v9", "1.2.0-v9"],
)
NAMES = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ALWAYS else pytest.mark.nightly) for name in TABLES]
)


@pytest.fixture(scope="session")
def judge(jvm: Jvm) -> Iterator[Jvm | None]:
    """A later release for tables of an early one, which shows names of folders as values of partition columns."""
    if jvm.version >= "1":
        yield None
        return
    agent = Jvm("1.2.0", 9)
    yield agent
    agent.close()


@RELEASES
@NAMES
def test_a_table_is_joined_or_refused_as_the_page_says(
    spark: Any, jvm: Jvm, judge: Jvm | None, path: str, name: str
) -> None:
    found = join_table(spark, jvm, path, name, judge=judge)
    assert "wrong" not in f"{found.read} {found.written}"
    known = find_row(PAGE, name, jvm.version)
    if WRITES:
        write_row(PAGE, name, jvm.version, replace(known, read=found.read, written=found.written))
    assert replace(find_row(PAGE, name, jvm.version), services=found.services) == found


@RELEASES
@NAMES
def test_every_table_service_of_both_leaves_the_rows_as_they_are(
    spark: Any, jvm: Jvm, judge: Jvm | None, path: str, name: str
) -> None:
    known = find_row(PAGE, name, jvm.version)
    found = serve_table(spark, jvm, path, name, judge=judge) if known.written == EQUAL else known.written
    assert "wrong" not in found
    if WRITES:
        write_row(PAGE, name, jvm.version, replace(known, services=found))
    assert find_row(PAGE, name, jvm.version).services in (found, NOT_RUN)


def test_the_page_has_every_table_and_none_is_wrong() -> None:
    rows = [find_row(PAGE, name, "1.2.0") for name in TABLES]
    made = [row for row in rows if not row.read.startswith("not by Hudi")]
    assert all(word == EQUAL or word.startswith("refused: ") for row in made for word in (row.read, row.written))
    assert sum(row.read == EQUAL for row in made) >= 76
    assert sum(row.written == EQUAL for row in made) >= 76
    served = [row.services for row in made if row.services != NOT_RUN]
    assert not [word for word in served if not word.startswith((EQUAL, "refused: "))]
    assert sum(word.startswith(EQUAL) for word in served) >= 78
