"""Making the metadata table of a table of version 6, as JVM Hudi 0.15 makes it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from golden_metadata import read_old_golden
from metadata_harness import MetadataHarness
from transaction_harness import OPEN_LOCK, Harness, Killed, stop_at

from hudi_locks.format import METADATA_FOLDER, decode_properties
from hudi_locks.format.column_range import LONG, ColumnRange
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, encode_block
from hudi_locks.format.log_deletes import encode_deletes_again
from hudi_locks.metadata_table import INDEXES_PATH, measure_file
from hudi_locks.services import MetadataMade, metadata_making
from hudi_locks.services.metadata_making import MetadataMaker
from hudi_locks.table import PROPERTIES_PATH, LogFile
from hudi_locks.table.log_rows import encode_rollback
from hudi_locks.transaction import StopPoint

BY_RELEASE_0_15 = {
    "hoodie.archivelog.folder": "archived",
    "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
    "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "hoodie.datasource.write.drop.partition.columns": "false",
    "hoodie.populate.meta.fields": "false",
    "hoodie.table.base.file.format": "HFILE",
    "hoodie.table.checksum": "3339867397",
    "hoodie.table.keygenerator.class": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
    "hoodie.table.name": "t_metadata",
    "hoodie.table.recordkey.fields": "key",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
}
COLUMNS = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
POINTS = [StopPoint.SERVICE_STAGED, StopPoint.SERVICE_PLANNED, StopPoint.SERVICE_CLAIMED, StopPoint.SERVICE_REQUESTED]


@pytest.fixture
def plain(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> MetadataHarness:
    """Some commits, and no metadata table."""
    kept = MetadataHarness.of(harness, 6)
    kept.foreign = True
    kept.storage.delete_folder(METADATA_FOLDER)
    kept.say("")
    told = dict.fromkeys((*COLUMNS, "id", "region", "ts", "name", "price", "qty"), ColumnRange(LONG, 1, 2, 2, 0))
    monkeypatch.setattr(metadata_making, "measure_file", lambda *_, **__: told)
    for number in range(3):
        put(kept, f"p/g-{number}")
    return kept


def put(kept: MetadataHarness, group: str) -> str:
    """A commit by a process that does not know whether there is a metadata table."""
    tx = Harness.open(kept, locks=OPEN_LOCK).begin("commit", "UPSERT")
    assert tx.publish(kept.rewrite(tx, group)).is_committed
    kept.clock.advance(1)
    return str(tx.instant)


def make(kept: MetadataHarness, *, trace: Any = None, anew: bool = False) -> MetadataMade | None:
    return MetadataMaker(Harness.open(kept, trace=trace, locks=OPEN_LOCK).coordinator).run(anew=anew)


def names(kept: MetadataHarness) -> dict[str, int]:
    parts = decode_properties(kept.storage.read(PROPERTIES_PATH) or b"", "it")["hoodie.table.metadata.partitions"]
    table = kept.metadata_table
    found = type(table)(kept.storage, frozenset(parts.split(",")), 6, 6)
    return dict(found.view(kept.timeline()).files.get("p", {}))


def check(kept: MetadataHarness) -> None:
    assert names(kept) == {e.name: e.size for e in kept.storage.list("p") if e.name.endswith(".parquet")}
    assert kept.own_timeline().pending() == ()


def test_it_has_files_alone_under_times_of_the_last_instant(plain: MetadataHarness) -> None:
    last = plain.timeline().completed()[-1].requested
    assert make(plain) == MetadataMade(("files",), 3)
    (made,) = plain.own_timeline().completed()
    assert (made.requested, made.action) == (f"{last}010", "deltacommit")
    assert plain.own_timeline().paths[made] == f".hoodie/metadata/.hoodie/{last}010.deltacommit"
    found = plain.storage.read(f"{METADATA_FOLDER}/.hoodie/hoodie.properties") or b""
    assert decode_properties(found, "it") == BY_RELEASE_0_15
    assert f".files-0000-0_{last}010.log.1_0-0-0" in plain.names(f"{METADATA_FOLDER}/files")
    said = decode_properties(plain.storage.read(PROPERTIES_PATH) or b"", "it")
    assert said["hoodie.table.metadata.partitions"] == "files"
    assert "hoodie.table.index.defs.path" not in said
    check(plain)


def test_a_table_without_instants_has_the_time_that_comes_first(harness: Harness) -> None:
    kept = MetadataHarness.of(harness, 6)
    kept.foreign = True
    kept.storage.delete_folder(METADATA_FOLDER)
    kept.say("")
    assert make(kept) == MetadataMade(("files",), 0)
    assert [one.requested for one in kept.own_timeline().completed()] == ["00000000000000010"]


def test_writes_keep_it_and_it_has_statistics_again_if_it_had_some(plain: MetadataHarness) -> None:
    make(plain)
    for number in range(4):
        put(plain, f"p/g-{number}")
        check(plain)
    plain.say("column_stats,files")
    made = make(plain, anew=True)
    assert made is not None
    assert made.parts == ("files", "column_stats")
    told = json.loads(plain.storage.read(INDEXES_PATH) or b"")["indexDefinitions"]["column_stats"]
    golden = json.loads(read_old_golden()["cow.index_defs/index.json"])["indexDefinitions"]["column_stats"]
    assert told.keys() <= golden.keys()
    assert [one.requested[-3:] for one in plain.own_timeline().completed()] == ["010", "011"]
    check(plain)


@pytest.mark.parametrize("point", POINTS)
def test_wherever_it_dies_no_write_is_missed_and_another_call_makes_it(
    plain: MetadataHarness, point: StopPoint
) -> None:
    with pytest.raises(Killed):
        make(plain, trace=stop_at(point))
    put(plain, "p/g-7")
    if b"partitions=files" in (plain.storage.read(PROPERTIES_PATH) or b""):
        check(plain)
    make(plain)
    check(plain)
    make(plain, anew=True)
    check(plain)


@pytest.mark.parametrize("point", POINTS)
def test_a_write_that_believes_to_hold_the_lock_too_is_in_it(plain: MetadataHarness, point: StopPoint) -> None:
    assert make(plain, trace=stop_at(point, lambda: put(plain, "p/g-7"))) is not None
    check(plain)


def test_logs_that_take_blocks_out_are_measured_too(harness: Harness) -> None:
    header = {BlockHeader.INSTANT_TIME: "20231114220000000", BlockHeader.SCHEMA: "{}"}
    block = encode_block(LogBlock(BlockType.DELETE, header, encode_deletes_again([], "p")))
    path = "p/.g-0_20231114220000000.log.2_1-0-1"
    harness.storage.replace(path, block + encode_rollback("20231114220000000"))
    log = LogFile.parse("p", path.rpartition("/")[2], 1)
    assert log is not None
    assert measure_file(harness.storage, log, {"id": LONG}, is_mixed=True) == {}
