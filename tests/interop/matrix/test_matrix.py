"""Every kind of table that JVM Hudi makes: joined, or refused by name, as docs/compatibility.md says; never wrong.

HUDI_LOCKS_WRITE_MATRIX=1 writes what is found into that page: `tox -e interop -- -n 0 tests/interop/matrix`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from other_readers import Jvm
from table_matrix import EQUAL, TABLES, find_row, join_table, write_row

pytestmark = pytest.mark.interop

PAGE = Path(__file__).parents[3] / "docs" / "compatibility.md"
WRITES = bool(os.environ.get("HUDI_LOCKS_WRITE_MATRIX"))
ALWAYS = ("copy on write: dates as folders", "merge on read: no partitions")
"""In every run; what the others do is shown by tests of their own, and by the nightly run."""


@pytest.fixture(scope="session")
def judge(jvm: Jvm) -> Iterator[Jvm | None]:
    """A later release for tables of an early one, which shows names of folders as values of partition columns."""
    if jvm.version >= "1":
        yield None
        return
    agent = Jvm("1.2.0", 9)
    yield agent
    agent.close()


@pytest.mark.parametrize(
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
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ALWAYS else pytest.mark.nightly) for name in TABLES]
)
def test_a_table_is_joined_or_refused_as_the_page_says(
    spark: Any, jvm: Jvm, judge: Jvm | None, path: str, name: str
) -> None:
    found = join_table(spark, jvm, path, name, judge=judge)
    assert "wrong" not in f"{found.read} {found.written}"
    if WRITES:
        write_row(PAGE, name, jvm.version, found)
    assert find_row(PAGE, name, jvm.version) == found


def test_the_page_has_every_table_and_none_is_wrong() -> None:
    rows = [find_row(PAGE, name, "1.2.0") for name in TABLES]
    made = [row for row in rows if not row.read.startswith("not by Hudi")]
    assert all(word == EQUAL or word.startswith("refused: ") for row in made for word in (row.read, row.written))
    assert sum(row.read == EQUAL for row in made) >= 76
    assert sum(row.written == EQUAL for row in made) >= 76
