"""Tables with change data capture: CDC queries of JVM Hudi find each change once, whoever made it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from other_readers import COLUMNS, DEADLINE_S, OURS, SCHEMA, THEIRS, Jvm, read_rust

from hudi_locks.spark import HoodieTable, Operation
from hudi_locks.spark import read as read_by_options
from hudi_locks.table import list_data_files
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.interop

WRITE = "hoodie.datasource.write."
CDC_QUERY = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
    "hoodie.datasource.read.begin.instanttime": "0",
}
CHANGE_LOG = ("ts_ms", "op", "before", "after")
CASES = [
    ("COPY_ON_WRITE", "OP_KEY_ONLY", {}),
    ("COPY_ON_WRITE", "DATA_BEFORE", {"hoodie.index.type": "GLOBAL_SIMPLE"}),
    ("COPY_ON_WRITE", "DATA_BEFORE_AFTER", {"hoodie.metadata.enable": "false"}),
    ("MERGE_ON_READ", "DATA_BEFORE_AFTER", {}),
    ("MERGE_ON_READ", "OP_KEY_ONLY", {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}),
]
Row = tuple[Any, ...]
Change = tuple[str, str, "float | None", "float | None"]
"""Op, key, and the value before and after."""


def make_options(jvm: Jvm, table_type: str, mode: str, more: dict[str, str]) -> dict[str, str]:
    return {
        **THEIRS,
        "hoodie.table.name": "t",
        "hoodie.write.table.version": str(jvm.table_version),
        "hoodie.metadata.enable": "true",
        WRITE + "table.type": table_type,
        WRITE + "recordkey.field": "id",
        WRITE + "partitionpath.field": "region",
        WRITE + "precombine.field": "ts",
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": mode,
        **more,
    }


@pytest.fixture
def theirs(jvm: Jvm, path: str) -> Callable[..., None]:
    """A write of the JVM."""

    def put(options: dict[str, str], rows: list[Row], operation: str = "upsert") -> None:
        given = {**options, WRITE + "operation": operation}
        listed = [list(row) for row in rows]
        jvm.ask("write", path=path, rows=listed, schema=SCHEMA, options=given, gate="").result(DEADLINE_S)

    return put


def query_changes(jvm: Jvm, path: str) -> list[list[Change]]:
    """The changes of each write, in the order of the writes."""
    columns = ["ts_ms", "op"]
    columns += [f"get_json_object({row}, '$.{name}')" for row in ("before", "after") for name in ("id", "value")]
    found: dict[str, list[Change]] = {}
    for time, op, old, was, new, now in jvm.ask("read", path=path, options=CDC_QUERY, columns=columns).result(
        DEADLINE_S
    ):
        numbers = (None if text is None else float(text) for text in (was, now))
        found.setdefault(time, []).append((op, new or old, *numbers))
    return [sorted(found[time], key=repr) for time in sorted(found)]


@pytest.mark.parametrize(("table_type", "mode", "more"), CASES, ids=["-".join(case[:2]) for case in CASES])
def test_changes_of_both_are_found_by_cdc_queries(
    spark: Any, jvm: Jvm, theirs: Any, path: str, table_type: str, mode: str, more: dict[str, str]
) -> None:
    options = make_options(jvm, table_type, mode, more)
    theirs(options, [(f"k{n}", "ab"[n % 2], 1, float(n), "x") for n in range(6)])
    table = HoodieTable.load(spark, path, options={**OURS, **more})

    def ours(operation: str, *rows: Row) -> None:
        table.write(Operation(operation), spark.createDataFrame(list(rows), SCHEMA).coalesce(1))

    ours("upsert", ("k0", "a", 2, 10.0, "y"), ("k1", "b", 0, 11.0, "late"), ("n1", "a", 1, 100.0, "new"))
    theirs(options, [("k0", "a", 3, 20.0, "z"), ("n2", "b", 1, 200.0, "new")])
    ours("delete", ("k2", "a", 9, 0.0, ""))
    theirs(options, [("k3", "b", 9, 0.0, "")], "delete")
    ours("insert", ("n3", "a", 1, 300.0, "new"))
    told = query_changes(jvm, path)
    assert told == [
        [("i", f"k{n}", None, float(n)) for n in range(6)],
        [("i", "n1", None, 100.0), ("u", "k0", 0.0, 10.0)],
        [("i", "n2", None, 200.0), ("u", "k0", 10.0, 20.0)],
        [("d", "k2", 2.0, None)],
        [("d", "k3", 3.0, None)],
        [("i", "n3", None, 300.0)],
    ]
    asked = {"path": path, "options": CDC_QUERY, "columns": CHANGE_LOG}
    shown = read_by_options(spark, path, CDC_QUERY).select(*CHANGE_LOG).collect()
    assert list_change_log(shown) == list_change_log(jvm.ask("read", **asked).result(DEADLINE_S))
    rows = sorted((tuple(row) for row in table.read().select(*COLUMNS).collect()), key=repr)
    assert sorted((row[0], row[3]) for row in rows) == sorted(_replay(told).items())
    for metadata in ("true", "false"):
        assert jvm.read(table, hoodie__metadata__enable=metadata) == rows
    assert read_rust(path) == rows
    assert verify_table(table.table.storage).damages == ()


def list_change_log(rows: Iterable[Any]) -> list[tuple[Any, ...]]:
    """As a CDC query shows it, in an order of its own: JVM Hudi has the meta columns of some rows and not of others."""
    return sorted(((time, op, *map(_read_image, images)) for time, op, *images in rows), key=repr)


def _read_image(text: str | None) -> dict[str, Any] | None:
    found = json.loads(text or "null")
    return found and {name: value for name, value in found.items() if not name.startswith("_hoodie_")}


def _replay(told: list[list[Change]]) -> dict[str, float | None]:
    rows = {key: now for changes in told for _, key, _, now in changes}
    return {key: value for key, value in rows.items() if value is not None}


def test_a_clean_of_either_takes_change_logs_and_their_names(spark: Any, jvm: Jvm, theirs: Any, path: str) -> None:
    options = make_options(jvm, "COPY_ON_WRITE", "DATA_BEFORE_AFTER", {})
    never = {"hoodie.clean.automatic": "false"}
    theirs({**options, **never}, [("k", "a", 1, 1.0, "x")])
    table = HoodieTable.load(spark, path, options={**OURS, **never, "hoodie.clean.commits.retained": "1"})
    for ts in range(2, 7):
        rows = [("k", "a", ts, float(ts), "x")]
        if ts % 2:
            theirs({**options, **never}, rows)
        else:
            table.upsert(spark.createDataFrame(rows, SCHEMA))
    theirs({**options, "hoodie.clean.commits.retained": "3"}, [("k", "a", 7, 7.0, "x")])
    assert len(list_data_files(table.table.storage).change_logs) == 4
    assert verify_table(table.table.storage).damages == ()
    table.services.clean()
    assert len(list_data_files(table.table.storage).change_logs) == 2
    for metadata in ("true", "false"):
        assert jvm.read(table, hoodie__metadata__enable=metadata) == [("k", "a", 7, 7.0, "x")]
    assert verify_table(table.table.storage).damages == ()
