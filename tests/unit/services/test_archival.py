"""The active timeline stays short, and nobody misses what left it, whoever dies on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from mortal_storage import MortalStorage
from service_harness import ServiceHarness
from transaction_harness import Killed

from hudi_locks.errors import StorageError
from hudi_locks.format import Instant, PartName, SavepointMetadata, State, add_ms, decode_manifest, decode_rows
from hudi_locks.format.claim import ClaimKind
from hudi_locks.services import Archiver, ArchiveSettings, CleanSettings
from hudi_locks.storage import MemoryStorage
from hudi_locks.table import latest_base_files
from hudi_locks.timeline import LAYOUT_2, create_instant
from hudi_locks.timeline.archive import is_archived, list_archived_since
from hudi_locks.timeline.heartbeat import heartbeat_path
from hudi_locks.timeline.history import ArchivedHistory
from hudi_locks.transaction import Outcome, StopPoint

HOUR_S = 3601
ARCHIVE = LAYOUT_2.archive


def archiver(harness: ServiceHarness, *, storage: Any = None, trace: Any = None, **options: Any) -> Archiver:
    given = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 4}
    given |= {name.replace("__", "."): value for name, value in options.items()}
    coordinator = harness.open(storage=storage, trace=trace).coordinator
    cleaning = CleanSettings.of({"hoodie.clean.commits.retained": 1, **given})
    return Archiver(coordinator, ArchiveSettings.of(given), clean_settings=cleaning)


def archived(harness: ServiceHarness) -> list[str]:
    """What the version file leads the JVM to."""
    version = (harness.storage.read(f"{ARCHIVE}/_version_") or b"0").decode()
    manifest = harness.storage.read(f"{ARCHIVE}/manifest_{version}")
    names = decode_manifest(manifest, "it") if manifest else {}
    parts = [decode_rows(harness.storage.read(f"{ARCHIVE}/{name}") or b"", name) for name in names]
    return sorted(row.requested for part in parts for row in part)


def active(harness: ServiceHarness) -> list[str]:
    return [instant.requested for instant in harness.timeline().instants]


@pytest.fixture
def times(harness: ServiceHarness) -> list[str]:
    """Six commits of an hour ago."""
    found = [harness.put("p/g-0") for _ in range(6)]
    harness.clock.advance(HOUR_S)
    return found


def test_the_surplus_leaves_the_timeline_and_is_in_the_history(harness: ServiceHarness, times: list[str]) -> None:
    instants = {i.requested: i for i in harness.timeline().instants}
    data = {time: harness.storage.read(LAYOUT_2.path(instant)) for time, instant in instants.items()}
    result = archiver(harness).run()
    assert (result.archived, result.first_active) == (4, times[4])
    assert (active(harness), archived(harness)) == (times[4:], times[:4])
    assert harness.names(ARCHIVE) == [f"{times[0]}_{times[3]}_0.parquet", "_version_", "manifest_1"]
    found = list_archived_since(harness.storage, LAYOUT_2, completed_after=times[0])
    assert [(a.requested, a.completion, a.metadata) for a in found] == [
        (time, instants[time].completion, data[time]) for time in times[:4]
    ]
    assert archiver(harness).run().archived == 0


def test_the_table_reads_the_same_before_and_after(harness: ServiceHarness, times: list[str]) -> None:
    before = latest_base_files(harness.storage, harness.timeline())
    archiver(harness).run()
    assert latest_base_files(harness.storage, harness.timeline()) == before
    assert all(harness.timeline().is_completed(time) for time in times)


def test_a_snapshot_of_the_past_knows_when_archived_writes_were_completed(harness: ServiceHarness) -> None:
    harness.put("p/g-0")
    slow = harness.open().begin("commit", "UPSERT")
    fast = harness.put("q/h-0")
    assert slow.publish(harness.rewrite(slow, "p/g-0")).is_committed
    for _ in range(4):
        harness.put("r/k-0")
    harness.clock.advance(HOUR_S)
    before = latest_base_files(harness.storage, harness.timeline(), as_of=add_ms(fast, 1))
    archiver(harness).run()
    assert harness.timeline().get(slow.instant) is None
    assert latest_base_files(harness.storage, harness.timeline(), as_of=add_ms(fast, 1)) == before


def test_what_was_completed_within_the_hour_stays(harness: ServiceHarness) -> None:
    old = [harness.put("p/g-0") for _ in range(2)]
    harness.clock.advance(HOUR_S)
    new = [harness.put("p/g-0") for _ in range(4)]
    archiver(harness).run()
    assert (active(harness), archived(harness)) == (new, old)


def test_nothing_behind_a_pending_write_goes_and_the_one_before_it_stays(harness: ServiceHarness) -> None:
    first = [harness.put("p/g-0") for _ in range(3)]
    running = harness.open().begin("commit", "UPSERT")
    later = [harness.put("p/g-0") for _ in range(3)]
    harness.clock.advance(HOUR_S)
    archiver(harness).run()
    assert (archived(harness), active(harness)) == (first[:2], [first[2], running.instant, *later])
    running.abort("enough")
    assert not harness.timeline().is_completed(running.instant)


def test_a_write_that_was_completed_beside_a_pending_one_stays_with_what_follows(harness: ServiceHarness) -> None:
    first = harness.put("p/g-0")
    beside = harness.open().begin("commit", "UPSERT")
    harness.put("q/h-0")
    running = harness.open().begin("commit", "UPSERT")
    assert beside.publish(harness.rewrite(beside, "p/g-0")).is_committed
    for _ in range(4):
        harness.put("r/k-0")
    harness.clock.advance(HOUR_S)
    archiver(harness).run()
    assert archived(harness) == [first]
    running.abort("enough")


@pytest.mark.parametrize("action", ["clean", "rollback", "restore"])
def test_nothing_that_overlaps_a_pending_service_goes(harness: ServiceHarness, times: list[str], action: str) -> None:
    create_instant(harness.storage, LAYOUT_2, instant=Instant(add_ms(times[2], 2), action, State.REQUESTED))
    view = archiver(harness)
    view.run()
    assert archived(harness) == times[:3]


def test_a_savepoint_holds_its_write_and_all_after_it(harness: ServiceHarness, times: list[str]) -> None:
    harness.foreign_instant(times[1], "savepoint", add_ms(times[5], 2), SavepointMetadata("me", 1, "").encode())
    archiver(harness).run()
    assert archived(harness) == times[:1]


def test_what_the_cleaner_counts_on_stays(harness: ServiceHarness, times: list[str]) -> None:
    archiver(harness, hoodie__clean__commits__retained=5).run()
    assert archived(harness) == times[:1]


def test_a_replacing_write_stays_until_what_it_replaced_is_gone(harness: ServiceHarness) -> None:
    first = harness.put("p/g-0")
    replacing = harness.put("p/h-0", replaces=("p/g-0",))
    for _ in range(4):
        harness.put("q/k-0")
    harness.clock.advance(HOUR_S)
    archiver(harness).run()
    assert archived(harness) == [first]
    harness.cleaner(commits__retained=1).run()
    harness.clock.advance(HOUR_S)
    archiver(harness).run()
    assert replacing in archived(harness)
    assert {file.file_id for file in latest_base_files(harness.storage, harness.timeline())} == {"h-0", "k-0"}


def test_an_instant_with_a_heartbeat_file_stays_with_what_follows(harness: ServiceHarness, times: list[str]) -> None:
    harness.storage.replace(heartbeat_path(times[2]), b"")
    archiver(harness).run()
    assert archived(harness) == times[:2]


def test_the_instant_of_the_last_claim_stays(harness: ServiceHarness) -> None:
    for n in range(6):
        harness.foreign_commit(f"2023111422131900{n}", f"2023111422132900{n}", "g-0")
    last = harness.put("p/h-0")
    harness.clock.advance(HOUR_S)
    archiver(harness, hoodie__keep__min__commits=1, hoodie__clean__commits__retained=1).run()
    assert last in active(harness)
    assert harness.claims()[-1].instant == last


def test_cleans_and_rollbacks_go_with_the_writes_around_them(harness: ServiceHarness) -> None:
    for _ in range(3):
        harness.put("p/g-0")
    clean = harness.cleaner(commits__retained=1).run().instants[0]
    harness.clock.advance(1)
    harness.open().begin("commit", "UPSERT").abort("enough")
    rollback = harness.timeline().completed(("rollback",))[0].requested
    harness.clock.advance(1)
    for _ in range(4):
        harness.put("p/g-0")
    harness.clock.advance(HOUR_S)
    archiver(harness).run()
    assert {clean, rollback} <= set(archived(harness))
    assert {i.action for i in harness.timeline().instants} == {"commit"}
    rows = list_archived_since(harness.storage, LAYOUT_2, completed_after="20200101000000000")
    assert {row.action for row in rows} == {"commit", "clean", "rollback"}


@pytest.mark.parametrize("action", ["indexing", "schemacommit"])
def test_what_nobody_reads_once_it_is_done_goes_too_and_blocks_nothing(
    harness: ServiceHarness, times: list[str], action: str
) -> None:
    """A JVM's archiver would leave it, and archive the later writes around it."""
    done, late = add_ms(times[1], 2), add_ms(times[4], 2)
    harness.foreign_instant(done, action, add_ms(times[1], 3), b"theirs")
    harness.foreign_instant(late, action, add_ms(times[4], 3), b"theirs")
    archiver(harness).run()
    assert (archived(harness), active(harness)) == (sorted([*times[:4], done]), [times[4], late, times[5]])
    rows = list_archived_since(harness.storage, LAYOUT_2, completed_after="20200101000000000")
    assert [(row.requested, row.metadata) for row in rows if row.action == action] == [(done, b"theirs")]
    assert not [name for name in harness.names(LAYOUT_2.folder) if done in name]


@pytest.mark.parametrize("action", ["indexing", "schemacommit"])
def test_nothing_is_archived_that_overlaps_one_that_is_under_way(
    harness: ServiceHarness, times: list[str], action: str
) -> None:
    create_instant(harness.storage, LAYOUT_2, instant=Instant(add_ms(times[2], 2), action, State.REQUESTED))
    archiver(harness).run()
    assert archived(harness) == times[:3]


@pytest.mark.parametrize("before", [1, 4])
def test_strays_of_a_rolled_back_write_go_before_readers_would_take_them_for_committed(
    harness: ServiceHarness, before: int
) -> None:
    """Also where the write was begun, and its rollback too, after the last one that is archived."""
    for _ in range(before):
        harness.put("p/g-0")
    undone = harness.open().begin("commit", "UPSERT")
    undone.abort("enough")
    harness.clock.advance(1)
    harness.storage.replace(f"p/s-0_0-0-0_{undone.instant}.parquet", b"of a task that died between its two looks")
    for _ in range(6 - before):
        harness.put("p/g-0")
    harness.clock.advance(HOUR_S)
    archiver(harness).run()
    assert undone.instant < str(harness.timeline().first_active)
    assert not any(undone.instant in name for name in harness.names("p"))


def test_parts_are_merged_and_old_versions_dropped(harness: ServiceHarness) -> None:
    times: list[str] = []
    for _ in range(9):
        times += [harness.put("p/g-0") for _ in range(3)]
        harness.clock.advance(HOUR_S)
        archiver(harness, hoodie__timeline__compaction__batch__size=2).run()
    assert archived(harness) == times[:-2]
    parts = [part for name in harness.names(ARCHIVE) if (part := PartName.parse(name))]
    manifests = [name for name in harness.names(ARCHIVE) if name.startswith("manifest_")]
    assert max(part.level for part in parts) >= 2
    assert len(manifests) <= 3 + 3
    assert all(is_archived(harness.storage, LAYOUT_2, requested=time) for time in times[:-2])


@pytest.mark.parametrize("kept", [1, 4])
def test_as_many_versions_of_the_history_stay_readable_as_asked(harness: ServiceHarness, kept: int) -> None:
    for _ in range(8):
        for _ in range(3):
            harness.put("p/g-0")
        harness.clock.advance(HOUR_S)
        archiver(harness, hoodie__timeline__manifest__retained__versions=kept).run()
    assert len([name for name in harness.names(ARCHIVE) if name.startswith("manifest_")]) == kept


def test_the_timeline_stays_short_in_a_long_lived_table(harness: ServiceHarness) -> None:
    for _ in range(30):
        harness.put("p/g-0")
        harness.clock.advance(HOUR_S)
        harness.cleaner(commits__retained=1).run(everywhere=False)
        archiver(harness).run()
    assert len(harness.timeline().completed(("commit",))) <= 5
    assert len(harness.names(LAYOUT_2.folder)) < 35
    assert len(harness.files()) == 2


def _kept(harness: ServiceHarness, times: list[str]) -> None:
    """No instant is lost, and readers take all of them for completed."""
    timeline = harness.timeline()
    for time in times:
        assert timeline.is_completed(time)
        assert timeline.get(time) is not None or is_archived(harness.storage, LAYOUT_2, requested=time)
    assert timeline.pending() == ()
    assert [file.instant for file in latest_base_files(harness.storage, timeline)] == [times[-1]]


@pytest.mark.parametrize("life", range(34))
def test_an_archiver_may_die_before_any_of_its_steps(harness: ServiceHarness, times: list[str], life: int) -> None:
    try:
        archiver(harness, storage=MortalStorage(harness.storage, life)).run()
    except Killed:
        _kept(harness, times)
    harness.clock.advance(HOUR_S)
    times += [harness.put("p/g-0") for _ in range(3)]
    harness.clock.advance(HOUR_S)
    archiver(harness).run()
    _kept(harness, times)
    assert (archived(harness), active(harness)) == (times[:-2], times[-2:])


def test_two_archivers_without_a_lock_lose_nothing(harness: ServiceHarness, times: list[str]) -> None:
    left = [True]

    def archive_too(_: StopPoint) -> None:
        if left and left.pop():
            archiver(harness).run()

    archiver(harness, trace=archive_too).run()
    _kept(harness, times)
    assert archived(harness) == times[:4]


def test_a_manifest_that_another_archiver_made_meanwhile_is_built_upon(
    harness: ServiceHarness, monkeypatch: Any
) -> None:
    history = ArchivedHistory(harness.storage, LAYOUT_2)
    row = _row("20231114221319000")
    create = MemoryStorage.create_if_absent

    def intrude(storage: MemoryStorage, path: str, data: bytes) -> bool:
        if path.endswith("manifest_1"):
            monkeypatch.undo()
            ArchivedHistory(harness.storage, LAYOUT_2).add([_row("20231114221318000")])
        return create(storage, path, data)

    monkeypatch.setattr(MemoryStorage, "create_if_absent", intrude)
    history.add([row])
    assert archived(harness) == ["20231114221318000", "20231114221319000"]
    assert harness.storage.read(f"{ARCHIVE}/_version_") == b"2"


def _row(time: str) -> Any:
    from hudi_locks.format import ArchiveRow

    return ArchiveRow(time, add_ms(time, 1), "commit", b"data")


def test_an_archiver_that_cannot_write_leaves_the_timeline_as_it_is(harness: ServiceHarness, times: list[str]) -> None:
    class Full(MemoryStorage):
        def create_if_absent(self, path: str, data: bytes) -> bool:
            if path.startswith(ARCHIVE):
                raise StorageError("no space left on device", path=path)
            return super().create_if_absent(path, data)

    full = Full(harness.clock)
    full._files = harness.storage._files
    with pytest.raises(StorageError, match="no space"):
        archiver(harness, storage=full).run()
    assert active(harness) == times


def test_archival_disturbs_no_write_under_way(harness: ServiceHarness, times: list[str]) -> None:
    harness.foreign = True
    tx = harness.open().begin("commit", "UPSERT")
    archiver(harness).run()
    assert tx.publish(harness.rewrite(tx, "p/g-0")).outcome is Outcome.COMMITTED
    assert [claim.kind for claim in harness.claims()].count(ClaimKind.VOID) == 0


def test_a_publish_that_slept_while_its_instant_was_archived_brings_nothing_back(harness: ServiceHarness) -> None:
    def archive_all() -> None:
        for _ in range(6):
            harness.put("q/h-0")
        harness.clock.advance(HOUR_S)
        archiver(harness).run()

    left = [archive_all]

    def trace(point: StopPoint) -> None:
        if point is StopPoint.PUBLISH_LOOKED and left:
            left.pop()()

    tx = harness.open(trace=trace).begin("commit", "UPSERT")
    metadata = harness.rewrite(tx, "p/g-0")
    tx._state.heartbeat.stop()
    tx._state.heartbeat._last_s = float("inf")
    assert tx.publish(metadata).outcome is Outcome.COMMITTED
    assert harness.timeline().get(tx.instant) is None
    assert is_archived(harness.storage, LAYOUT_2, requested=tx.instant)


def test_age_is_a_setting_of_tests_alone(harness: ServiceHarness) -> None:
    for _ in range(6):
        harness.put("p/g-0")
    assert archiver(harness).run().archived == 0
    young = archiver(harness)
    young._settings = replace(young._settings, min_age_ms=0)
    assert young.run().archived == 4
