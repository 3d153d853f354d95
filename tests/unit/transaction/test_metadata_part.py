"""Writes to a table that keeps a metadata table: what that says is what is there, wherever somebody dies or sleeps."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import pytest
from metadata_harness import MetadataHarness, rollback_of_the_jvm
from transaction_harness import Harness, Killed, Mortal, kill

from hudi_locks.errors import DamagedTable, StorageError, UnsupportedTable
from hudi_locks.format import METADATA_FOLDER, CommitMetadata, Instant, LogFileName, MetadataPartition, State
from hudi_locks.format.claim import ClaimKind, claim_path, decode_claim
from hudi_locks.format.key_groups import name_key_group
from hudi_locks.format.metadata_keys import partition_stats_key
from hudi_locks.metadata_table import METADATA_LAYOUT, DeltaCommits, StagedLog
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import Outcome, StopPoint, Transaction
from hudi_locks.transaction.forward import RollForward
from hudi_locks.transaction.rollback import Rollback

At = Callable[[StopPoint, Callable[[], object]], Any]
PUBLISH = [point for point in StopPoint if point.value.startswith("publish:")]
CLAIMED = PUBLISH[PUBLISH.index(StopPoint.PUBLISH_CLAIMED) : PUBLISH.index(StopPoint.PUBLISH_CLEANED)]
ROLLBACK = [point for point in StopPoint if point.value.startswith("rollback:")]


@pytest.fixture(params=[8, 9])
def kept(harness: Harness, request: pytest.FixtureRequest) -> MetadataHarness:
    return MetadataHarness.of(harness, request.param)


def test_a_commit_is_a_delta_commit_that_was_completed_with_it(kept: MetadataHarness) -> None:
    first, second = kept.commit("g-0"), kept.commit("g-0", "h-0")
    kept.check()
    own, table = kept.own_timeline(), kept.timeline()
    for requested in (first, second):
        mine, its = own.get(requested), table.get(requested)
        assert mine is not None
        assert its is not None
        assert (mine.action, mine.completion) == ("deltacommit", its.completion)
    told = kept.metadata_table.view(table).read(MetadataPartition.PARTITION_STATS)
    statistics = told[partition_stats_key("id", "p")].statistics
    assert statistics is not None
    assert statistics.values == 2 * 3


def test_a_claim_with_a_delta_commit_is_of_a_kind_that_older_releases_refuse(kept: MetadataHarness) -> None:
    kept.commit("g-0")
    assert b'"PUBLISH_BY_TICKETS_AND_METADATA"' in (kept.storage.read(claim_path(1)) or b"")
    [claim] = kept.claims()
    assert claim.metadata is not None
    changed = replace(claim.metadata, name=f"20270101000000000_{claim.time}.deltacommit")
    text = (kept.storage.read(claim_path(1)) or b"").replace(claim.metadata.name.encode(), changed.name.encode())
    with pytest.raises(DamagedTable, match="no delta commit of"):
        decode_claim(text, 1)


@pytest.mark.parametrize("point", PUBLISH)
def test_wherever_a_publish_dies_the_next_writer_brings_both_tables_in_step(
    kept: MetadataHarness, at: At, point: StopPoint
) -> None:
    tx = Mortal(kept, at, point).transactions.begin("commit", "UPSERT")
    metadata = kept.write(tx, "g-0")
    with pytest.raises(Killed):
        tx.publish(metadata)
    kept.clock.advance(200)
    is_claimed = any(claim.kind is ClaimKind.PUBLISH for claim in kept.claims())
    kept.commit("h-0")
    kept.check()
    assert (kept.timeline().get(tx.instant) is not None) is is_claimed


@pytest.mark.parametrize("point", ROLLBACK)
def test_wherever_a_rollback_dies_the_next_writer_brings_both_tables_in_step(
    kept: MetadataHarness, at: At, point: StopPoint
) -> None:
    tx = kept.open(trace=at(point, kill)).begin("commit", "UPSERT")
    kept.write(tx, "g-0")
    with pytest.raises(Killed):
        tx.abort("enough")
    tx._state.heartbeat.pause()
    kept.commit("h-0")
    kept.check()


@pytest.mark.parametrize("point", CLAIMED)
def test_a_publisher_that_sleeps_while_its_claim_is_voided_brings_nothing_back(
    kept: MetadataHarness, at: At, point: StopPoint
) -> None:
    """A JVM writer that appears makes the helper void the claim, unless the write is completed by then."""
    tx, outcome = void_while_it_sleeps(kept, at, point)
    found = kept.timeline().get(tx.instant)
    assert (found is not None and found.is_completed) is (outcome is Outcome.COMMITTED)
    kept.check()
    kept.commit("h-0")
    kept.check()


def void_while_it_sleeps(kept: MetadataHarness, at: At, point: StopPoint) -> tuple[Transaction, Outcome]:
    kept.foreign = True

    def void() -> None:
        theirs = LAYOUT_2.path(Instant(LAYOUT_2.time(kept.clock.wall_ms() + 9), "commit", State.REQUESTED))
        kept.storage.replace(theirs, b"")
        kept.open().resolve(tx.instant)
        kept.storage.delete(theirs)

    tx = kept.open(trace=at(point, void)).begin("commit", "UPSERT")
    return tx, tx.publish(kept.write(tx, "g-0")).outcome


def take_back_while_it_sleeps(kept: MetadataHarness, at: At, point: StopPoint) -> tuple[Transaction, Outcome]:
    kept.foreign = True
    tx = kept.open(trace=at(point, lambda: rollback_of_the_jvm(kept, tx.instant))).begin("commit", "UPSERT")
    return tx, tx.publish(kept.write(tx, "g-0")).outcome


@pytest.mark.parametrize("point", [StopPoint.PUBLISH_METADATA_BEGUN, StopPoint.PUBLISH_NAMED])
def test_a_delta_commit_that_a_jvm_writer_took_back_takes_the_write_along(
    kept: MetadataHarness, at: At, point: StopPoint
) -> None:
    """It does so at its begin, to whatever is pending there: the lock was lost."""
    tx, outcome = take_back_while_it_sleeps(kept, at, point)
    kept.check()
    assert (outcome is Outcome.ABORTED) is (kept.timeline().get(tx.instant) is None)
    assert outcome is Outcome.ABORTED
    kept.commit("h-0")
    kept.check()


def test_logs_that_would_count_as_compacted_are_taken_back_and_the_write_with_them(
    kept: MetadataHarness, at: At
) -> None:
    kept.foreign = True
    tx = kept.open(trace=at(StopPoint.PUBLISH_NAMED, lambda: kept.compact_by_jvm("20280101000000000"))).begin(
        "commit", "UPSERT"
    )
    assert tx.publish(kept.write(tx, "g-0")).outcome is Outcome.ABORTED
    kept.storage.delete(METADATA_LAYOUT.path(Instant("20280101000000000", "compaction", State.REQUESTED)))
    kept.check()


def test_what_a_jvm_writer_left_completed_there_is_taken_back_with_its_write(kept: MetadataHarness) -> None:
    """It died before it completed the write itself."""
    kept.foreign = True
    requested = LAYOUT_2.time(kept.clock.wall_ms())
    begun = Instant(requested, "commit", State.REQUESTED)
    for instant in (begun, begun.as_inflight()):
        kept.storage.replace(LAYOUT_2.path(instant), b"")
    log = f"{METADATA_FOLDER}/files/.files-0000-0_{requested}.log.1_3-4-5"
    kept.storage.replace(log, b"theirs")
    theirs = Instant(requested, "deltacommit", State.REQUESTED)
    for instant in (theirs, theirs.as_inflight(), theirs.as_completed(requested)):
        kept.storage.replace(METADATA_LAYOUT.path(instant), b"")
    kept.clock.advance(4_000)
    kept.commit("g-0")
    assert not kept.storage.exists(log)
    assert kept.own_timeline().get(requested) is None
    kept.check()


@pytest.mark.parametrize("names", ["", "files"])
def test_a_metadata_table_that_changed_meanwhile_ends_the_write(kept: MetadataHarness, names: str) -> None:
    tx = kept.open().begin("commit", "UPSERT")
    written = kept.write(tx, "g-0")
    kept.say(names)
    result = tx.publish(written)
    assert result.outcome is Outcome.ABORTED
    assert "changed while the write was under way" in result.reason


def test_one_that_a_jvm_writer_made_meanwhile_ends_the_write_too(kept: MetadataHarness) -> None:
    kept.foreign = True
    kept.say("")
    tx = Harness.open(kept).begin("commit", "UPSERT")
    written = kept.write(tx, "g-0")
    kept.say("files")
    assert tx.publish(written).outcome is Outcome.ABORTED
    following = Harness.open(kept).begin("commit", "UPSERT")
    assert following.publish(kept.write(following, "g-0")).is_committed
    assert kept.own_timeline().get(following.instant) is not None


def test_a_file_without_a_range_of_an_indexed_column_ends_the_write(kept: MetadataHarness) -> None:
    tx = kept.open().begin("commit", "UPSERT")
    written = kept.write(tx, "g-0")
    stats = [replace(stat, ranges=None) for stat in written.stats]
    result = tx.publish(CommitMetadata.of(stats, "UPSERT", schema=written.schema))
    assert result.outcome is Outcome.ABORTED
    assert "hudi-locks metadata drop" in result.reason
    kept.check()


def test_a_part_that_is_not_kept_up_to_date_is_refused_before_anything_is_written(kept: MetadataHarness) -> None:
    kept.say("files,secondary_index_name")
    with pytest.raises(UnsupportedTable, match="the part secondary_index_name"):
        kept.open().begin("commit", "UPSERT")
    assert kept.timeline().instants == ()


@pytest.mark.parametrize(
    ("file", "error", "match"),
    [
        (None, DamagedTable, "holds no file group"),
        (".record-index-2025-01-0000-0_00000000000000002.log.1_0-0-0", UnsupportedTable, "no name that JVM Hudi"),
    ],
    ids=["none", "odd"],
)
def test_a_record_index_that_cannot_be_kept_is_refused_before_anything_is_written(
    kept: MetadataHarness, file: str | None, error: type[Exception], match: str
) -> None:
    kept.say("files,record_index")
    if file is not None:
        kept.storage.replace(f"{METADATA_FOLDER}/record_index/{file}", b"")
    with pytest.raises(error, match=match):
        kept.open().begin("commit", "UPSERT")
    assert kept.timeline().instants == ()


def test_a_write_that_does_not_tell_its_keys_is_no_part_of_a_table_with_a_record_index(kept: MetadataHarness) -> None:
    kept.storage.replace(f"{METADATA_FOLDER}/record_index/.record-index-0000-0_00000000000000002.log.1_0-0-0", b"")
    kept.say("files,record_index")
    tx = kept.open().begin("commit", "UPSERT")
    result = tx.publish(CommitMetadata.of((), "UPSERT", schema=None))
    assert result.outcome is Outcome.ABORTED
    assert "does not tell which keys it brought" in result.reason


KEYS = f"{METADATA_FOLDER}/record_index"
FRESH = {"hoodie.metadata.record.level.index.min.filegroup.count": "2"}


def index_by_partition(kept: MetadataHarness) -> None:
    """Partition p has one file group, and partition w one of a commit that a JVM never completed."""
    for partition, requested in (("p", "00000000000000002"), ("w", "20200101000000000")):
        name = f".{name_key_group(0, partition)}_{requested}.log.1_0-0-0"
        kept.storage.replace(f"{KEYS}/{name}", b"")
    kept.say("files,record_index")


def list_key_groups(kept: MetadataHarness, requested: str) -> list[str]:
    names = (name for name in kept.names(KEYS) if f"_{requested}." in name)
    return sorted(name[1:].partition("_")[0] for name in names)


def tell(kept: MetadataHarness, tx: Transaction, group: str) -> StagedLog:
    """A log of the record index, as a task uploads it."""
    staged = kept.storage.stage(f"{KEYS}/{LogFileName(group, tx.instant)}", instant=tx.instant)
    with staged.open() as file:
        file.write(b"keys")
    return StagedLog(group, 4, 1, staged.seal())


def test_a_partition_that_comes_gets_all_its_file_groups_with_the_write(kept: MetadataHarness) -> None:
    """Also those that get no key: their number says where a key is."""
    index_by_partition(kept)
    writer = kept.open(**FRESH)
    tx = writer.begin("commit", "UPSERT")
    stats = [*kept.write(tx, "g-0").stats, *kept.write(tx, "n-0", partition="n").stats]
    written = CommitMetadata.of(stats, "UPSERT", schema=None)
    told = [tell(kept, tx, name_key_group(1, "n"))]
    assert tx.publish(written, key_logs=told).outcome is Outcome.COMMITTED
    assert list_key_groups(kept, tx.instant) == [name_key_group(0, "n"), name_key_group(1, "n")]
    again = writer.begin("commit", "UPSERT")
    assert again.publish(kept.write(again, "o-0", partition="n"), key_logs=[]).outcome is Outcome.COMMITTED
    assert list_key_groups(kept, again.instant) == []


def test_writers_that_bring_the_same_partition_at_once_agree_on_its_file_groups(kept: MetadataHarness) -> None:
    index_by_partition(kept)
    writer = kept.open(**FRESH)
    one, two, other = (
        kept.open(**FRESH).begin("commit", "UPSERT"),
        writer.begin("commit", "UPSERT"),
        kept.open().begin("commit", "UPSERT"),
    )
    for tx, file_id in ((one, "a-0"), (two, "b-0")):
        assert tx.publish(kept.write(tx, file_id, partition="n"), key_logs=[]).outcome is Outcome.COMMITTED
    assert list_key_groups(kept, two.instant) == []
    result = other.publish(kept.write(other, "c-0", partition="n"), key_logs=[])
    assert result.outcome is Outcome.ABORTED
    assert "another number of file groups" in result.reason
    assert "hoodie.metadata.record.level.index.min.filegroup.count" in result.reason


def test_file_groups_that_nobody_completed_are_begun_anew(kept: MetadataHarness) -> None:
    """As many as they were: a JVM writer that is under way may complete them yet."""
    index_by_partition(kept)
    tx = kept.open(**FRESH).begin("commit", "UPSERT")
    assert tx.publish(kept.write(tx, "g-0", partition="w"), key_logs=[]).outcome is Outcome.COMMITTED
    assert list_key_groups(kept, tx.instant) == [name_key_group(0, "w")]


def test_a_store_that_fails_while_the_logs_are_uploaded_ends_the_write(
    kept: MetadataHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    tx = kept.open().begin("commit", "UPSERT")
    written = kept.write(tx, "g-0")

    def fail(*_: Any, **__: Any) -> None:
        raise StorageError("the store is away", path="files")

    monkeypatch.setattr("hudi_locks.metadata_table.delta_commits.DeltaCommits.stage", fail)
    assert tx.publish(written).outcome is Outcome.ABORTED
    monkeypatch.undo()
    kept.commit("h-0")
    kept.check()


def leave_the_logs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Rollback, "_take_back_metadata", lambda *_: None)


def leave_what_was_brought_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DeltaCommits, "remove", lambda *_: None)


def complete_without_a_delta_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RollForward, "_complete_metadata", lambda *_: True)


def complete_without_a_second_look(patch: pytest.MonkeyPatch) -> None:
    def complete(self: DeltaCommits, name: str, content: bytes, *, logs: Collection[str]) -> list[str]:
        self.storage.create_if_absent(f"{METADATA_LAYOUT.folder}/{name}", content)
        return []

    patch.setattr(DeltaCommits, "complete", complete)


@pytest.mark.parametrize(
    "drop",
    [
        leave_the_logs,
        leave_what_was_brought_back,
        complete_without_a_delta_commit,
        complete_without_a_second_look,
    ],
)
def test_each_rule_that_is_dropped_leaves_the_two_tables_apart(
    harness: Harness, at: At, monkeypatch: pytest.MonkeyPatch, drop: Callable[[pytest.MonkeyPatch], None]
) -> None:
    kept = MetadataHarness.of(harness, 9)
    drop(monkeypatch)
    with pytest.raises(AssertionError):
        sleep_everywhere(kept, at)


def sleep_everywhere(kept: MetadataHarness, at: At) -> None:
    for point in CLAIMED:
        void_while_it_sleeps(kept, at, point)
        kept.check()
    for point in (StopPoint.PUBLISH_METADATA_BEGUN, StopPoint.PUBLISH_NAMED):
        take_back_while_it_sleeps(kept, at, point)
        kept.check()


def test_with_all_rules_they_stay_together(harness: Harness, at: At) -> None:
    sleep_everywhere(MetadataHarness.of(harness, 9), at)
