from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_locks.clock import ManualClock
from hudi_locks.errors import ConfigError, DamagedTable, NotATable, TableExists, UnsupportedTable
from hudi_locks.format import CommitMetadata, Instant, State, avro_schema, decode_properties, encode_properties
from hudi_locks.storage import LocalStorage, MemoryStorage
from hudi_locks.table import IS_DELETED, PROPERTIES_PATH, DeleteMarker, MergeRule, Table, TableConfig, read_commit
from hudi_locks.table.ordering import Unavailable
from hudi_locks.timeline import LAYOUT_2, create_instant

T1, T2, T3, T4 = (f"2026112103215960{n}" for n in (1, 2, 3, 4))


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage(ManualClock())


def config(**changes: object) -> TableConfig:
    return replace(TableConfig("t", ("id",), ("p",), ("ts",)), **changes)  # type: ignore[arg-type]


def put(storage: MemoryStorage, **changes: str) -> None:
    """A table made by somebody else: properties with these changes; "" removes one."""
    properties = {**config().to_properties(), **{k.replace("__", "."): v for k, v in changes.items()}}
    storage.make_folder(LAYOUT_2.archive)
    storage.replace(PROPERTIES_PATH, encode_properties({k: v for k, v in properties.items() if v}))


@pytest.mark.parametrize("version", [8, 9])
def test_a_table_made_is_the_table_loaded(storage: MemoryStorage, version: int) -> None:
    made = Table.create(storage, config(version=version, hive_style=True, database="db"))
    loaded = Table.load(storage, for_writing=True)
    assert made == loaded
    assert (loaded.config.name, loaded.config.database, loaded.config.version) == ("t", "db", version)
    assert loaded.config.hive_style
    assert loaded.config.to_properties() == made.config.to_properties()
    assert loaded.layout == LAYOUT_2
    assert loaded.timeline().instants == ()
    assert loaded.schema(loaded.timeline()) is None


ONLY_OURS = {"hoodie.metadata.enable": "false", "hoodie.table.format": "native"}


@pytest.mark.parametrize("name", ["v8_cow", "v8_cow_unpartitioned", "v9_cow"])
def test_properties_are_the_ones_of_the_jvm(golden: Callable[[str], LocalStorage], name: str) -> None:
    theirs = decode_properties(golden(name).read(PROPERTIES_PATH) or b"", PROPERTIES_PATH)
    partitioned = "unpartitioned" not in name
    ours = TableConfig(
        name, ("id",), ("region",) if partitioned else (), ("ts",), version=int(name[1]), hive_style=partitioned
    ).to_properties()
    assert ours == {**ONLY_OURS, **theirs}


def test_without_ordering_the_later_write_wins() -> None:
    properties = config(ordering_fields=()).to_properties()
    assert properties["hoodie.record.merge.mode"] == "COMMIT_TIME_ORDERING"
    assert properties["hoodie.record.merge.strategy.id"] == "ce9acb64-bde0-424c-9b91-f6ebba25356d"
    assert properties["hoodie.compaction.payload.class"].endswith("OverwriteWithLatestAvroPayload")
    assert "hoodie.table.precombine.field" not in properties


@pytest.mark.parametrize(
    ("keys", "partitions", "kind"),
    [
        (("a",), ("p",), "SIMPLE"),
        (("a", "b"), ("p",), "COMPLEX"),
        (("a",), ("p", "q"), "COMPLEX"),
        (("a",), (), "NON_PARTITION"),
    ],
)
def test_key_generator_follows_from_the_columns(keys: tuple[str, ...], partitions: tuple[str, ...], kind: str) -> None:
    settings = config(record_key_fields=keys, partition_fields=partitions)
    assert settings.to_properties()["hoodie.table.keygenerator.type"] == kind


@pytest.mark.parametrize("name", ["v6_cow", "v8_cow", "v9_cow", "v8_cow_bucket", "v8_cow_unpartitioned"])
def test_tables_of_the_jvm_are_loaded(golden: Callable[[str], LocalStorage], name: str) -> None:
    table = Table.load(golden(name))
    assert table.config.name == name
    assert table.config.record_key_fields == ("id",)
    assert table.config.ordering_fields == ("ts",)
    assert table.config.version == int(name[1])
    schema = table.schema(table.timeline())
    assert schema is not None
    assert schema.names == ["id", "region", "ts", "name", "price", "qty", "ok", "at"]


def test_tables_of_version_6_that_hold_base_files_alone_are_written(golden: Callable[[str], LocalStorage]) -> None:
    assert Table.load(golden("v6_cow"), for_writing=True).config.version == 6


def test_columns_of_the_partition_path_are_named_in_their_order() -> None:
    said = {"hoodie.table.name": "t", "hoodie.table.version": "8", "hoodie.table.partition.fields": "b, a"}
    config = TableConfig.from_properties(said)
    assert (config.partition_fields, config.key_generator) == (("b", "a"), "COMPLEX")


def test_the_archive_of_version_6_has_a_folder_of_its_own() -> None:
    said = {"hoodie.table.name": "t", "hoodie.table.version": "6"}
    assert TableConfig.from_properties(said).layout.archive == ".hoodie/archived"
    said["hoodie.archivelog.folder"] = "old"
    assert TableConfig.from_properties(said).layout.archive == ".hoodie/old"


def test_a_table_that_was_upgraded_remembers_the_version_that_it_was_made_with() -> None:
    said = {"hoodie.table.name": "t", "hoodie.table.version": "9", "hoodie.table.initial.version": "8"}
    assert TableConfig.from_properties(said).to_properties().items() >= said.items()


def test_readers_know_by_name_and_database_that_properties_are_whole() -> None:
    said = {"hoodie.table.name": "t", "hoodie.table.version": "8", "hoodie.database.name": "db"}
    assert TableConfig.from_properties(said).checksum == zlib.crc32(b"db.t")


def test_a_second_table_is_refused_and_the_first_untouched(storage: MemoryStorage) -> None:
    Table.create(storage, config())
    with pytest.raises(TableExists, match="already"):
        Table.create(storage, config(name="other"))
    assert Table.load(storage).config.name == "t"


def test_a_backup_left_by_the_jvm_stands_for_the_properties(storage: MemoryStorage) -> None:
    put(storage)
    storage.move_if_absent(PROPERTIES_PATH, f"{PROPERTIES_PATH}.backup")
    assert Table.load(storage).config.name == "t"
    with pytest.raises(TableExists):
        Table.create(storage, config())


def test_no_table_is_no_table(storage: MemoryStorage) -> None:
    with pytest.raises(NotATable, match="holds no Hudi table") as caught:
        Table.load(storage)
    assert caught.value.path == storage.base


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 5}, {"version": 7}, {"name": ""}, {"record_key_fields": ()}, {"table_type": "MERGE_ON_WRITE"},
        {"record_key_fields": ("a", "a")}, {"partition_fields": ("a.b",)}, {"partition_fields": ("ts:timestamp",)},
        {"ordering_fields": ("a", "b")}, {"declared_merge_mode": "CUSTOM"},
    ],
)  # fmt: skip
def test_settings_that_make_no_table_are_refused(storage: MemoryStorage, changes: Mapping[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"hoodie\.") as caught:
        Table.create(storage, config(**changes))
    assert caught.value.key.startswith("hoodie.")
    assert list(storage.walk("")) == []


def test_several_ordering_columns_need_version_9(storage: MemoryStorage) -> None:
    table = Table.create(storage, config(version=9, ordering_fields=("a", "b")))
    assert table.config.ordering_fields == ("a", "b")
    assert table.config.to_properties()["hoodie.table.ordering.fields"] == "a,b"
    said = {"hoodie.table.name": "t", "hoodie.table.version": "9", "hoodie.table.ordering.fields": "b, a"}
    assert TableConfig.from_properties(said).merge_rule.ordering == ("b", "a")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.table.version", "5"), ("hoodie.table.version", "10"),
        ("hoodie.table.base.file.format", "ORC"), ("hoodie.bootstrap.index.enable", "false"),
        ("hoodie.table.format", "iceberg"),
        ("hoodie.table.multiple.base.file.formats.enable", "true"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_read_are_refused(storage: MemoryStorage, key: str, value: str) -> None:
    put(storage, **{key: value, "hoodie.timeline.layout.version": "1" if value == "5" else "2"})
    with pytest.raises(UnsupportedTable, match=f"{key}={value}") as caught:
        Table.load(storage)
    assert (caught.value.key, caught.value.value) == (key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.table.partial.update.mode", "IGNORE_DEFAULTS"),
        ("hoodie.record.merge.mode", "CUSTOM"),
    ],
)
def test_logs_that_cannot_be_merged_are_refused(storage: MemoryStorage, key: str, value: str) -> None:
    put(storage, **{"hoodie.table.type": "MERGE_ON_READ", key: value})
    with pytest.raises(UnsupportedTable, match=f"{key}={value}"):
        Table.load(storage)


PAYLOADS = "org.apache.hudi.common.model."
DEBEZIUM_DELETES = (IS_DELETED, DeleteMarker("_change_operation_type", "d", any_case=True))
MYSQL = MergeRule(("_event_seq",), deletes=DEBEZIUM_DELETES, by_place=True)
POSTGRES = MergeRule(
    ("_event_lsn",),
    deletes=DEBEZIUM_DELETES,
    precombine=("_event_lsn",),
    unavailable=Unavailable("__debezium_unavailable_value", fills_earlier=False),
)
PRECOMBINE = "hoodie.table.precombine.field"
BY_PAYLOAD = {
    "hoodie.record.merge.mode": "CUSTOM",
    "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("payload", "rule"),
    [
        ("EventTimeAvroPayload", MergeRule(("ts",))),
        ("PartialUpdateAvroPayload", MergeRule(("ts",), fills_nulls=True)),
        (
            "OverwriteNonDefaultsWithLatestAvroPayload",
            MergeRule(fills_nulls=True, deletes=(IS_DELETED,), precombine=("ts",)),
        ),
        ("debezium.PostgresDebeziumAvroPayload", POSTGRES),
        ("debezium.MySqlDebeziumAvroPayload", MYSQL),
        ("AWSDmsAvroPayload", MergeRule(deletes=(IS_DELETED, DeleteMarker("Op", "D")), precombine=("ts",))),
    ],
)
def test_a_table_of_version_8_merges_as_its_payload_class_means(
    storage: MemoryStorage, kind: str, payload: str, rule: MergeRule
) -> None:
    ordering = (rule.ordering or rule.precombine)[0]
    said = {**BY_PAYLOAD, "hoodie.compaction.payload.class": PAYLOADS + payload, PRECOMBINE: ordering}
    put(storage, **{"hoodie.table.type": kind, **said})
    loaded = Table.load(storage, for_writing=True).config
    assert loaded.merge_rule == rule
    properties = loaded.to_properties()
    assert {key: properties[key] for key in said} == said
    assert "hoodie.table.partial.update.mode" not in properties


@pytest.mark.parametrize(
    "changes",
    [
        {**BY_PAYLOAD, "hoodie.compaction.payload.class": "com.example.Payload"},
        {**BY_PAYLOAD, "hoodie.compaction.payload.class": ""},
        {**BY_PAYLOAD, "hoodie.record.merge.strategy.id": "1897ef5f-18bc-4557-939c-9d6a8afd1519"},
        {**BY_PAYLOAD, "hoodie.table.version": "9"},
    ],
)
def test_what_merges_by_code_of_its_own_is_refused(storage: MemoryStorage, changes: Mapping[str, str]) -> None:
    put(storage, **{"hoodie.compaction.payload.class": PAYLOADS + "PartialUpdateAvroPayload", **changes})
    with pytest.raises(UnsupportedTable, match=r"hoodie\.record\.merge\.mode=CUSTOM"):
        Table.load(storage, for_writing=True)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.table.metadata.partitions", "secondary_index_name"), ("hoodie.metadata.enable", "true"),
        ("hoodie.table.metadata.partitions.inflight", "files"),
        ("hoodie.table.keygenerator.type", "GLOBAL_DELETE"), ("hoodie.record.merge.mode", "CUSTOM"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_written_are_read_all_the_same(storage: MemoryStorage, key: str, value: str) -> None:
    put(storage, **{key: value})
    assert Table.load(storage).config.name == "t"
    with pytest.raises(UnsupportedTable, match=f"{key}={value}"):
        Table.load(storage, for_writing=True)


def test_all_that_is_wrong_is_said_at_once_and_first_what_cannot_be_changed(storage: MemoryStorage) -> None:
    changes = {
        "hoodie.table.metadata.partitions": "files,secondary_index_name",
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.metadata.enable": "true",
        "hoodie.table.keygenerator.type": "USER_PROVIDED",
    }
    put(storage, **changes)
    with pytest.raises(UnsupportedTable) as caught:
        Table.load(storage, for_writing=True)
    assert set(caught.value.keys) == set(changes)
    assert caught.value.keys[-1] == "hoodie.table.metadata.partitions"
    assert "has 4 properties that are not supported: (1) hoodie" in str(caught.value)
    assert all(f"{key}={value}: " in str(caught.value) for key, value in changes.items())


def test_the_way_out_of_the_metadata_table_is_named(storage: MemoryStorage) -> None:
    put(storage, **{"hoodie.table.metadata.partitions": "files,secondary_index_name"})
    with pytest.raises(UnsupportedTable) as caught:
        Table.load(storage, for_writing=True)
    assert "`hudi-locks metadata drop PATH --part secondary_index_name`" in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\x00" * 100, b"hoodie.table.name=t\n", b"hoodie.table.name=t\nhoodie.table.version=eight\n",
        b"hoodie.table.version=8\n", b"hoodie.table.name=\\uZZ\n",
        b"hoodie.table.name=t\nhoodie.table.version=8\nhoodie.table.type=NEITHER\n",
    ],
)  # fmt: skip
def test_damaged_properties_are_named(storage: MemoryStorage, data: bytes) -> None:
    storage.replace(PROPERTIES_PATH, data)
    with pytest.raises(DamagedTable, match=PROPERTIES_PATH) as caught:
        Table.load(storage)
    assert caught.value.path == PROPERTIES_PATH


@pytest.mark.parametrize(("key", "value"), [("hoodie.table.checksum", "1"), ("hoodie.timeline.layout.version", "1")])
def test_properties_that_contradict_each_other_are_damaged(storage: MemoryStorage, key: str, value: str) -> None:
    put(storage, **{key: value})
    with pytest.raises(DamagedTable, match=f"{key}={value}") as caught:
        Table.load(storage)
    assert caught.value.key == key


def commit(storage: MemoryStorage, requested: str, completion: str, schema: pa.Schema | None) -> None:
    extra = {"schema": avro_schema(schema, "t")} if schema is not None else {}
    data = CommitMetadata(operation="UPSERT", extra=extra).encode("commit", layout_version=2)
    instant = Instant(requested, "commit", State.COMPLETED, completion)
    assert create_instant(storage, LAYOUT_2, instant=instant, data=data)


def test_columns_are_those_of_the_commit_that_completed_last(storage: MemoryStorage) -> None:
    table = Table.create(storage, config())
    narrow, wide = pa.schema([("a", pa.int32())]), pa.schema([("a", pa.int32()), ("b", pa.int32())])
    commit(storage, T1, T4, wide)
    commit(storage, T2, T3, narrow)
    assert table.schema(table.timeline()) == wide


def test_commits_without_columns_are_passed_over(storage: MemoryStorage) -> None:
    table = Table.create(storage, config())
    commit(storage, T1, T2, pa.schema([("a", pa.int32())]))
    commit(storage, T3, T4, None)
    assert table.schema(table.timeline()) == pa.schema([("a", pa.int32())])


def test_columns_that_folders_tell_are_not_of_files_though_a_commit_recorded_them(storage: MemoryStorage) -> None:
    """As JVM Hudi's clustering does where partition columns are dropped."""
    table = Table.create(storage, config(extra={"hoodie.datasource.write.drop.partition.columns": "true"}))
    commit(storage, T1, T2, pa.schema([("id", pa.int32()), ("ts", pa.int32()), ("p", pa.string())]))
    assert table.schema(table.timeline()) == pa.schema([("id", pa.int32()), ("ts", pa.int32())])


def test_a_damaged_commit_is_named_and_a_pending_one_may_be_empty(storage: MemoryStorage) -> None:
    table = Table.create(storage, config())
    create_instant(storage, LAYOUT_2, instant=Instant(T1, "commit", State.COMPLETED, T2))
    create_instant(storage, LAYOUT_2, instant=Instant(T3, "commit", State.INFLIGHT))
    timeline = table.timeline()
    with pytest.raises(DamagedTable, match=f"{T1}_{T2}.commit"):
        table.schema(timeline)
    assert read_commit(storage, timeline, requested=T3) == CommitMetadata()
    with pytest.raises(KeyError):
        read_commit(storage, timeline, requested=T4)


def test_the_jvm_finds_the_folder_of_the_timeline(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    table = Table.create(storage, config())
    assert [entry.name for entry in storage.list(table.layout.folder)] == ["history"]


@pytest.mark.parametrize("key", ["hoodie.timeline.path", "hoodie.timeline.history.path"])
def test_a_damaged_byte_in_the_folder_of_instants_is_no_empty_table(storage: MemoryStorage, key: str) -> None:
    Table.create(storage, config())
    sound = storage.read(PROPERTIES_PATH) or b""
    line = sound.index(f"\n{key}=".encode()) + len(key) + 2
    end = sound.index(b"\n", line)
    for at, bit in itertools.product(range(line, end), range(8)):
        damaged = sound[:at] + bytes([sound[at] ^ 1 << bit]) + sound[at + 1 :]
        storage.replace(PROPERTIES_PATH, damaged)
        with pytest.raises(DamagedTable, match=key.replace(".", r"\.")):
            Table.load(storage)


@pytest.mark.parametrize(
    "folder", ["../elsewhere", "/etc", "", ".", "timeline/../timeline", "metadata/timeline", ".temp"]
)
@pytest.mark.parametrize("key", ["hoodie.timeline.path", "hoodie.timeline.history.path"])
def test_instants_are_in_no_other_folder(storage: MemoryStorage, key: str, folder: str) -> None:
    Table.create(storage, config())
    properties = {**config().to_properties(), key: folder}
    storage.replace(PROPERTIES_PATH, encode_properties(properties))
    with pytest.raises(DamagedTable, match="is none that Hudi writes"):
        Table.load(storage)


def test_a_folder_of_instants_of_ones_own_may_be_named(storage: MemoryStorage) -> None:
    put(storage, **{"hoodie.timeline.path": "instants/of_t", "hoodie.timeline.history.path": "old"})
    with pytest.raises(DamagedTable, match="that folder is not there"):
        Table.load(storage)
    storage.make_folder(".hoodie/instants/of_t/old")
    assert Table.load(storage).layout.archive == ".hoodie/instants/of_t/old"
