"""Table services of tables of version 6 by this package, beside JVM Hudi and in turns with its own."""

from __future__ import annotations

from typing import Any

import pytest
from metadata_turns import BY_KEY
from old_turns import OLD, THEIRS, begin
from small_tables import KEEP, THEIR_SERVICES, archive_now, archived

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("jvm", OLD, indirect=True, ids=["0.15.0-v6", "1.2.0-v6"]),
]

OURS = {key.replace(".", "__"): value for key, value in KEEP.items()}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", pytest.param(BY_KEY, marks=pytest.mark.nightly)])
def test_both_archive_in_turns_and_know_what_the_other_archived(spark: Any, jvm: Any, path: str, kind: str) -> None:
    table = begin(jvm, spark, path, kind)
    replaced = [row for row in table.expected if row[1] == "new"]
    table.open().insert_overwrite(table.frame(("o", "new", 3, 0.5, "over")))
    table.expected = sorted([("o", "new", 3, 0.5, "over"), *(r for r in table.expected if r not in replaced)])
    for ts in range(4, 10):  # so many that the JVM compacts its metadata table
        table.theirs(("b", "eu", ts, 3.0, "theirs"), **THEIRS)
    table.open(**OURS).services.clean()
    assert archive_now(table.open(**OURS)) > 0
    ours = archived(table.open())
    assert {action for _, _, action in ours} >= {"commit" if kind == "COPY_ON_WRITE" else "deltacommit"}
    assert jvm.archived(table.open()) == ours
    table.check()

    for ts in range(10, 15):
        table.theirs(("b", "eu", ts, 4.0, "theirs"), **THEIRS, **THEIR_SERVICES)
    theirs = archived(table.open())
    assert len(theirs) > len(ours)
    assert jvm.archived(table.open()) == theirs

    table.ours(("a", "eu", 15, 5.0, "ours"))
    for ts in range(16, 20):
        table.theirs(("m", "us", ts, 4.0, "theirs"), **THEIRS)
    assert archive_now(table.open(**OURS)) > 0
    assert jvm.archived(table.open()) == archived(table.open())
    assert len(archived(table.open())) > len(theirs)
    table.ours(("k", "new", 21, 1.0, "ours"))
    table.theirs(("k", "new", 22, 2.0, "theirs"), **THEIRS, **THEIR_SERVICES)
