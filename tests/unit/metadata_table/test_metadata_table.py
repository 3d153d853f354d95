"""What a metadata table says: those that JVM Hudi made, and what counts of one that is being written."""

from __future__ import annotations

from dataclasses import replace

import pytest
from golden_metadata import BUNDLES, list_expected, read_golden

from hudi_locks.clock import ManualClock
from hudi_locks.errors import DamagedTable, UnsupportedTable
from hudi_locks.format import METADATA_FOLDER, Instant, MetadataPartition, State, encode_properties
from hudi_locks.format.hfile_writer import encode_hfile
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, encode_block
from hudi_locks.format.metadata_record import (
    FileEntry,
    MetadataRecord,
    RecordKind,
    encode_metadata_record,
)
from hudi_locks.format.metadata_schema import SCHEMA_TEXTS
from hudi_locks.metadata_table import MetadataTable, MetadataView
from hudi_locks.storage import MemoryStorage
from hudi_locks.table import TableConfig
from hudi_locks.timeline import LAYOUT_2, Timeline

PROPERTIES = f"{METADATA_FOLDER}/.hoodie/hoodie.properties"
LINE = f"{METADATA_FOLDER}/.hoodie/timeline"
NAMES = {"hoodie.table.metadata.partitions": "column_stats,files,partition_stats"}
CONFIG = TableConfig("t", ("id",), extra=NAMES)
EMPTY = Timeline(LAYOUT_2, ())
T1, T2, T3 = "20260101000000001", "20260101000000002", "20260101000000003"


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage(ManualClock())


def unpack(storage: MemoryStorage, bundle: str, kind: str) -> None:
    for path, data in read_golden(bundle).items():
        if path.startswith(f"{kind}/"):
            storage.replace(f"{METADATA_FOLDER}/{path.removeprefix(f'{kind}/')}", data)


def view(storage: MemoryStorage, timeline: Timeline = EMPTY) -> MetadataView:
    found = MetadataTable.of(storage, CONFIG)
    assert found is not None
    return found.view(timeline)


@pytest.mark.parametrize("bundle", BUNDLES)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_one_that_the_jvm_made_names_every_file_with_its_size(storage: MemoryStorage, bundle: str, kind: str) -> None:
    unpack(storage, bundle, kind)
    found = view(storage).files
    assert {partition: len(files) for partition, files in found.items()} == {"us": 2, "eu": 2, "asia": 2}
    assert all(size > 900 for files in found.values() for size in files.values())
    assert {name.startswith(".") for files in found.values() for name in files} == (
        {False, True} if kind == "mor" else {False}
    )


@pytest.mark.parametrize("bundle", BUNDLES)
@pytest.mark.parametrize("partition", [MetadataPartition.COLUMN_STATS, MetadataPartition.PARTITION_STATS])
def test_statistics_of_the_jvm_are_found_by_their_keys(
    storage: MemoryStorage, bundle: str, partition: MetadataPartition
) -> None:
    unpack(storage, bundle, "cow")
    keys = {
        one["key"]
        for path, records in list_expected(bundle)
        if path.startswith(f"cow/{partition.value}/")
        for one in records
    }
    found = view(storage).read(partition)
    assert set(found) == keys
    some = sorted(keys)[::5]
    assert view(storage).read(partition, keys=[*some, "no such key"]) == {key: found[key] for key in some}


@pytest.mark.parametrize("bundle", BUNDLES)
def test_what_is_pending_in_the_table_does_not_count(storage: MemoryStorage, bundle: str) -> None:
    unpack(storage, bundle, "cow")
    last = max(name[:17] for name in storage.list_names(LINE))
    pending = Timeline(LAYOUT_2, (Instant(last, "commit", State.INFLIGHT),))
    before, after = view(storage, pending).files, view(storage).files
    added = {name for partition, files in after.items() for name in files.keys() - before[partition].keys()}
    assert added
    assert {name.rpartition("_")[2] for name in added} == {f"{last}.parquet"}


def found(storage: MemoryStorage, timeline: Timeline = EMPTY) -> dict[str, dict[str, int]]:
    return view(storage, timeline).files


def make(storage: MemoryStorage) -> None:
    """A metadata table with the file group of `files`, and nothing in it."""
    storage.replace(PROPERTIES, encode_properties({"hoodie.table.version": "9"}))
    complete(storage, "00000000000000000")
    write_log(storage, "00000000000000000", {})


def complete(storage: MemoryStorage, time: str, end: str = "", action: str = "deltacommit") -> None:
    for name in (f"{time}.deltacommit.requested", f"{time}.deltacommit.inflight", f"{time}_{end or time}.{action}"):
        storage.replace(f"{LINE}/{name}", b"")


def write_log(
    storage: MemoryStorage, time: str, records: dict[str, MetadataRecord | None], token: str = "0-0-0"
) -> None:
    entries = [
        (key.encode(), b"" if record is None else encode_metadata_record(record, 9))
        for key, record in sorted(records.items())
    ]
    header = {BlockHeader.INSTANT_TIME: time, BlockHeader.SCHEMA: SCHEMA_TEXTS[9]}
    block = encode_block(LogBlock(BlockType.HFILE, header, encode_hfile(entries)))
    storage.replace(f"{METADATA_FOLDER}/files/.files-0000-0_{time}.log.1_0-0-0", block)


def files(**sizes: int) -> MetadataRecord:
    """Files with these sizes; deleted ones have less than none."""
    entries = {name: FileEntry(max(0, size), is_deleted=size < 0) for name, size in sizes.items()}
    return MetadataRecord(RecordKind.FILES, entries)


def test_only_completed_delta_commits_count(storage: MemoryStorage) -> None:
    make(storage)
    write_log(storage, T1, {"p": files(a=1)})
    write_log(storage, T2, {"p": files(b=2)})
    complete(storage, T1)
    assert found(storage) == {"p": {"a": 1}}
    complete(storage, T2)
    assert found(storage) == {"p": {"a": 1, "b": 2}}


def test_a_log_that_completed_after_a_compaction_lies_above_its_base_file(storage: MemoryStorage) -> None:
    make(storage)
    record = encode_metadata_record(files(a=1), 9)
    base = encode_hfile([(b"p", record)], info={"schema": SCHEMA_TEXTS[9].encode()})
    storage.replace(f"{METADATA_FOLDER}/files/files-0000-0_0-0-0_{T2}.hfile", base)
    storage.replace(f"{LINE}/{T2}_{T2}.commit", b"")
    write_log(storage, T1, {"p": files(b=2)})
    complete(storage, T1, T3)
    assert found(storage) == {"p": {"a": 1, "b": 2}}


def test_files_and_partitions_that_are_deleted_are_gone(storage: MemoryStorage) -> None:
    make(storage)
    listed = MetadataRecord(RecordKind.PARTITIONS, {"p": FileEntry(0), "q": FileEntry(0), ".": FileEntry(0)})
    write_log(storage, T1, {"__all_partitions__": listed, "p": files(a=1, b=2), ".": files(c=3)})
    complete(storage, T1)
    assert found(storage) == {"p": {"a": 1, "b": 2}, "q": {}, "": {"c": 3}}
    write_log(storage, T2, {"p": files(a=-1), ".": None})
    complete(storage, T2)
    assert found(storage) == {"p": {"b": 2}, "q": {}, "": {}}


def test_a_table_without_one_has_none(storage: MemoryStorage) -> None:
    for told in ("", "column_stats"):
        config = replace(CONFIG, extra={"hoodie.table.metadata.partitions": told})
        assert MetadataTable.of(storage, config) is None


def test_one_that_is_not_there_or_has_no_files_is_named(storage: MemoryStorage) -> None:
    with pytest.raises(DamagedTable, match=r"hoodie\.properties is not there, .* anew"):
        MetadataTable.of(storage, CONFIG)
    storage.replace(PROPERTIES, encode_properties({"hoodie.table.version": "8"}))
    with pytest.raises(DamagedTable, match=r"metadata/files holds no file group"):
        _ = view(storage).files


def test_one_of_another_version_is_refused_by_name(storage: MemoryStorage) -> None:
    storage.replace(PROPERTIES, encode_properties({"hoodie.table.version": "5"}))
    with pytest.raises(UnsupportedTable, match=r"hoodie\.table\.version=5") as caught:
        MetadataTable.of(storage, CONFIG)
    assert caught.value.key == "hoodie.table.version"


def test_a_block_that_the_jvm_does_not_write_there_is_refused(storage: MemoryStorage) -> None:
    make(storage)
    header = {BlockHeader.INSTANT_TIME: T1, BlockHeader.SCHEMA: "{}"}
    data = encode_block(LogBlock(BlockType.PARQUET, header, b""))
    storage.replace(f"{METADATA_FOLDER}/files/.files-0000-0_{T1}.log.1_0-0-0", data)
    complete(storage, T1)
    with pytest.raises(UnsupportedTable, match="PARQUET"):
        found(storage)
