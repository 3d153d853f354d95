"""Savepoints of a merge-on-read table keep logs too, and a restore brings back exactly what they showed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from compaction_desk import NON_BLOCKING, CompactionDesk
from log_history import LogHistory
from service_desk import ServiceDesk
from transaction_desk import Killed, heartbeats_that_end, kill

from hudi_locks.errors import SavepointRefused
from hudi_locks.format import LogFileName, RestoreMetadata, SavepointMetadata
from hudi_locks.services import RestoreResult, Savepoint, Savepoints, TableServices
from hudi_locks.transaction import Outcome, StopPoint

ZERO, ONE = (f"{bucket:08d}-0000-0000-0000-000000000000-0" for bucket in range(2))
BY_VERSIONS = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1}
BY_COMMITS = {"hoodie.clean.commits.retained": 1}
Shown = dict[str, list[str]]


@pytest.fixture
def at_desk(desk: ServiceDesk) -> CompactionDesk:
    return CompactionDesk.at(desk)


def services(at_desk: CompactionDesk, trace: Any = None, **options: Any) -> TableServices:
    return TableServices(at_desk.desk.open(trace=trace, **NON_BLOCKING), options or BY_COMMITS)


def save(at_desk: CompactionDesk, instant: str | None = None) -> Savepoint:
    made = services(at_desk).savepoints.create(instant)
    at_desk.desk.clock.advance(1)
    return made


def restore(at_desk: CompactionDesk, instant: str, trace: Any = None) -> RestoreResult:
    return services(at_desk, trace).restore(instant)


def append(at_desk: CompactionDesk, *groups: str) -> str:
    at_desk.desk.clock.advance(1)
    return at_desk.append(*groups)


def compact(at_desk: CompactionDesk) -> str:
    at_desk.desk.clock.advance(1)
    instant = at_desk.compaction().schedule()
    assert at_desk.run(at_desk.compaction()) is not None
    assert instant is not None
    return instant


def files(at_desk: CompactionDesk) -> set[str]:
    return {name for name in at_desk.desk.names("p") if not name.startswith(".hoodie")}


def kept_by(at_desk: CompactionDesk, instant: str) -> SavepointMetadata:
    timeline = at_desk.desk.timeline()
    path = next(timeline.paths[i] for i in timeline.completed(("savepoint",)) if i.requested == instant)
    return SavepointMetadata.decode(at_desk.desk.storage.read(path) or b"", path)


def test_a_savepoint_names_the_base_files_and_logs_of_its_slices(at_desk: CompactionDesk) -> None:
    append(at_desk, ZERO)
    base = compact(at_desk)
    last = append(at_desk, ZERO, ONE)
    assert save(at_desk).instant == last
    names = {f"{ZERO}_0-0-0_{base}.parquet", *(str(LogFileName(group, last)) for group in (ZERO, ONE))}
    assert set(kept_by(at_desk, last).files["p"]) == names


@pytest.mark.parametrize("policy", [BY_COMMITS, BY_VERSIONS], ids=["by commits", "by versions"])
def test_cleans_leave_what_a_savepoint_keeps_and_a_restore_brings_it_back(
    at_desk: CompactionDesk, policy: dict[str, Any]
) -> None:
    append(at_desk, ZERO, ONE)
    compact(at_desk)
    kept = append(at_desk, ZERO, ONE)
    shown, there = at_desk.seen(), files(at_desk)
    save(at_desk)
    later = [append(at_desk, ZERO), compact(at_desk), append(at_desk, ONE), compact(at_desk), append(at_desk, ONE)]
    assert services(at_desk, **policy).clean().deleted > 0
    assert kept_by(at_desk, kept).paths <= {f"p/{name}" for name in files(at_desk)}
    result = restore(at_desk, kept)
    assert result.undone == tuple(reversed(later))
    assert at_desk.seen() == shown
    assert files(at_desk) <= there
    again = append(at_desk, ZERO)
    compact(at_desk)
    assert at_desk.seen()[ZERO] == [*shown[ZERO], again]


def test_a_restore_tells_which_logs_and_base_files_it_removed(at_desk: CompactionDesk) -> None:
    kept = append(at_desk, ZERO)
    log, base = append(at_desk, ZERO), compact(at_desk)
    result = restore(at_desk, kept)
    assert result.deleted == 2
    timeline = at_desk.desk.timeline()
    path = timeline.paths[timeline.completed(("restore",))[-1]]
    done = RestoreMetadata.decode(at_desk.desk.storage.read(path) or b"", path).rollbacks
    names = {time: done[time][0].partitions["p"].deleted[0].rpartition("/")[2] for time in (log, base)}
    assert names == {log: str(LogFileName(ZERO, log)), base: f"{ZERO}_0-0-0_{base}.parquet"}


def test_a_log_that_overlaps_what_is_kept_is_there_after_the_restore(at_desk: CompactionDesk) -> None:
    """Begun before the savepoint's write and completed after a compaction began, both before the savepoint was made."""
    slow = at_desk.begin()
    draft = at_desk.log(slow, ZERO)
    first = append(at_desk, ZERO)
    at_desk.compaction().schedule()
    kept = append(at_desk, ONE)
    assert slow.publish(draft).is_committed
    assert at_desk.run(at_desk.compaction()) is not None
    save(at_desk, kept)
    compact(at_desk)
    services(at_desk).clean()
    restore(at_desk, kept)
    assert {group: sorted(rows) for group, rows in at_desk.seen().items()} == {ZERO: [slow.instant, first], ONE: [kept]}


@pytest.mark.parametrize("policy", [BY_COMMITS, BY_VERSIONS], ids=["by commits", "by versions"])
def test_no_savepoint_is_made_of_a_slice_whose_logs_were_cleaned(
    at_desk: CompactionDesk, policy: dict[str, Any]
) -> None:
    first = append(at_desk, ZERO)
    over = append(at_desk, ZERO)
    compact(at_desk)
    last = append(at_desk, ZERO)
    assert services(at_desk, **policy).clean().deleted == 2
    for instant in (first, over):
        with pytest.raises(SavepointRefused, match=ZERO if policy is BY_VERSIONS else "kept only what is shown"):
            save(at_desk, instant)
    assert save(at_desk, last).files == 2


def test_no_savepoint_is_made_of_what_a_clean_is_about_to_remove(at_desk: CompactionDesk) -> None:
    first = append(at_desk, ZERO)
    compact(at_desk)
    append(at_desk, ZERO)

    def die(point: StopPoint) -> None:
        if point is StopPoint.SERVICE_INFLIGHT:
            kill()

    cleaner = at_desk.desk.cleaner(trace=die, policy="KEEP_LATEST_FILE_VERSIONS", fileversions__retained=1)
    with pytest.raises(Killed):
        cleaner.run()
    with pytest.raises(SavepointRefused, match="is to remove"):
        save(at_desk, first)


def test_a_plan_that_waits_and_a_compaction_under_way_are_undone_too(at_desk: CompactionDesk) -> None:
    kept = append(at_desk, ZERO)
    shown = at_desk.seen()
    save(at_desk)
    append(at_desk, ZERO)
    at_desk.compaction().schedule()
    taken = at_desk.compaction().take()
    assert taken is not None
    draft = at_desk.merge(*taken)
    late = at_desk.begin()
    log = at_desk.log(late, ONE)
    restore(at_desk, kept)
    assert [taken[0].publish(draft).outcome, late.publish(log).outcome] == [Outcome.ABORTED, Outcome.ABORTED]
    assert at_desk.seen() == shown
    assert at_desk.desk.timeline().pending() == ()
    assert files(at_desk) == {str(LogFileName(ZERO, kept))}
    assert at_desk.compaction().schedule() is not None


POINTS = [StopPoint.SERVICE_CLAIMED, StopPoint.SERVICE_INFLIGHT, StopPoint.RESTORE_UNDONE, StopPoint.SERVICE_DONE]


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.value)
def test_a_restore_may_die_anywhere_and_is_finished_by_repeating_it(at_desk: CompactionDesk, point: StopPoint) -> None:
    kept = append(at_desk, ZERO)
    shown = at_desk.seen()
    save(at_desk)
    append(at_desk, ZERO)
    compact(at_desk)
    append(at_desk, ZERO)
    with pytest.raises(Killed):
        restore(at_desk, kept, lambda found: kill() if found is point else None)
    at_desk.desk.clock.advance(300)
    restore(at_desk, kept)
    assert at_desk.seen() == shown
    assert len(files(at_desk)) == 1


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
    timeline = history.at.desk.timeline()
    done = timeline.completed(("commit", "deltacommit"))
    if not done:
        history.begin(1)
        history.end(0)
    savepoints = Savepoints(history.at.desk.open(**NON_BLOCKING).coordinator)
    kept = savepoints.create().instant
    shown = in_order(history.at.seen(as_of_requested=kept))
    history.play_at_random(seed + 100, 25)
    assert kept_by(history.at, kept).paths <= {f"p/{name}" for name in files(history.at)}
    restore(history.at, kept)
    return shown, in_order(history.at.seen())


def in_order(shown: Mapping[str, Iterable[str]]) -> Shown:
    return {group: sorted(rows) for group, rows in shown.items()}
