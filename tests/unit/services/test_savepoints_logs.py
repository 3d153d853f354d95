"""Savepoints of a merge-on-read table keep logs too, and a restore brings back exactly what they showed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from compaction_harness import NON_BLOCKING, CompactionHarness
from log_history import LogHistory
from service_harness import ServiceHarness
from transaction_harness import Killed, heartbeats_that_end, kill

from hudi_locks.errors import SavepointRefused
from hudi_locks.format import LogFileName, RestoreMetadata, SavepointMetadata
from hudi_locks.services import RestoreResult, Savepoint, Savepoints, TableServices
from hudi_locks.transaction import Outcome, StopPoint

ZERO, ONE = (f"{bucket:08d}-0000-0000-0000-000000000000-0" for bucket in range(2))
BY_VERSIONS = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1}
BY_COMMITS = {"hoodie.clean.commits.retained": 1}
Shown = dict[str, list[str]]


@pytest.fixture
def service(harness: ServiceHarness) -> CompactionHarness:
    return CompactionHarness.at(harness)


def services(service: CompactionHarness, trace: Any = None, **options: Any) -> TableServices:
    return TableServices(service.harness.open(trace=trace, **NON_BLOCKING), options or BY_COMMITS)


def save(service: CompactionHarness, instant: str | None = None) -> Savepoint:
    made = services(service).savepoints.create(instant)
    service.harness.clock.advance(1)
    return made


def restore(service: CompactionHarness, instant: str, trace: Any = None) -> RestoreResult:
    return services(service, trace).restore(instant)


def append(service: CompactionHarness, *groups: str) -> str:
    service.harness.clock.advance(1)
    return service.append(*groups)


def compact(service: CompactionHarness) -> str:
    service.harness.clock.advance(1)
    instant = service.compaction().schedule()
    assert service.run(service.compaction()) is not None
    assert instant is not None
    return instant


def files(service: CompactionHarness) -> set[str]:
    return {name for name in service.harness.names("p") if not name.startswith(".hoodie")}


def kept_by(service: CompactionHarness, instant: str) -> SavepointMetadata:
    timeline = service.harness.timeline()
    path = next(timeline.paths[i] for i in timeline.completed(("savepoint",)) if i.requested == instant)
    return SavepointMetadata.decode(service.harness.storage.read(path) or b"", path)


def test_a_savepoint_names_the_base_files_and_logs_of_its_slices(service: CompactionHarness) -> None:
    append(service, ZERO)
    base = compact(service)
    last = append(service, ZERO, ONE)
    assert save(service).instant == last
    names = {f"{ZERO}_0-0-0_{base}.parquet", *(str(LogFileName(group, last)) for group in (ZERO, ONE))}
    assert set(kept_by(service, last).files["p"]) == names


@pytest.mark.parametrize("policy", [BY_COMMITS, BY_VERSIONS], ids=["by commits", "by versions"])
def test_cleans_leave_what_a_savepoint_keeps_and_a_restore_brings_it_back(
    service: CompactionHarness, policy: dict[str, Any]
) -> None:
    append(service, ZERO, ONE)
    compact(service)
    kept = append(service, ZERO, ONE)
    shown, there = service.seen(), files(service)
    save(service)
    later = [append(service, ZERO), compact(service), append(service, ONE), compact(service), append(service, ONE)]
    assert services(service, **policy).clean().deleted > 0
    assert kept_by(service, kept).paths <= {f"p/{name}" for name in files(service)}
    result = restore(service, kept)
    assert result.undone == tuple(reversed(later))
    assert service.seen() == shown
    assert files(service) <= there
    again = append(service, ZERO)
    compact(service)
    assert service.seen()[ZERO] == [*shown[ZERO], again]


def test_a_restore_tells_which_logs_and_base_files_it_removed(service: CompactionHarness) -> None:
    kept = append(service, ZERO)
    log, base = append(service, ZERO), compact(service)
    result = restore(service, kept)
    assert result.deleted == 2
    timeline = service.harness.timeline()
    path = timeline.paths[timeline.completed(("restore",))[-1]]
    done = RestoreMetadata.decode(service.harness.storage.read(path) or b"", path).rollbacks
    names = {time: done[time][0].partitions["p"].deleted[0].rpartition("/")[2] for time in (log, base)}
    assert names == {log: str(LogFileName(ZERO, log)), base: f"{ZERO}_0-0-0_{base}.parquet"}


def test_a_log_that_overlaps_what_is_kept_is_there_after_the_restore(service: CompactionHarness) -> None:
    """Begun before the savepoint's write and completed after a compaction began, both before the savepoint was made."""
    slow = service.begin()
    draft = service.log(slow, ZERO)
    first = append(service, ZERO)
    service.compaction().schedule()
    kept = append(service, ONE)
    assert slow.publish(draft).is_committed
    assert service.run(service.compaction()) is not None
    save(service, kept)
    compact(service)
    services(service).clean()
    restore(service, kept)
    assert {group: sorted(rows) for group, rows in service.seen().items()} == {ZERO: [slow.instant, first], ONE: [kept]}


@pytest.mark.parametrize("policy", [BY_COMMITS, BY_VERSIONS], ids=["by commits", "by versions"])
def test_no_savepoint_is_made_of_a_slice_whose_logs_were_cleaned(
    service: CompactionHarness, policy: dict[str, Any]
) -> None:
    first = append(service, ZERO)
    over = append(service, ZERO)
    compact(service)
    last = append(service, ZERO)
    assert services(service, **policy).clean().deleted == 2
    for instant in (first, over):
        with pytest.raises(SavepointRefused, match=ZERO if policy is BY_VERSIONS else "kept only what is shown"):
            save(service, instant)
    assert save(service, last).files == 2


def test_no_savepoint_is_made_of_what_a_clean_is_about_to_remove(service: CompactionHarness) -> None:
    first = append(service, ZERO)
    compact(service)
    append(service, ZERO)

    def die(point: StopPoint) -> None:
        if point is StopPoint.SERVICE_INFLIGHT:
            kill()

    cleaner = service.harness.cleaner(trace=die, policy="KEEP_LATEST_FILE_VERSIONS", fileversions__retained=1)
    with pytest.raises(Killed):
        cleaner.run()
    with pytest.raises(SavepointRefused, match="is to remove"):
        save(service, first)


def test_a_plan_that_waits_and_a_compaction_under_way_are_undone_too(service: CompactionHarness) -> None:
    kept = append(service, ZERO)
    shown = service.seen()
    save(service)
    append(service, ZERO)
    service.compaction().schedule()
    taken = service.compaction().take()
    assert taken is not None
    draft = service.merge(*taken)
    late = service.begin()
    log = service.log(late, ONE)
    restore(service, kept)
    assert [taken[0].publish(draft).outcome, late.publish(log).outcome] == [Outcome.ABORTED, Outcome.ABORTED]
    assert service.seen() == shown
    assert service.harness.timeline().pending() == ()
    assert files(service) == {str(LogFileName(ZERO, kept))}
    assert service.compaction().schedule() is not None


POINTS = [StopPoint.SERVICE_CLAIMED, StopPoint.SERVICE_INFLIGHT, StopPoint.RESTORE_UNDONE, StopPoint.SERVICE_DONE]


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.value)
def test_a_restore_may_die_anywhere_and_is_finished_by_repeating_it(
    service: CompactionHarness, point: StopPoint
) -> None:
    kept = append(service, ZERO)
    shown = service.seen()
    save(service)
    append(service, ZERO)
    compact(service)
    append(service, ZERO)
    with pytest.raises(Killed):
        restore(service, kept, lambda found: kill() if found is point else None)
    service.harness.clock.advance(300)
    restore(service, kept)
    assert service.seen() == shown
    assert len(files(service)) == 1


@pytest.mark.parametrize("seed", range(6))
def test_whatever_came_before_and_after_a_savepoint_a_restore_shows_it_again(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with heartbeats_that_end(monkeypatch):
        kept, restored = go_back_by_chance(seed)
    assert restored == kept


def go_back_by_chance(seed: int) -> tuple[Shown, Shown]:
    """What a savepoint kept of a history, and what was there when much more had come and a restore undone it."""
    history = LogHistory({"commits__retained": 1})
    history.play_at_random(seed, 25)
    timeline = history.at.harness.timeline()
    done = timeline.completed(("commit", "deltacommit"))
    if not done:
        history.begin(1)
        history.end(0)
    savepoints = Savepoints(history.at.harness.open(**NON_BLOCKING).coordinator)
    kept = savepoints.create().instant
    shown = in_order(history.at.seen(as_of_requested=kept))
    history.play_at_random(seed + 100, 25)
    assert kept_by(history.at, kept).paths <= {f"p/{name}" for name in files(history.at)}
    restore(history.at, kept)
    return shown, in_order(history.at.seen())


def in_order(shown: Mapping[str, Iterable[str]]) -> Shown:
    return {group: sorted(rows) for group, rows in shown.items()}
