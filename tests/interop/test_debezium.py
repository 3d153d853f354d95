"""Tables of Debezium's events, with Hudi's payload classes for PostgreSQL and MySQL: both sides make the same."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from other_readers import DEADLINE_S, OURS, THEIRS, Jvm

from hudi_locks.spark import HoodieTable, write

pytestmark = pytest.mark.interop

Row = tuple[Any, ...]
PACKAGE = "org.apache.hudi.common.model.debezium."
UNSENT = "__debezium_unavailable_value"
LSN = "id string, region string, _change_operation_type string, _event_lsn long, a string, b string, n long"
BINLOG = "id string, region string, _change_operation_type string, _event_bin_file string, _event_pos long, a string"
POSTGRES: list[list[Row]] = [
    [
        ("k1", "eu", "c", 10, "a1", "b1", 1),
        ("k2", "eu", "c", 10, "a2", None, 2),
        ("k3", "eu", "c", 10, "a3", "b3", 3),
        ("k6", "eu", "c", 10, UNSENT, "b6", 6),
    ],
    [
        ("k1", "eu", "u", 11, UNSENT, "later", 11),
        ("k2", "eu", "u", 9, "older", "older", 9),
        ("k3", "eu", "d", 12, None, None, None),
        ("k4", "eu", "c", 1, UNSENT, "b4", 4),
        ("k6", "eu", "u", 9, "a6", "older", 9),
    ],
    [
        ("k3", "eu", "u", 11, "back", "back", 3),
        ("k1", "eu", "u", 12, None, UNSENT, None),
        ("k2", "eu", "u", 10, "as old", UNSENT, 2),
        ("k6", "eu", "d", 9, None, None, None),
        ("k4", "eu", "u", 3, "second", UNSENT, 4),
        ("k4", "eu", "u", 2, "first", "first", 4),
        ("k7", "eu", "c", 1, "a7", "b7", 7),
        ("k7", "eu", "u", 2, UNSENT, "later", 8),
    ],
]
MYSQL: list[list[Row]] = [
    [
        ("k1", "eu", "c", "mysql.01", 10, "a1"),
        ("k2", "eu", "c", "mysql.01", 9, "a2"),
        ("k3", "eu", "c", "mysql.01", 1, "a3"),
    ],
    [
        ("k1", "eu", "u", "mysql.02", 1, "later"),
        ("k2", "eu", "u", "mysql.01", 8, "older"),
        ("k3", "eu", "d", "mysql.01", 2, None),
    ],
    [
        ("k1", "eu", "u", "mysql.01", 99, "older"),
        ("k2", "eu", "u", "mysql.01", 10, "later"),
        ("k5", "eu", "c", "mysql.10", 2, "a5"),
    ],
]
CASES = {
    "postgres": ("PostgresDebeziumAvroPayload", "_event_lsn", LSN, POSTGRES),
    "mysql": ("MySqlDebeziumAvroPayload", "_event_bin_file,_event_pos", BINLOG, MYSQL),
}


class Events:
    """A table of such events, as writers of both kinds reach it."""

    def __init__(self, jvm: Jvm, spark: Any, path: str, database: str, kind: str) -> None:
        payload, ordering, self.schema, self.steps = CASES[database]
        self.jvm, self.spark, self.path = jvm, spark, path
        self.options = {
            "hoodie.table.name": "t",
            "hoodie.write.table.version": str(jvm.table_version),
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.payload.class": PACKAGE + payload,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "region",
            "hoodie.datasource.write.precombine.field": ordering,
            "hoodie.metadata.enable": "false",
        }

    @property
    def columns(self) -> list[str]:
        return [column.split()[0] for column in self.schema.split(", ")]

    def theirs(self, rows: list[Row]) -> None:
        listed = [list(row) for row in rows]
        asked = {"rows": listed, "schema": self.schema, "options": {**THEIRS, **self.options}, "gate": ""}
        self.jvm.ask("write", path=self.path, **asked).result(DEADLINE_S)

    def ours(self, rows: list[Row]) -> None:
        frame = self.spark.createDataFrame(rows, self.schema).coalesce(1)
        write(frame, self.path, {**self.options, **OURS}, mode="append")

    def read(self) -> list[Row]:
        """The rows, after both readers agreed on them."""
        told = self.jvm.ask("read", path=self.path, options={}, columns=self.columns).result(DEADLINE_S)
        with HoodieTable.load(self.spark, self.path, options=OURS) as table:
            found = sorted((tuple(row) for row in table.read().select(*self.columns).collect()), key=repr)
        assert sorted(map(tuple, told), key=repr) == found
        return found


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("jvm", "database"),
    [
        pytest.param(("0.15.0", 6), "postgres", marks=pytest.mark.nightly),
        (("1.0.2", 8), "postgres"),
        (("1.2.0", 9), "postgres"),
        (("1.2.0", 9), "mysql"),
    ],
    indirect=["jvm"],
)
def test_both_make_the_same_of_the_same_events(jvm: Jvm, spark: Any, tmp_path: Path, database: str, kind: str) -> None:
    theirs, ours = (Events(jvm, spark, str(tmp_path / name), database, kind) for name in ("theirs", "ours"))
    theirs.theirs(theirs.steps[0])
    shutil.copytree(theirs.path, ours.path)
    for rows in theirs.steps[1:]:
        theirs.theirs(rows)
        ours.ours(rows)
        assert ours.read() == theirs.read(), rows
    made = Events(jvm, spark, str(tmp_path / "made"), database, kind)
    for write_rows, rows in zip((made.ours, made.theirs, made.ours), made.steps, strict=True):
        write_rows(rows)  # the JVM goes on with a table that we made
    assert made.read() == theirs.read()
