"""Merge-on-read tables as JVM Hudi makes them by default: keys are looked up, and both write in turns.

After each step the JVM with the metadata table, the JVM without it, hudi-rs and our reader show the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bucketed_tables import run_compaction
from metadata_turns import BY_BUCKET, BY_KEY, Shared, serve
from other_readers import COLUMNS
from table_lives import merge

from hudi_locks.format import BaseFileName, LogFileName
from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.interop

BY_THE_JVM = {"hoodie__compact__inline": "true", "hoodie__compact__inline__max__delta__commits": "1"}


def writers_of(path: str, parse: Any) -> set[str]:
    """Instants that made base files or logs."""
    found = (parse(file.name) for file in Path(path).rglob("*") if ".hoodie" not in file.parts)
    return {name.instant for name in found if name is not None}


def test_both_write_logs_and_base_files_in_turns(spark: Any, jvm: Any, path: str) -> None:
    table = Shared(jvm, spark, path, BY_KEY)
    table.theirs(("a", "eu", 1, 1.0, "theirs"), ("b", "eu", 1, 2.0, None), ("c", "us", 1, None, "theirs"))
    table.ours(("a", "eu", 2, 5000.0, "ours"), ("c", "us", 2, -9.0, "ours"))
    table.theirs(("b", "eu", 3, 6000.0, "theirs"), ("n", "eu", 3, 0.0, "theirs"))
    table.ours(("n", "eu", 4, -1.5, "ours"), ("k", "new", 4, -7.5, "ours"), ("m", "us", 4, None, None))
    gone = [row for row in table.expected if row[0] in ("b", "m")]
    table.open().delete(table.frame(*gone))
    table.expected = [row for row in table.expected if row not in gone]
    table.check()
    run_compaction(jvm, table.open(), "schedule")
    table.ours(("a", "eu", 5, 7.0, "beside their plan"), ("b", "eu", 5, 8.0, "again"))
    run_compaction(jvm, table.open(), "execute")
    table.check()
    table.ours(("b", "eu", 6, 9.0, "found in a log"))
    table.theirs(("k", "new", 7, 4001.0, None), ("c", "us", 7, 5.0, "theirs"))
    serve(table)
    table.theirs(("a", "eu", 8, 4500.0, "theirs"), ("z", "last", 8, 1.0, "theirs"), **BY_THE_JVM)
    table.ours(("z", "last", 9, 2.0, "ours"), ("k", "new", 9, 3.0, "ours"))
    rows = [("x", "us", 9, 5500.0, "ours")]
    table.open().insert_overwrite(table.frame(*rows))
    table.expected = merge([row for row in table.expected if row[1] != "us"], rows)
    table.check()
    table.theirs(("x", "us", 10, -3.0, "theirs"), ("c", "us", 10, 1.0, "theirs"))
    assert table.open(hoodie__clean__commits__retained="1").services.clean().deleted
    table.check()
    table.ours(("x", "us", 11, 6.0, "ours"))
    assert min(len(writers_of(path, kind.parse)) for kind in (LogFileName, BaseFileName)) > 1


def test_both_log_to_the_file_groups_that_buckets_have(spark: Any, jvm: Any, path: str) -> None:
    table = Shared(jvm, spark, path, BY_BUCKET)
    table.theirs(("a", "eu", 1, 1.0, "theirs"), ("b", "eu", 1, 2.0, None), ("c", "us", 1, None, "theirs"))
    table.ours(("a", "eu", 2, 5000.0, "ours"), ("k", "new", 2, -7.5, "ours"), ("d", "us", 2, 0.0, "ours"))
    table.theirs(("k", "new", 3, 6000.0, "theirs"), ("n", "new", 3, 0.0, "theirs"), ("d", "us", 3, 1.0, None))
    gone = [row for row in table.expected if row[0] in ("b", "n")]
    table.open().delete(table.frame(*gone))
    table.expected = [row for row in table.expected if row not in gone]
    table.check()
    serve(table)
    table.theirs(("a", "eu", 4, 4500.0, "theirs"), ("b", "eu", 4, 1.0, "theirs"), **BY_THE_JVM)
    table.ours(("b", "eu", 5, 2.0, "ours"), ("c", "us", 5, 3.0, "ours"))
    rows = [("x", "us", 6, 5500.0, "ours")]
    table.open().insert_overwrite(table.frame(*rows))
    table.expected = merge([row for row in table.expected if row[1] != "us"], rows)
    table.check()
    table.theirs(("x", "us", 7, -3.0, "theirs"), ("c", "us", 7, 1.0, "theirs"))
    table.ours(("c", "us", 8, 6.0, "ours"))


def test_the_jvm_goes_on_with_a_table_that_we_made(
    jvm: Any,
    create: Callable[..., HoodieTable],
    frame: Callable[..., Any],
    all_read: Callable[[HoodieTable], list[tuple[Any, ...]]],
) -> None:
    table = create(table_type="MERGE_ON_READ")
    theirs = {"hoodie__datasource__write__table__type": "MERGE_ON_READ", "hoodie__compact__inline": "false"}
    table.upsert(frame([("a", "eu", 1, 1.0, "ours"), ("b", "eu", 1, 1.0, "ours")]))
    table.upsert(frame([("a", "eu", 2, 2.0, "logged")]))
    jvm.write(table, [("b", "eu", 3, 3.0, "theirs"), ("c", "eu", 3, 3.0, "theirs")], **theirs)
    state = [("a", "eu", 2, 2.0, "logged"), ("b", "eu", 3, 3.0, "theirs"), ("c", "eu", 3, 3.0, "theirs")]
    assert all_read(table) == state
    jvm.write(table, [("a", "eu", 9, 9.0, "")], "delete", **theirs)
    table.upsert(frame([("c", "eu", 4, 4.0, "ours"), ("d", "us", 4, 4.0, "ours")]))
    assert all_read(table) == [state[1], ("c", "eu", 4, 4.0, "ours"), ("d", "us", 4, 4.0, "ours")]
    assert [row for row in map(tuple, table.read(read_optimized=True).select(*COLUMNS).collect()) if row[0] == "a"]
    table.compaction.run()
    assert all_read(table) == [state[1], ("c", "eu", 4, 4.0, "ours"), ("d", "us", 4, 4.0, "ours")]
