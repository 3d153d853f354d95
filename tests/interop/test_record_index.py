"""Tables with the record index of JVM Hudi's metadata table: both kinds of writers go by it and keep it."""

from __future__ import annotations

from typing import Any

import pytest
from metadata_turns import BY_KEY, name_options
from other_readers import DEADLINE_S, OURS, SCHEMA
from record_places import list_places, read_index
from table_lives import collect

from hudi_locks.errors import ConfigError, UnsupportedTable
from hudi_locks.metadata_table import METADATA_LAYOUT
from hudi_locks.services import drop_metadata_table
from hudi_locks.spark import HoodieTable
from hudi_locks.timeline import Timeline
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.interop

INDEX = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
COMPACTING = {"hoodie__compact__inline": "true", "hoodie__compact__inline__max__delta__commits": "1"}
WITHOUT = {"hoodie__write__set__null__for__missing__columns": "true"}
MOVING = "hoodie.record.index.update.partition.path"
FIRST = [("a", "eu", 1, 1.0, "x"), ("b", "eu", 1, 2.0, "x"), ("c", "us", 1, 3.0, "x"), ("é", "us", 1, 4.0, "x")]


class IndexedTable:
    """One table with a record index that JVM Hudi made.

    Args:
        jvm: Runs JVM Hudi.
        spark: Session of ours.
        path: Of the table.
    """

    def __init__(
        self, jvm: Any, spark: Any, path: str, *, kind: str = "COPY_ON_WRITE", partitioned_by: str = "region"
    ) -> None:
        self.jvm, self.spark, self.path, self.kind, self.partitioned_by = jvm, spark, path, kind, partitioned_by

    def theirs(self, *rows: tuple[Any, ...], operation: str = "upsert", **changes: str) -> None:
        options = {**name_options(self, operation, changes), **INDEX}
        given = {"rows": [list(row) for row in rows], "schema": SCHEMA, "options": options}
        self.jvm.ask("write", path=self.path, gate="", **given).result(DEADLINE_S)

    def open(self, **changes: str) -> HoodieTable:
        names = {key.replace("__", "."): value for key, value in changes.items()}
        return HoodieTable.load(self.spark, self.path, options={**OURS, "hoodie.index.type": "RECORD_INDEX", **names})

    def frame(self, *rows: tuple[Any, ...]) -> Any:
        return self.spark.createDataFrame(list(rows), SCHEMA)

    def marked(self, *rows: tuple[Any, ...]) -> Any:
        """Rows that say at their end whether they are deletes."""
        return self.spark.createDataFrame(list(rows), f"{SCHEMA}, _hoodie_is_deleted boolean").coalesce(1)

    def check(self) -> dict[str, tuple[Any, ...]]:
        """The rows by key, once the index is right for each; both readers see the same."""
        table = self.open()
        shown = collect(table.read())
        assert self.jvm.read(table) == shown
        assert self.jvm.read(table, hoodie__metadata__enable="true") == shown
        found = {row[0]: row for row in shown}
        assert len(found) == len(shown), "a key has more than one row"
        assert read_index(table) == list_places(table)
        assert verify_table(table.table.storage, reads_keys=True).damages == ()
        return found

    def make_secondary_index(self, name: str, column: str) -> None:
        """By SQL of the JVM."""
        key = "hoodie.write.lock.provider"
        for statement in (
            f"set {key}=org.apache.hudi.client.transaction.lock.InProcessLockProvider",
            f"create table indexed using hudi location '{self.path}'",
            f"create index {name} on indexed ({column})",
            "drop table indexed",
            f"reset {key}",
        ):
            self.jvm.ask("sql", statement=statement).result(DEADLINE_S)

    def places(self) -> dict[str, str]:
        """The partition of each key, as `check` finds it."""
        return {key: row[1] for key, row in self.check().items()}


@pytest.fixture(params=["COPY_ON_WRITE", BY_KEY], ids=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(jvm: Any, spark: Any, path: str, request: pytest.FixtureRequest) -> IndexedTable:
    made = IndexedTable(jvm, spark, path, kind=request.param)
    made.theirs(*FIRST)
    return made


def test_both_find_the_keys_of_the_other_by_the_index_and_keep_it(table: IndexedTable) -> None:
    table.check()
    ours = table.open()
    ours.upsert(table.frame(("a", "eu", 2, 10.0, "ours"), ("n", "new", 2, 20.0, "ours"), ("c", "eu", 2, 30.0, "ours")))
    found = table.check()
    assert (found["c"][1], found["c"][4]) == ("us", "ours")
    table.theirs(("n", "us", 3, 1.0, "theirs"), ("a", "us", 3, 1.0, "theirs"), ("d", "us", 3, 1.0, "theirs"))
    assert {key: row[1] for key, row in table.check().items()} == {
        "a": "eu", "b": "eu", "c": "us", "d": "us", "n": "new", "é": "us",
    }  # fmt: skip
    ours.delete(table.frame(("b", "anywhere", 9, 0.0, ""), ("d", "eu", 9, 0.0, "")))
    table.check()
    table.theirs(("b", "us", 4, 1.0, "back"), ("d", "new", 4, 1.0, "back"))
    assert table.check()["d"][1:] == ("new", 4, 1.0, "back")
    serving = table.open(hoodie__metadata__compact__max__delta__commits="2")
    serving.insert(table.frame(("i", "eu", 5, 1.0, "ours")))
    assert any(name.endswith(".hfile") for name in ours.table.storage.list_names(".hoodie/metadata/record_index"))
    ours.bulk_insert(table.frame(("k", "bulk", 5, 1.0, "ours"), ("k2", "bulk", 5, 1.0, "ours")))
    table.theirs(("i", "us", 6, 1.0, "theirs"), ("k", "us", 6, 1.0, "theirs"))
    assert table.check()["k"][1] == "bulk"


def test_rows_move_and_file_groups_end_and_the_index_follows(table: IndexedTable) -> None:
    ours = table.open(**{MOVING.replace(".", "__"): "true"})
    ours.upsert(table.frame(("a", "us", 2, 10.0, "moved"), ("b", "new", 0, 0.0, "old"), ("m", "eu", 2, 1.0, "new")))
    found = table.check()
    assert (found["a"][1], found["b"][1]) == ("us", "eu")
    ours.insert_overwrite(table.frame(("b", "eu", 3, 1.0, "again"), ("o", "eu", 3, 1.0, "over")))
    assert sorted(table.check()) == ["a", "b", "c", "o", "é"]
    ours.delete_partitions(["region=us"])
    assert sorted(table.check()) == ["b", "o"]
    table.theirs(("a", "eu", 4, 1.0, "theirs"), ("o", "us", 4, 1.0, "theirs"), ("z", "us", 4, 1.0, "theirs"))
    assert table.check()["o"][1] == "eu"
    ours.upsert(table.frame(("y", "us", 5, 1.0, "ours")))
    (ours.compaction if table.kind == BY_KEY else ours.clustering).run()
    table.check()
    table.theirs(("y", "eu", 6, 1.0, "theirs"), ("b", "us", 6, 1.0, "theirs"))
    assert {key: row[1] for key, row in table.check().items() if key in "yb"} == {"y": "us", "b": "eu"}


@pytest.mark.parametrize("table", [BY_KEY], indirect=True, ids=["MERGE_ON_READ"])
def test_logs_tell_which_keys_they_take_out(table: IndexedTable) -> None:
    ours = table.open()
    ours.upsert(
        table.marked(("a", "eu", 2, 2.0, "ours", False), ("c", "us", 0, 0.0, "", True), ("é", "x", 5, 0.0, "", True))
    )
    assert {key: row[4] for key, row in table.check().items()} == {"a": "ours", "b": "x", "c": "x"}
    table.theirs(("é", "eu", 6, 1.0, "theirs"), ("a", "us", 6, 1.0, "theirs"), ("k", "us", 6, 1.0, "theirs"), **WITHOUT)
    assert table.places() == {"a": "eu", "b": "eu", "c": "us", "k": "us", "é": "eu"}
    ours.delete(table.frame(("k", "us", 0, 0.0, ""), ("b", "eu", 0, 0.0, "")))
    table.theirs(("k", "eu", 7, 1.0, "back"), ("a", "eu", 7, 1.0, "theirs"), **WITHOUT, **COMPACTING)
    assert table.places() == {"a": "eu", "c": "us", "k": "eu", "é": "eu"}
    moving = table.open(**{MOVING.replace(".", "__"): "true"})
    given = [("k", "us", 8, 1.0, "moved", False), ("c", "us", 8, 1.0, "", False), ("b", "us", 8, 1.0, "back", False)]
    moving.upsert(table.marked(*given, ("a", "new", 3, 1.0, "older", True)))
    assert table.places() == {"a": "eu", "b": "us", "c": "us", "k": "us", "é": "eu"}
    ours.insert_overwrite(table.marked(("o", "us", 9, 1.0, "over", False)))
    assert table.places() == {"a": "eu", "o": "us", "é": "eu"}
    back = ("c", "new", 10, 1.0, "theirs"), ("o", "eu", 10, 1.0, "theirs")
    table.theirs(("k", "eu", 10, 1.0, "theirs"), *back, **WITHOUT)
    assert table.places() == {"a": "eu", "c": "new", "k": "eu", "o": "us", "é": "eu"}
    assert ours.clustering.run(sort_by=["ts"]) is not None
    table.theirs(("a", "us", 11, 1.0, "theirs"), ("n", "us", 11, 1.0, "theirs"), **WITHOUT)
    assert table.places() == {"a": "eu", "c": "new", "k": "eu", "n": "us", "o": "us", "é": "eu"}


@pytest.mark.parametrize("table", [BY_KEY], indirect=True, ids=["MERGE_ON_READ"])
def test_an_index_that_looks_into_base_files_alone_is_refused(table: IndexedTable) -> None:
    with pytest.raises(ConfigError, match="SIMPLE does not keep the record index") as caught:
        table.open(hoodie__index__type="SIMPLE").upsert(table.frame(("a", "eu", 2, 1.0, "ours")))
    assert caught.value.facts["value"] == "SIMPLE"
    table.open(hoodie__index__type="GLOBAL_SIMPLE").upsert(table.frame(("a", "us", 2, 1.0, "ours")))
    assert table.check()["a"][1] == "us"  # as this index does by default


def test_a_table_without_partitions_has_such_an_index_too(jvm: Any, spark: Any, path: str) -> None:
    table = IndexedTable(jvm, spark, path, partitioned_by="")
    table.theirs(*FIRST)
    table.open().upsert(table.frame(("a", "us", 2, 1.0, "ours"), ("n", "eu", 2, 1.0, "ours")))
    table.theirs(("n", "us", 3, 1.0, "theirs"), ("b", "us", 3, 1.0, "theirs"), ("m", "us", 3, 1.0, "theirs"))
    assert {key: row[4] for key, row in table.check().items()} == {
        "a": "ours", "b": "theirs", "c": "x", "m": "theirs", "n": "theirs", "é": "x",
    }  # fmt: skip


def test_the_jvm_goes_by_the_index_after_we_restored(table: IndexedTable) -> None:
    ours = table.open()
    before = ours.upsert(table.frame(("a", "eu", 2, 1.0, "ours"), ("n", "us", 2, 1.0, "ours")))
    table.theirs(("n", "us", 3, 1.0, "theirs"), ("m", "new", 3, 1.0, "theirs"))
    assert table.open().services.restore(before.instant).indexed_keys == len(FIRST) + 1
    table.check()
    table.theirs(("n", "eu", 4, 1.0, "theirs"), ("m", "eu", 4, 1.0, "theirs"))
    assert table.places() == {"a": "eu", "b": "eu", "c": "us", "m": "eu", "n": "us", "é": "us"}
    table.open().upsert(table.frame(("m", "us", 5, 1.0, "ours"), ("k", "us", 5, 1.0, "ours")))
    table.check()


@pytest.mark.parametrize("table", [BY_KEY], indirect=True, ids=["MERGE_ON_READ"])
def test_an_index_that_is_dropped_is_made_anew_by_the_jvm(table: IndexedTable) -> None:
    if table.jvm.table_version >= 9:
        table.make_secondary_index("by_label", "label")
        with pytest.raises(UnsupportedTable, match="metadata drop PATH --part secondary_index_by_label"):
            table.open().upsert(table.frame(("a", "eu", 2, 1.0, "ours")))
    gone = drop_metadata_table(table.path, OURS, parts=["record_index"])
    assert gone == ("record_index", *(["secondary_index_by_label"] if table.jvm.table_version >= 9 else []))
    ours = table.open(hoodie__index__type="GLOBAL_SIMPLE")
    before = ours.upsert(table.frame(("a", "eu", 2, 1.0, "ours"), ("n", "us", 2, 1.0, "ours")))
    ours.services.restore(before.instant)
    ours.upsert(table.frame(("b", "eu", 3, 1.0, "ours"), ("m", "us", 3, 1.0, "ours")))
    assert table.jvm.read(ours, hoodie__metadata__enable="true") == collect(ours.read())
    table.theirs(("m", "eu", 4, 1.0, "theirs"), ("k", "us", 4, 1.0, "theirs"))
    assert sorted(table.check()) == ["a", "b", "c", "k", "m", "n", "é"]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", BY_KEY], ids=["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_jvm_goes_by_an_index_that_we_made(jvm: Any, spark: Any, path: str, kind: str) -> None:
    table = IndexedTable(jvm, spark, path, kind=kind)
    create(table)
    ours = table.open(hoodie__index__type="GLOBAL_SIMPLE")
    ours.upsert(table.frame(*FIRST))
    ours.upsert(table.frame(("a", "eu", 2, 10.0, "ours"), ("n", "new", 2, 20.0, "ours")))
    ours.delete(table.frame(("b", "any", 9, 0.0, "")))
    asked = {"hoodie__metadata__record__index__enable": "true", "hoodie__index__type": "GLOBAL_SIMPLE"}
    made = table.open(**asked).services.make_metadata_table()
    assert made is not None
    assert (made.parts[-1], made.keys) == ("record_index", 4)
    table.check()
    table.theirs(("n", "us", 3, 1.0, "theirs"), ("a", "us", 3, 1.0, "theirs"), ("d", "us", 3, 1.0, "theirs"))
    assert table.places() == {"a": "eu", "c": "us", "d": "us", "n": "new", "é": "us"}
    known = {"00000000000000003"} & {
        one.requested for one in Timeline.load(storage_of(table), METADATA_LAYOUT).instants
    }
    assert known, "the JVM made none of its own"
    table.open(hoodie__metadata__compact__max__delta__commits="2").upsert(table.frame(("d", "eu", 4, 1.0, "ours")))
    table.theirs(("d", "eu", 5, 1.0, "theirs"), ("b", "us", 5, 1.0, "theirs"))
    assert table.places() == {"a": "eu", "b": "us", "c": "us", "d": "us", "n": "new", "é": "us"}


def storage_of(table: IndexedTable) -> Any:
    return table.open().table.storage


def create(table: IndexedTable) -> None:
    """As this package makes it, without a metadata table."""
    names: dict[str, Any] = {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts"}
    options = {**OURS, "hoodie.write.table.version": str(table.jvm.table_version)}
    options |= {"hoodie.datasource.write.hive_style_partitioning": "true"}
    kind = "MERGE_ON_READ" if table.kind == BY_KEY else table.kind
    HoodieTable.create(table.spark, table.path, table_type=kind, options=options, **names)
