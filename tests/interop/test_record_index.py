"""Tables with the record index of JVM Hudi's metadata table: both kinds of writers go by it and keep it."""

from __future__ import annotations

from typing import Any

import pytest
from metadata_turns import name_options
from other_readers import DEADLINE_S, OURS, SCHEMA
from record_places import list_places, read_index
from table_lives import collect

from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.interop

INDEX = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
MOVING = "hoodie.record.index.update.partition.path"
FIRST = [("a", "eu", 1, 1.0, "x"), ("b", "eu", 1, 2.0, "x"), ("c", "us", 1, 3.0, "x"), ("é", "us", 1, 4.0, "x")]


class IndexedTable:
    """One table with a record index that JVM Hudi made.

    Args:
        jvm: Runs JVM Hudi.
        spark: Session of ours.
        path: Of the table.
    """

    kind = "COPY_ON_WRITE"

    def __init__(self, jvm: Any, spark: Any, path: str, *, partitioned_by: str = "region") -> None:
        self.jvm, self.spark, self.path, self.partitioned_by = jvm, spark, path, partitioned_by

    def theirs(self, *rows: tuple[Any, ...], operation: str = "upsert", **changes: str) -> None:
        options = {**name_options(self, operation, changes), **INDEX}
        given = {"rows": [list(row) for row in rows], "schema": SCHEMA, "options": options}
        self.jvm.ask("write", path=self.path, gate="", **given).result(DEADLINE_S)

    def open(self, **changes: str) -> HoodieTable:
        names = {key.replace("__", "."): value for key, value in changes.items()}
        return HoodieTable.load(self.spark, self.path, options={**OURS, "hoodie.index.type": "RECORD_INDEX", **names})

    def frame(self, *rows: tuple[Any, ...]) -> Any:
        return self.spark.createDataFrame(list(rows), SCHEMA)

    def check(self) -> dict[str, tuple[Any, ...]]:
        """The rows by key, once the index is right for each; both readers see the same."""
        table = self.open()
        shown = collect(table.read())
        assert self.jvm.read(table) == shown
        assert self.jvm.read(table, hoodie__metadata__enable="true") == shown
        found = {row[0]: row for row in shown}
        assert len(found) == len(shown), "a key has more than one row"
        assert read_index(table) == list_places(table)
        return found


@pytest.fixture
def table(jvm: Any, spark: Any, path: str) -> IndexedTable:
    made = IndexedTable(jvm, spark, path)
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
    ours.clustering.run()
    table.check()
    table.theirs(("y", "eu", 6, 1.0, "theirs"), ("b", "us", 6, 1.0, "theirs"))
    assert {key: row[1] for key, row in table.check().items() if key in "yb"} == {"y": "us", "b": "eu"}


def test_a_table_without_partitions_has_such_an_index_too(jvm: Any, spark: Any, path: str) -> None:
    table = IndexedTable(jvm, spark, path, partitioned_by="")
    table.theirs(*FIRST)
    table.open().upsert(table.frame(("a", "us", 2, 1.0, "ours"), ("n", "eu", 2, 1.0, "ours")))
    table.theirs(("n", "us", 3, 1.0, "theirs"), ("b", "us", 3, 1.0, "theirs"), ("m", "us", 3, 1.0, "theirs"))
    assert {key: row[4] for key, row in table.check().items()} == {
        "a": "ours", "b": "theirs", "c": "x", "m": "theirs", "n": "theirs", "é": "x",
    }  # fmt: skip
