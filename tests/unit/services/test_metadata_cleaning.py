"""Cleans and archival of a table that keeps a metadata table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from metadata_harness import MetadataHarness, rollback_of_the_jvm
from transaction_harness import Harness, Killed, stop_at

from hudi_locks.config import service_keys
from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import METADATA_FOLDER, Instant, LogFileName, MetadataPartition, State
from hudi_locks.format.hfile import HFile
from hudi_locks.format.hfile_writer import encode_hfile
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, decode_blocks, encode_block
from hudi_locks.format.metadata_record import Bound, decode_metadata_record, encode_metadata_record
from hudi_locks.format.metadata_schema import SCHEMA_TEXTS
from hudi_locks.metadata_table import METADATA_LAYOUT
from hudi_locks.services import TableServices
from hudi_locks.services.archival import Archiver
from hudi_locks.services.restoring import Restorer
from hudi_locks.services.settings import ArchiveSettings, CleanSettings
from hudi_locks.table import PROPERTIES_PATH
from hudi_locks.transaction import StopPoint

COMPACT = service_keys.METADATA_COMPACT_COMMITS.name
POINTS = [point for point in StopPoint if point.value.startswith("service:")]


@pytest.fixture
def kept(harness: Harness) -> MetadataHarness:
    return MetadataHarness.of(harness, 9)


def archiver(kept: MetadataHarness) -> Archiver:
    options = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    coordinator = kept.open().coordinator
    return Archiver(coordinator, ArchiveSettings.of(options), clean_settings=CleanSettings.of(options))


def test_a_clean_is_a_delta_commit_that_takes_its_files_out(kept: MetadataHarness) -> None:
    times = [kept.put("p/g-0") for _ in range(3)]
    result = kept.cleaner(commits__retained=1).run()
    assert result.deleted == 1
    kept.check()
    told = kept.metadata_table.view(kept.timeline()).files["p"]
    assert {name.split("_")[-1].split(".")[0] for name in told} == set(times[1:])
    own = kept.own_timeline().get(result.instants[0])
    assert own is not None
    assert own.action == "deltacommit"


@pytest.mark.parametrize("point", POINTS)
def test_wherever_a_clean_dies_the_next_one_brings_both_tables_in_step(kept: MetadataHarness, point: StopPoint) -> None:
    for _ in range(3):
        kept.put("p/g-0")
    with pytest.raises(Killed):
        kept.cleaner(trace=stop_at(point), commits__retained=1).run()
    kept.clock.advance(4_000)
    kept.cleaner(commits__retained=1).run()
    kept.check()
    assert kept.timeline().pending() == ()
    assert len(kept.timeline().completed(("clean",))) == 1


def test_a_clean_whose_delta_commit_a_jvm_writer_took_back_is_carried_out_by_the_next(
    kept: MetadataHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        kept.put("p/g-0")
    make = "hudi_locks.metadata_table.delta_commits.DeltaCommits.make_logs"
    monkeypatch.setattr(make, lambda _, commit: rollback_of_the_jvm(kept, commit.requested))
    assert kept.cleaner(commits__retained=1).run().instants == ()
    monkeypatch.undo()
    kept.clock.advance(4_000)
    assert kept.cleaner(commits__retained=1).run().deleted == 1
    kept.check()


def test_nothing_later_than_the_last_compaction_of_the_metadata_table_is_archived(kept: MetadataHarness) -> None:
    """As JVM Hudi: its readers go by the timeline for what is not compacted yet."""
    times = [kept.put("p/g-0") for _ in range(6)]
    kept.cleaner(commits__retained=1).run()
    kept.clock.advance(4_000)
    assert archiver(kept).run().archived == 0
    compaction = Instant(f"{times[2][:-1]}9", "compaction", State.INFLIGHT)
    kept.storage.replace(METADATA_LAYOUT.path(compaction.as_completed(times[5])), b"")
    assert archiver(kept).run().archived >= 1
    assert kept.timeline().first_active is not None
    assert str(kept.timeline().first_active) <= times[3]


def ranges_of(kept: MetadataHarness, column: str) -> tuple[Any, Any]:
    """What is known of the partition p."""
    records = kept.metadata_table.view(kept.timeline()).read(MetadataPartition.PARTITION_STATS)
    told = next(
        r.statistics
        for r in records.values()
        if r.statistics and (r.statistics.name, r.statistics.column) == ("p", column)
    )
    return told.low, told.high


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_restore_takes_what_it_removes_out_of_the_metadata_table(kept: MetadataHarness, is_compacted: bool) -> None:
    time = kept.put("p/g-0")
    later = [kept.put("p/g-0", "p/g-1"), kept.put("p/g-2")]
    died = kept.open(trace=stop_at(StopPoint.PUBLISH_PREPARED)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        died.publish(kept.write(died, "g-3"))
    kept.open().coordinator.delta_commits.begin(died.instant)
    if is_compacted:
        kept.clock.advance(5)
        assert TableServices(kept.open(), {COMPACT: "1"}).serve_metadata_table().compactions
    result = Restorer(kept.open().coordinator).run(time)
    assert set(result.undone) == {*later, died.instant}
    told = kept.metadata_table.view(kept.timeline())
    assert {name.rpartition("_")[2].removesuffix(".parquet") for name in told.files["p"]} == {time}
    described = {
        record.statistics.name for record in told.read(MetadataPartition.COLUMN_STATS).values() if record.statistics
    }
    assert not any(instant in name for instant in later for name in described)
    own = kept.own_timeline().get(result.instant)
    assert own is not None
    assert own.is_completed
    assert kept.own_timeline().pending() == ()
    kept.put("p/g-0")
    kept.check_names()


@pytest.mark.parametrize("point", [StopPoint.RESTORE_UNDONE, *POINTS[2:]])
def test_wherever_a_restore_dies_the_next_one_brings_both_tables_in_step(
    kept: MetadataHarness, point: StopPoint
) -> None:
    time = kept.put("p/g-0")
    for _ in range(2):
        kept.put("p/g-0", "p/g-1")
    with pytest.raises(Killed):
        Restorer(kept.open(trace=stop_at(point)).coordinator).run(time)
    kept.clock.advance(4_000)
    if kept.timeline().pending(("restore",)):
        Restorer(kept.open().coordinator).run(time)
    kept.check_names()
    assert kept.own_timeline().pending() == ()


def test_ranges_of_a_partition_hold_what_a_restore_brings_back(kept: MetadataHarness) -> None:
    """JVM Hudi narrows them when rows change."""
    time = kept.put("p/g-0")
    before = ranges_of(kept, "price")
    later = kept.put("p/g-0")
    narrow(kept, later)
    assert ranges_of(kept, "price") != before
    Restorer(kept.open().coordinator).run(time)
    low, high = ranges_of(kept, "price")
    assert low.value <= before[0].value
    assert high.value >= before[1].value


def narrow(kept: MetadataHarness, requested: str) -> None:
    """Ranges of the partition become those of other rows, as a JVM writer would tell them."""
    path = f"{METADATA_FOLDER}/partition_stats/{LogFileName('partition-stats-0000-0', requested)}"
    version = kept.version
    changed = {}
    for block in decode_blocks(kept.storage.read(path) or b"", path):
        for key, value in HFile(block.content, path).entries():
            record = decode_metadata_record(value, SCHEMA_TEXTS[version], path)
            assert record.statistics is not None
            low, high = Bound("LongWrapper", 50), Bound("LongWrapper", 60)
            told = replace(record.statistics, low=low, high=high, is_tight=True)
            changed[key] = encode_metadata_record(replace(record, statistics=told), version)
    header = {BlockHeader.INSTANT_TIME: requested, BlockHeader.SCHEMA: SCHEMA_TEXTS[version]}
    kept.storage.replace(path, encode_block(LogBlock(BlockType.HFILE, header, encode_hfile(sorted(changed.items())))))


def test_a_restore_is_refused_where_a_part_of_the_metadata_table_would_not_go_back(kept: MetadataHarness) -> None:
    time = kept.put("p/g-0")
    before = kept.timeline()
    kept.say("files,secondary_index_name")
    with pytest.raises(UnsupportedTable, match="hudi-locks metadata drop"):
        Restorer(kept.open().coordinator).run(time)
    assert kept.timeline() == before


def test_a_restore_deletes_a_record_index_before_it_undoes_anything(kept: MetadataHarness) -> None:
    first, later = kept.put("p/g-0"), kept.put("p/g-1")
    folder = f"{METADATA_FOLDER}/record_index"
    kept.storage.replace(f"{folder}/.record-index-0000-0_00000000000000002.log.1_0-0-0", b"")
    kept.say("files,record_index")
    with pytest.raises(Killed):
        Restorer(kept.open(trace=stop_at(StopPoint.RESTORE_UNDONE)).coordinator).run(first)
    assert "record_index" not in (kept.storage.read(PROPERTIES_PATH) or b"").decode()
    assert kept.storage.stat(folder) is None
    kept.clock.advance(4_000)
    done = Restorer(kept.open().coordinator).run(first)
    assert (done.undone, done.dropped) == ((later,), ())
