"""Tables that JVM Hudi makes of Parquet files: both write them in turns, and the files stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from bootstrapped_tables import digest, write_source
from other_readers import DEADLINE_S, ONE_CLOCK, OURS, SCHEMA, THEIRS, Jvm

from hudi_locks.spark import HoodieTable, write
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.interop

WRITE = "hoodie.datasource.write."
KEYGEN = "org.apache.hudi.keygen.SimpleKeyGenerator"
MIXED = {
    "hoodie.bootstrap.mode.selector": "org.apache.hudi.client.bootstrap.selector.BootstrapRegexModeSelector",
    "hoodie.bootstrap.mode.selector.regex": ".*region=(x|y).*",
    "hoodie.bootstrap.mode.selector.regex.mode": "METADATA_ONLY",
}
"""Rows of the third partition are written whole."""
NO_STATISTICS = {"hoodie.metadata.index.column.stats.enable": "false"}
"""JVM Hudi makes none while it makes such a table; those that it makes later say nothing of sources."""
SHOWN = ("_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path", "id", "region", "ts", "value", "label")
Rows = list[tuple[Any, ...]]


def make_rows(first: int) -> pa.Table:
    numbers = range(first, first + 10)
    columns = {"id": [f"k{n:03}" for n in numbers], "ts": [1] * 10, "value": [float(n) for n in numbers]}
    return pa.table({**columns, "label": ["source"] * 10})


class Bench:
    """One table, its source, and who writes and reads it."""

    def __init__(self, spark: Any, jvm: Jvm, path: str, table_type: str) -> None:
        self.spark, self.jvm, self.path, self.source = spark, jvm, path, Path(f"{path}_source")
        write_source(self.source, {f"region={name}": [make_rows(100 * n), make_rows(100 * n + 50)]
                                   for n, name in enumerate(("x", "y", "a:b"))})  # fmt: skip
        (self.source / "region=a:b").rename(self.source / "region=a%3Ab")
        self.before = digest(self.source)
        self.options = {
            **ONE_CLOCK,
            "hoodie.table.name": "t",
            "hoodie.write.table.version": str(jvm.table_version),
            "hoodie.metadata.enable": "true",
            WRITE + "table.type": table_type,
            WRITE + "recordkey.field": "id",
            WRITE + "partitionpath.field": "region",
            WRITE + "precombine.field": "ts",
            WRITE + "hive_style_partitioning": "true",
            WRITE + "partitionpath.urlencode": "true",
        }
        named = {"hoodie.bootstrap.base.path": str(self.source), "hoodie.bootstrap.keygen.class": KEYGEN}
        given = {**self.options, **NO_STATISTICS, **named, **MIXED, WRITE + "keygenerator.class": KEYGEN}
        jvm.ask("bootstrap", path=path, options=given).result(DEADLINE_S)

    def theirs(self, *rows: tuple[Any, ...], operation: str = "upsert") -> None:
        given = {**self.options, **NO_STATISTICS, **THEIRS, WRITE + "operation": operation}
        listed = [list(row) for row in rows]
        self.jvm.ask("write", path=self.path, rows=listed, schema=SCHEMA, options=given, gate="").result(DEADLINE_S)

    def ours(self, *rows: tuple[Any, ...], operation: str = "upsert") -> None:
        given = {**self.options, **OURS, WRITE + "operation": operation}
        write(self.spark.createDataFrame(list(rows), SCHEMA).coalesce(1), self.path, given, mode="append")

    def load(self, **more: str) -> HoodieTable:
        return HoodieTable.load(self.spark, self.path, options={**OURS, **more})

    def read_theirs(self, **options: str) -> Rows:
        asked = {
            "path": self.path,
            "columns": list(SHOWN),
            "options": {k.replace("__", "."): v for k, v in options.items()},
        }
        return sorted((tuple(row) for row in self.jvm.ask("read", **asked).result(DEADLINE_S)), key=repr)

    def read(self) -> Rows:
        """The rows, after both agreed on them, the table was found sound, and the source as it was."""
        table = self.load()
        rows = rows_of(table.read())
        for told in ("true", "false"):
            assert self.read_theirs(hoodie__metadata__enable=told) == rows
        assert verify_table(table.table.storage, reads_values=True).damages == ()
        assert digest(self.source) == self.before
        return rows


def rows_of(frame: Any) -> Rows:
    return sorted((tuple(row) for row in frame.select(*SHOWN).collect()), key=repr)


def keys_of(rows: Rows) -> Rows:
    """Without the partition columns, which incremental queries of JVM Hudi show as folders are called."""
    return sorted((row[0], row[1], *row[5:]) for row in rows)


def count(rows: Rows) -> tuple[int, float]:
    return len(rows), sum(row[6] for row in rows)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_both_write_in_turns_and_show_the_same_rows(spark: Any, jvm: Jvm, path: str, table_type: str) -> None:
    bench = Bench(spark, jvm, path, table_type)
    assert count(bench.read()) == (60, 7770.0)
    first = bench.load().table.timeline().completed_between("")[-1]
    bench.ours(("k000", "x", 2, 1.0, "ours"), ("k250", "a:b", 2, 0.0, "ours"), ("n1", "y", 2, 5.0, "ours"))
    assert count(bench.read()) == (61, 7526.0)
    bench.theirs(("k001", "x", 3, 2.0, "theirs"), ("k100", "y", 3, 0.0, "theirs"), ("n1", "y", 3, 6.0, "theirs"))
    bench.ours(("k002", "x", 9, 0.0, ""), operation="delete")
    assert count(bench.read()) == (60, 7426.0)
    table = bench.load()
    assert rows_of(table.as_of(requested=first.requested)) == bench.read_theirs(as__of__instant=first.requested)
    since = {"hoodie__datasource__read__begin__instanttime": first.completion or ""}
    theirs = bench.read_theirs(hoodie__datasource__query__type="incremental", **since)
    later = [row for row in theirs if row[0] > "1"]  # 1.0.2 shows what was completed just then, too
    assert keys_of(rows_of(table.incremental(first.completion or ""))) == keys_of(later)
    if table_type == "MERGE_ON_READ":
        optimized = {"hoodie__datasource__query__type": "read_optimized"}
        assert rows_of(table.read(read_optimized=True)) == bench.read_theirs(**optimized)
        table.compaction.schedule()
        assert table.compaction.run() is not None
        assert count(bench.read()) == (60, 7426.0)
    assert bench.load().clustering.run() is not None
    assert count(bench.read()) == (60, 7426.0)
    bench.theirs(("k003", "x", 4, 0.0, "theirs"), ("k101", "y", 4, 0.0, "theirs"))
    assert bench.load(**{"hoodie.clean.commits.retained": "1"}).services.clean().deleted
    bench.ours(("k004", "x", 5, 0.0, "ours"))
    assert count(bench.read()) == (60, 7318.0)


def test_ranges_that_we_make_of_sources_hide_no_row_from_the_jvm(spark: Any, jvm: Jvm, path: str) -> None:
    bench = Bench(spark, jvm, path, "COPY_ON_WRITE")
    bench.load().services.make_metadata_table(anew=True)
    bench.theirs(("k000", "x", 2, -1.0, "theirs"))
    asked = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
    for where in ("value > 205", "ts = 2", "value < 5 and ts = 1", "id = 'k155'"):
        told = jvm.ask("read", path=path, options=asked, columns=list(SHOWN), where=where).result(DEADLINE_S)
        assert sorted(map(tuple, told), key=repr) == rows_of(bench.load().read(where=where)) != []


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_jvm_runs_our_plans_and_loses_no_value_of_a_source(
    spark: Any, jvm: Jvm, path: str, table_type: str
) -> None:
    bench = Bench(spark, jvm, path, table_type)
    bench.ours(("k000", "x", 2, 1.0, "ours"))
    if table_type == "MERGE_ON_READ":
        assert bench.load().compaction.schedule() is not None
        jvm.sql(f"call run_compaction(op => 'run', path => '{path}')")
    else:
        assert bench.load().clustering.schedule() is not None
        jvm.cluster(bench.load(), "execute")
    assert count(bench.read()) == (60, 7771.0)
