"""Folders that are named by formatted times: JVM Hudi and this package name them alike, and find each other's rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from other_readers import COLUMNS, DEADLINE_S, OURS, SCHEMA, THEIRS, Jvm, read_rust

from hudi_locks.spark import HoodieTable, write
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.interop

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "jvm_time_paths.json").read_text(encoding="utf-8"))
GENERATOR, FIELD = "hoodie.datasource.write.keygenerator.class", "hoodie.datasource.write.partitionpath.field"
TIMED = "hoodie.keygen.timebased."
TEXTS = {
    f"{TIMED}timestamp.type": "DATE_STRING",
    f"{TIMED}input.dateformat": "yyyy-MM-dd",
    f"{TIMED}output.dateformat": "yyyy/MM",
}
NUMBERS = {
    f"{TIMED}timestamp.type": "UNIX_TIMESTAMP",
    f"{TIMED}output.dateformat": "yyyy-MM-dd",
    f"{TIMED}timezone": "Asia/Tokyo",
}
KINDS = {
    "texts": {GENERATOR: "org.apache.hudi.keygen.TimestampBasedKeyGenerator", FIELD: "region", **TEXTS},
    "numbers": {GENERATOR: "org.apache.hudi.keygen.TimestampBasedKeyGenerator", FIELD: "ts", **NUMBERS},
    "custom": {
        GENERATOR: "org.apache.hudi.keygen.CustomKeyGenerator",
        FIELD: "region:TIMESTAMP,label:SIMPLE",
        **TEXTS,
        f"{TIMED}output.dateformat": "yyyy-MM",
    },
}
FOLDERS = {
    "texts": {"2024/01", "2024/02", "2024/03"},
    "numbers": {"1970-01-01", "1970-01-02"},
    "custom": {"2024-01/a", "2024-02/b", "2024-03/a"},
}
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
Rows = list[tuple[Any, ...]]


def rows_of(numbers: range, value: float) -> Rows:
    """Rows of three months; a key stays in its folder, and the ordering column is `value`."""
    return [(f"k{n:02}", f"2024-0{n % 3 + 1}-1{n % 7}", 54_000 * (n % 2), value, "ab"[n % 3 % 2]) for n in numbers]


@pytest.fixture
def make_theirs(jvm: Jvm, spark: Any, path: str) -> Callable[..., HoodieTable]:
    """A table of JVM Hudi with its metadata table, opened by us."""

    def make(options: dict[str, str], rows: Rows) -> HoodieTable:
        listed = [list(row) for row in rows]
        jvm.ask("write", path=path, rows=listed, schema=SCHEMA, options=options, gate="").result(DEADLINE_S)
        return HoodieTable.load(spark, path, options={**OURS, **options, "hoodie.write.lock.provider": "filesystem"})

    return make


@pytest.fixture
def all_read(jvm: Jvm) -> Callable[[HoodieTable], Rows]:
    """The rows of a table that is sound, after the JVM with its metadata table and without, and hudi-rs agreed.

    hudi-rs opens no table of a custom generator: it takes `column:TIMESTAMP` for the name of a column.
    """

    def read(table: HoodieTable) -> Rows:
        ours = sorted((tuple(row) for row in table.read().select(*COLUMNS).collect()), key=repr)
        for told in ("true", "false"):
            assert as_typed(jvm.read(table, hoodie__metadata__enable=told)) == ours
        if not table.table.config.partition_kinds:
            assert read_rust(table.path) == ours
        assert verify_table(table.table.storage).damages == ()
        return ours

    return read


def as_typed(rows: Rows) -> Rows:
    """Rows of JVM Hudi, which shows a number that names a folder as text."""
    return [(key, region, int(ts), *rest) for key, region, ts, *rest in rows]


def name_options(jvm: Jvm, kind: str, table_type: str) -> dict[str, str]:
    return {
        **THEIRS,
        **KINDS[kind],
        "hoodie.metadata.enable": "true",
        "hoodie.table.name": "t",
        "hoodie.write.table.version": str(jvm.table_version),
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "value",
        "hoodie.datasource.write.operation": "upsert",
    }


@pytest.mark.parametrize("number", range(len(GOLDEN)))
def test_the_values_that_ours_are_compared_with_are_those_of_the_jvm(jvm: Jvm, number: int) -> None:
    case = GOLDEN[number]
    asked = {"options": case["options"], "kind": case["type"], "values": case["values"]}
    assert jvm.ask("time_paths", **asked).result(DEADLINE_S) == case["paths"]


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_both_write_in_turns(make_theirs: Any, jvm: Jvm, frame: Any, all_read: Any, kind: str, table_type: str) -> None:
    options = name_options(jvm, kind, table_type)
    table = make_theirs(options, rows_of(range(9), 1.0))
    table.upsert(frame(rows_of(range(4, 12), 2.0)))
    assert all_read(table) == rows_of(range(4), 1.0) + rows_of(range(4, 12), 2.0)
    more = [list(row) for row in rows_of(range(10, 15), 3.0)]
    jvm.ask("write", path=table.path, rows=more, schema=SCHEMA, options=options, gate="").result(DEADLINE_S)
    table.delete(frame(rows_of(range(2), 4.0)))
    expected = [*rows_of(range(2, 4), 1.0), *rows_of(range(4, 10), 2.0), *rows_of(range(10, 15), 3.0)]
    assert all_read(table) == expected
    shown = table.read(meta_columns=True).select("_hoodie_partition_path").distinct().collect()
    assert {row[0] for row in shown} == FOLDERS[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_the_jvm_goes_on_with_a_table_that_we_made(
    jvm: Jvm, spark: Any, frame: Any, all_read: Any, path: str, kind: str
) -> None:
    options = name_options(jvm, kind, "COPY_ON_WRITE") | {"hoodie.metadata.enable": "false"}
    ours = {**options, "hoodie.write.lock.provider": "filesystem"}
    write(frame(rows_of(range(9), 1.0)), path, ours)
    more = [list(row) for row in rows_of(range(5, 12), 2.0)]
    jvm.ask("write", path=path, rows=more, schema=SCHEMA, options=options, gate="").result(DEADLINE_S)
    write(frame(rows_of(range(10, 13), 3.0)), path, ours, mode="append")
    table = HoodieTable.load(spark, path)
    assert all_read(table) == rows_of(range(5), 1.0) + rows_of(range(5, 10), 2.0) + rows_of(range(10, 13), 3.0)
