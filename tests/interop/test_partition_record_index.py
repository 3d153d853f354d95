"""Tables with the record index by partition of JVM Hudi 1.1 and later: both kinds of writers go by it and keep it.

JVM writers run their timeline server here, as by default: without it release 1.2.0 fails at an update of such a table
(`NullPointerException` in `HoodieAvroFileReaderFactory`). None of their writes has a key that is new in one partition
and present in another: of such a write releases 1.1.1 and 1.2.0 lose the row that is new.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from metadata_turns import BY_KEY, name_options
from other_readers import COLUMNS, DEADLINE_S, OURS, SCHEMA
from record_places import list_places_by_partition, read_index_by_partition
from table_lives import collect

from hudi_locks.errors import WriteError
from hudi_locks.spark import HoodieTable
from hudi_locks.verification import verify_table

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize(
        "jvm",
        [pytest.param(("1.1.1", 9), marks=pytest.mark.nightly), ("1.2.0", 9)],
        indirect=True,
        ids=["1.1.1-v9", "1.2.0-v9"],
    ),
]
INDEX = {"hoodie.index.type": "RECORD_LEVEL_INDEX", "hoodie.metadata.record.level.index.enable": "true"}
COMPACTING = {"hoodie__compact__inline": "true", "hoodie__compact__inline__max__delta__commits": "1"}
CLUSTERING = {"hoodie__clustering__inline": "true", "hoodie__clustering__inline__max__commits": "1"}
LEAST = "hoodie__metadata__record__level__index__min__filegroup__count"
Row = tuple[str, str, int, float, str]
FIRST = [("a", "eu", 1, 1.0, "x"), ("b", "eu", 1, 2.0, "x"), ("c", "us", 1, 3.0, "x"), ("é", "us", 1, 4.0, "x")]


class IndexedTable:
    """One table with a record index by partition, and the rows that must be there.

    Args:
        jvm: Runs JVM Hudi.
        spark: Session of ours.
        path: Of the table.
    """

    def __init__(self, jvm: Any, spark: Any, path: str, *, kind: str, partitioned_by: str = "region") -> None:
        self.jvm, self.spark, self.path, self.kind, self.partitioned_by = jvm, spark, path, kind, partitioned_by
        self.rows: dict[tuple[str, str], Row] = {}

    def theirs(self, *rows: Row, operation: str = "upsert", **changes: str) -> None:
        options = {**name_options(self, operation, changes), **INDEX, "hoodie.embed.timeline.server": "true"}
        given = {"rows": [list(row) for row in rows], "schema": SCHEMA, "options": options}
        self.jvm.ask("write", path=self.path, gate="", **given).result(DEADLINE_S)
        self.note(*(rows if operation == "upsert" else ()))

    def note(self, *rows: Row) -> None:
        self.rows |= {(row[1], row[0]): row for row in rows}

    def drop(self, *places: tuple[str, str]) -> None:
        for place in places:
            del self.rows[place]

    def open(self, **changes: str) -> HoodieTable:
        names = {key.replace("__", "."): value for key, value in changes.items()}
        options = {**OURS, "hoodie.clean.automatic": "false", "hoodie.index.type": "RECORD_LEVEL_INDEX", **names}
        return HoodieTable.load(self.spark, self.path, options=options)

    def ours(self, *rows: Row, **changes: str) -> None:
        self.open(**changes).upsert(self.frame(*rows))
        self.note(*rows)

    def frame(self, *rows: Row) -> Any:
        return self.spark.createDataFrame(list(rows), SCHEMA).coalesce(1)

    def check(self) -> None:
        """All readers see the rows, and the index says where each is."""
        table, expected = self.open(), sorted(self.rows.values())
        assert collect(table.read()) == expected
        for told in ("true", "false"):
            assert self.jvm.read(table, hoodie__metadata__enable=told) == expected
        assert read_index_by_partition(table) == list_places_by_partition(table)
        assert verify_table(table.table.storage, reads_keys=True).damages == ()


@pytest.fixture(params=["COPY_ON_WRITE", BY_KEY], ids=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(jvm: Any, spark: Any, path: str, request: pytest.FixtureRequest) -> IndexedTable:
    made = IndexedTable(jvm, spark, path, kind=request.param)
    made.theirs(*FIRST)
    return made


def test_both_find_the_keys_of_the_other_by_the_index_and_keep_it(table: IndexedTable) -> None:
    table.check()
    table.ours(
        ("a", "eu", 2, 10.0, "ours"),
        ("n", "new", 2, 20.0, "ours"),
        ("c", "eu", 2, 30.0, "ours"),
        ("c", "us", 2, 1.0, "ours"),
    )
    table.check()
    table.theirs(("n", "new", 3, 1.0, "theirs"), ("a", "eu", 3, 1.0, "theirs"), ("c", "eu", 3, 1.0, "theirs"))
    table.check()
    table.theirs(("a", "us", 3, 1.0, "theirs"), ("d", "odd/%x_y-z", 3, 1.0, "theirs"))
    table.check()
    table.open().delete(table.frame(("c", "us", 9, 0.0, ""), ("c", "new", 9, 0.0, ""), ("d", "odd/%x_y-z", 9, 0.0, "")))
    table.drop(("us", "c"), ("odd/%x_y-z", "d"))
    table.check()
    table.theirs(("c", "us", 10, 1.0, "back"), ("d", "odd/%x_y-z", 10, 1.0, "back"))
    table.check()
    table.theirs(("a", "us", 11, 0.0, ""), operation="delete")
    table.drop(("us", "a"))
    table.ours(
        ("a", "us", 12, 1.0, "ours"), ("c", "us", 12, 1.0, "ours"), hoodie__metadata__compact__max__delta__commits="2"
    )
    storage = table.open().table.storage
    assert any(name.endswith(".hfile") for name in storage.list_names(".hoodie/metadata/record_index"))
    table.theirs(("a", "us", 13, 1.0, "theirs"), ("c", "us", 13, 1.0, "theirs"), ("n", "new", 13, 1.0, "theirs"))
    table.check()


def test_file_groups_end_and_the_index_follows(table: IndexedTable) -> None:
    ours = table.open()
    ours.insert_overwrite(table.frame(("b", "eu", 3, 1.0, "again"), ("o", "eu", 3, 1.0, "over")))
    table.drop(("eu", "a"))
    table.note(("b", "eu", 3, 1.0, "again"), ("o", "eu", 3, 1.0, "over"))
    ours.delete_partitions(["region=us"])
    table.drop(("us", "c"), ("us", "é"))
    table.check()
    table.theirs(("a", "eu", 4, 1.0, "theirs"), ("o", "eu", 4, 1.0, "theirs"))
    table.theirs(("b", "us", 4, 1.0, "theirs"), ("é", "us", 4, 1.0, "theirs"))
    table.check()
    table.ours(("b", "us", 5, 1.0, "ours"))
    serving = table.open(hoodie__compact__inline__max__delta__commits="1")
    done = serving.compaction.run() if table.kind == BY_KEY else serving.clustering.run(sort_by=["ts"])
    assert done is not None
    table.ours(("y", "us", 5, 1.0, "ours"), ("o", "eu", 5, 1.0, "ours"))
    table.check()
    table.theirs(
        ("y", "us", 6, 1.0, "theirs"),
        ("b", "us", 6, 1.0, "theirs"),
        **(COMPACTING if table.kind == BY_KEY else CLUSTERING),
    )
    table.check()
    table.theirs(("w", "eu", 7, 1.0, "over"), ("o", "eu", 7, 1.0, "over"), operation="insert_overwrite")
    table.drop(("eu", "a"), ("eu", "b"))
    table.note(("w", "eu", 7, 1.0, "over"), ("o", "eu", 7, 1.0, "over"))
    table.ours(("a", "eu", 8, 1.0, "ours"), ("w", "eu", 8, 1.0, "ours"), ("y", "us", 8, 1.0, "ours"))
    table.check()
    table.theirs(operation="delete_partition", hoodie__datasource__write__partitions__to__delete="region=us")
    table.drop(*[place for place in table.rows if place[0] == "us"])
    table.ours(("y", "us", 9, 1.0, "ours"), ("w", "us", 9, 1.0, "ours"))
    table.check()
    table.theirs(("y", "us", 10, 1.0, "theirs"), ("w", "us", 10, 1.0, "theirs"), ("w", "eu", 10, 1.0, "theirs"))
    table.check()


def test_keys_of_a_partition_are_spread_as_the_writer_that_began_it_says(table: IndexedTable) -> None:
    three = {LEAST: "3"}
    many = [(f"k{n:02}", "many", 2, float(n), "ours") for n in range(20)]
    table.ours(*many, ("b", "few", 2, 1.0, "ours"), **three)
    table.check()
    table.theirs(*((key, path, 3, 1.0, "theirs") for key, path, *_ in many[5:]), ("b", "few", 3, 1.0, "theirs"))
    table.theirs(*((f"t{n:02}", "theirs", 3, 1.0, "theirs") for n in range(20)), **three)
    table.check()
    table.ours(*((f"t{n:02}", "theirs", 4, 1.0, "ours") for n in range(10, 30)), ("k01", "many", 4, 1.0, "ours"))
    table.check()
    table.theirs(*((f"t{n:02}", "theirs", 5, 1.0, "theirs") for n in range(10, 30)), ("b", "few", 5, 1.0, "theirs"))
    table.check()


def test_a_table_without_partitions_has_such_an_index_too(jvm: Any, spark: Any, path: str) -> None:
    table = IndexedTable(jvm, spark, path, kind="COPY_ON_WRITE", partitioned_by="")
    table.theirs(*FIRST)
    table.open().upsert(table.frame(("a", "us", 2, 1.0, "ours"), ("n", "eu", 2, 1.0, "ours")))
    table.theirs(("n", "us", 3, 1.0, "theirs"), ("b", "us", 3, 1.0, "theirs"), ("m", "us", 3, 1.0, "theirs"))
    found = collect(table.open().read())
    assert {row[0]: row[4] for row in found} == {
        "a": "ours", "b": "theirs", "c": "x", "m": "theirs", "n": "theirs", "é": "x",
    }  # fmt: skip
    assert len(found) == 6
    assert jvm.read(table.open(), hoodie__metadata__enable="true") == found
    assert read_index_by_partition(table.open()) == list_places_by_partition(table.open())


def test_the_jvm_goes_by_the_index_after_we_restored(table: IndexedTable) -> None:
    ours = table.open()
    before = ours.upsert(table.frame(("a", "us", 2, 1.0, "ours"), ("n", "us", 2, 1.0, "ours")))
    table.note(("a", "us", 2, 1.0, "ours"), ("n", "us", 2, 1.0, "ours"))
    kept = dict(table.rows)
    table.theirs(("n", "us", 3, 1.0, "theirs"), ("m", "new", 3, 1.0, "theirs"))
    assert table.open().services.restore(before.instant).indexed_keys == len(kept)
    table.rows = kept
    table.check()
    table.theirs(("n", "us", 4, 1.0, "theirs"), ("m", "late", 4, 1.0, "theirs"))
    table.check()
    table.ours(("m", "new", 5, 1.0, "ours"), ("m", "late", 5, 1.0, "ours"))
    table.check()


@pytest.mark.parametrize("next_one", ["ours", "theirs"])
def test_both_go_on_after_a_failed_write_of_ours_that_brought_a_partition(
    table: IndexedTable, after_job: Callable[..., None], next_one: str
) -> None:
    """It dies, and whoever writes next rolls it back."""
    begin_anew = getattr(table, next_one)

    def bury() -> None:
        for file in Path(table.path, ".hoodie/.heartbeat").iterdir():
            file.unlink()
        begin_anew(("n", "new", 3, 1.0, "anew"), ("m", "new", 3, 1.0, "anew"), hoodie__clean__automatic="true")

    after_job(bury)
    with pytest.raises(WriteError, match="roll"):
        table.open(**{LEAST: "3"}).upsert(table.frame(("n", "new", 2, 1.0, "dead"), ("z", "other", 2, 1.0, "dead")))
    assert not table.open().table.storage.list_staged()
    table.check()
    table.theirs(("n", "new", 4, 1.0, "theirs"), ("z", "other", 4, 1.0, "theirs"))
    table.check()
    table.ours(("m", "new", 5, 1.0, "ours"), ("z", "other", 5, 1.0, "ours"), ("y", "other", 5, 1.0, "ours"))
    table.theirs(("m", "new", 6, 1.0, "theirs"), ("y", "other", 6, 1.0, "theirs"))
    table.check()


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", BY_KEY], ids=["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_jvm_goes_by_an_index_that_we_made(jvm: Any, spark: Any, path: str, kind: str) -> None:
    table = IndexedTable(jvm, spark, path, kind=kind)
    names: dict[str, Any] = {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts"}
    options = {**OURS, **INDEX, "hoodie.metadata.enable": "true", "hoodie.write.table.version": "9"}
    options |= {"hoodie.datasource.write.hive_style_partitioning": "true", "hoodie.clean.automatic": "false"}
    ours = HoodieTable.create(spark, path, table_type=kind.split()[0], options=options, **names)
    ours.upsert(table.frame(*FIRST))
    table.note(*FIRST)
    table.ours(("a", "us", 2, 10.0, "ours"), ("n", "new", 2, 20.0, "ours"))
    table.check()
    table.theirs(("n", "new", 3, 1.0, "theirs"), ("a", "us", 3, 1.0, "theirs"), ("d", "us", 3, 1.0, "theirs"))
    table.check()
    made = table.open().services.make_metadata_table(anew=True)
    assert made is not None
    assert (made.parts[-1], made.keys) == ("record_index", len(table.rows))
    table.theirs(("d", "us", 4, 1.0, "theirs"), ("f", "late", 4, 1.0, "theirs"), ("e", "eu", 4, 1.0, "theirs"))
    table.check()
    found = table.open(hoodie__metadata__record__level__index__enable="true").read(where="id = 'a'")
    assert sorted(row["region"] for row in found.select(*COLUMNS).collect()) == ["eu", "us"]
