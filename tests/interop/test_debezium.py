"""Tables of Debezium's events, with Hudi's payload classes for PostgreSQL and MySQL: both sides make the same."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from other_readers import DEADLINE_S, OURS, THEIRS, Jvm

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import decode_properties
from hudi_locks.services import downgrade_table, upgrade_table
from hudi_locks.spark import HoodieTable, write
from hudi_locks.table import PROPERTIES_PATH

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
PLACED = "id string, region string, _change_operation_type string, _event_seq string, a string"
PLACES: list[list[Row]] = [
    [
        ("k1", "eu", "c", "000001.10", "a1"),
        ("k2", "eu", "c", "000001.90", "a2"),
        ("k3", "eu", "c", "000001.11", "a3"),
        ("k4", "eu", "c", "000002.50", "a4"),
    ],
    [
        ("k1", "eu", "u", "000002.11", "later file"),
        ("k2", "eu", "u", "000001.80", "older"),
        ("k3", "eu", "d", "000001.12", None),
        ("k4", "eu", "u", "000002.70", "second"),
        ("k4", "eu", "u", "000002.60", "first"),
    ],
    [
        ("k1", "eu", "u", "000001.99", "earlier file"),
        ("k2", "eu", "u", "000001.95", "later"),
        ("k3", "eu", "c", "000002.10", "back"),
        ("k4", "eu", "d", "000003.10", None),
        ("k5", "eu", "c", "000009.10", "a5"),
    ],
]
"""Of the same order as texts and as numbers, without deletes that come late: all releases agree."""
LATE: list[list[Row]] = [
    [
        ("k1", "eu", "c", "000001.5", "a1"),
        ("k2", "eu", "c", "1.10", "a2"),
        ("k3", "eu", "c", "000009.1", "a3"),
        ("k4", "eu", "c", "1.7", "a4"),
        ("k5", "eu", "c", "1.5", "a5"),
        ("k6", "eu", "c", "1.1", "a6"),
        ("k7", "eu", "c", "1.1", "a7"),
        ("k8", "eu", "c", "1.5", "a8"),
    ],
    [
        ("k1", "eu", "u", "000001.10", "later"),
        ("k2", "eu", "u", "1.9", "older"),
        ("k3", "eu", "u", "10.1", "later file"),
        ("k4", "eu", "d", "1.5", None),
        ("k5", "eu", "d", "1.8", None),
        ("k6", "eu", "u", "1.10", "later"),
        ("k6", "eu", "u", "1.5", "older"),
        ("k7", "eu", "u", "1.9", "later"),
        ("k8", "eu", "u", "1.5", "as old"),
    ],
    [
        ("k4", "eu", "u", "1.6", "behind a delete, and older than the base file"),
        ("k5", "eu", "u", "1.7", "behind a newer delete"),
        ("k6", "eu", "u", "1.9", "older"),
        ("k7", "eu", "d", "1.7", None),
        ("k8", "eu", "D", "1.6", None),
        ("k9", "eu", "c", "1.2", "a9"),
    ],
]
LOGGED = {"hoodie.parquet.small.file.limit": "0"}
"""New rows go to files of their own, and updates to logs; else the JVM writes a small base file anew with both."""
CASES = {
    "postgres": ("PostgresDebeziumAvroPayload", "_event_lsn", LSN, POSTGRES),
    "mysql": ("MySqlDebeziumAvroPayload", "_event_bin_file,_event_pos", BINLOG, MYSQL),
    "places": ("MySqlDebeziumAvroPayload", "_event_seq", PLACED, PLACES),
    "late places": ("MySqlDebeziumAvroPayload", "_event_seq", PLACED, LATE),
}


class Events:
    """A table of such events, as writers of both kinds reach it."""

    def __init__(self, jvm: Jvm, spark: Any, path: str, database: str, kind: str, version: int | None = None) -> None:
        payload, ordering, self.schema, self.steps = CASES[database]
        self.jvm, self.spark, self.path = jvm, spark, path
        self.options = {
            "hoodie.table.name": "t",
            "hoodie.write.table.version": str(version or jvm.table_version),
            **(LOGGED if "places" in database else {}),
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

    def compact_ours(self) -> None:
        with HoodieTable.load(self.spark, self.path, options=OURS) as table:
            table.compaction.schedule()
            assert table.compaction.run() is not None

    def compact_theirs(self) -> None:
        told = {key: value for key, value in self.options.items() if "." in key and "," not in value}
        given = ",".join(
            f"{key}={value}" for key, value in {**told, "hoodie.compact.inline.max.delta.commits": "1"}.items()
        )
        for op in ("schedule", "execute"):
            self.jvm.sql(f"call run_compaction(path => '{self.path}', op => '{op}', options => '{given}')")

    def read(self) -> list[Row]:
        """The rows, after both readers agreed on them."""
        told = self.jvm.ask("read", path=self.path, options={}, columns=self.columns).result(DEADLINE_S)
        with HoodieTable.load(self.spark, self.path, options=OURS) as table:
            found = sorted((tuple(row) for row in table.read().select(*self.columns).collect()), key=repr)
        assert sorted(map(tuple, told), key=repr) == found
        return found


KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]


def play(jvm: Jvm, spark: Any, tmp_path: Path, *case: Any) -> tuple[Events, Events]:
    """Tables that the JVM wrote alone, and both in turns, of which both show the same after every step."""
    theirs, ours = (Events(jvm, spark, str(tmp_path / name), *case) for name in ("theirs", "ours"))
    theirs.theirs(theirs.steps[0])
    shutil.copytree(theirs.path, ours.path)
    for rows in theirs.steps[1:]:
        theirs.theirs(rows)
        ours.ours(rows)
        assert ours.read() == theirs.read(), rows
    made = Events(jvm, spark, str(tmp_path / "made"), *case)
    for write_rows, rows in zip((made.ours, made.theirs, made.ours), made.steps, strict=True):
        write_rows(rows)  # the JVM goes on with a table that we made
    assert made.read() == theirs.read()
    return theirs, made


@pytest.mark.parametrize("kind", KINDS)
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
    play(jvm, spark, tmp_path, database, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("jvm", "database", "version"),
    [
        pytest.param(("0.15.0", 6), "places", 6, marks=pytest.mark.nightly),
        (("1.0.2", 8), "places", 8),
        (("1.2.0", 9), "late places", 8),
        pytest.param(("1.2.0", 9), "late places", 6, marks=pytest.mark.nightly),
    ],
    indirect=["jvm"],
)
def test_events_of_mysql_are_ordered_by_their_places_below_version_9(
    jvm: Jvm, spark: Any, tmp_path: Path, database: str, version: int, kind: str
) -> None:
    theirs, made = play(jvm, spark, tmp_path, database, kind, version)
    if kind == KINDS[1]:
        before = theirs.read()
        theirs.compact_ours()
        made.compact_theirs()
        assert made.read() == theirs.read() == before


BOTH = f"{BINLOG}, _event_seq string"
MERGED_BY = ("hoodie.record.merge", "hoodie.table.ordering", "hoodie.table.precombine", "payload")
"""What keys hold that say how rows of a key are merged."""
VERSION = "hoodie.table.version"
UNSAID = "hoodie.record.merge.strategy.id"
"""What follows from the merge mode; the JVM writes it on the way from version 8 to 9, and not on that from 6."""


def add_places(rows: list[Row]) -> list[Row]:
    return [(*row, f"{row[3].rpartition('.')[2]}.{row[4]}") for row in rows]


def describe(path: str) -> dict[str, str]:
    told = decode_properties(Path(path, PROPERTIES_PATH).read_bytes(), PROPERTIES_PATH)
    said = {key: value for key, value in told.items() if any(word in key for word in MERGED_BY)}
    return {key: value for key, value in said.items() if key != UNSAID or told[VERSION] == "8"}


@pytest.mark.parametrize("jvm", [("1.2.0", 9)], indirect=True, ids=["1.2.0-v9"])
@pytest.mark.parametrize("version", [8, 6])
def test_a_table_of_another_version_says_what_the_jvm_makes_of_it(
    jvm: Jvm, spark: Any, tmp_path: Path, version: int
) -> None:
    ours = Events(jvm, spark, str(tmp_path / "ours"), "places", KINDS[0], version)
    ours.schema, before = BOTH, [add_places(rows) for rows in MYSQL]
    ours.theirs(before[0])
    theirs = shutil.copytree(ours.path, tmp_path / "theirs")
    assert upgrade_table(ours.path, {"hoodie.write.lock.provider": "filesystem"}).after == 9
    name = f"events_{version}"  # by which procedures of the JVM know a table
    jvm.sql(f"create table {name} using hudi location '{theirs}'")
    jvm.sql(f"call upgrade_table(table => '{name}', to_version => 'NINE')")
    assert describe(ours.path) == describe(str(theirs))
    ours.options["hoodie.write.table.version"] = "9"
    ours.options["hoodie.datasource.write.precombine.field"] = CASES["mysql"][1]
    ours.ours(before[1])
    ours.theirs(before[2])
    shown = {row[0]: row[5] for row in ours.read()}
    assert shown == {"k1": "later", "k2": "later", "k5": "a5"}
    assert downgrade_table(ours.path, {"hoodie.write.lock.provider": "filesystem"}, to=8).after == 8
    jvm.sql(f"call downgrade_table(table => '{name}', to_version => 'EIGHT')")
    jvm.sql(f"drop table {name}")
    assert describe(ours.path).items() >= describe(str(theirs)).items()
    assert [row[0] for row in ours.read()] == ["k1", "k2", "k5"]


@pytest.mark.parametrize("jvm", [("1.2.0", 9)], indirect=True, ids=["1.2.0-v9"])
def test_an_upgrade_needs_the_columns_that_decide_then(jvm: Jvm, spark: Any, tmp_path: Path) -> None:
    table = Events(jvm, spark, str(tmp_path / "ours"), "places", KINDS[0], 8)
    table.theirs(table.steps[0])
    with pytest.raises(UnsupportedTable, match="the table has no column _event_bin_file, _event_pos"):
        upgrade_table(table.path, {"hoodie.write.lock.provider": "filesystem"})
