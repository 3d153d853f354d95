"""Services beside log compactions: what these make is kept, removed and taken back with its file slice."""

from __future__ import annotations

from typing import Any

import pytest
from compaction_desk import NON_BLOCKING
from log_compaction_desk import LogCompactionDesk
from service_desk import ServiceDesk

from hudi_locks.services import TableServices
from hudi_locks.timeline.archive import list_archived_times
from hudi_locks.transaction import Outcome

ZERO, ONE = (f"{bucket:08d}-0000-0000-0000-000000000000-0" for bucket in range(2))
DAY_S = 86_400.0
BY_COMMITS = {
    "hoodie.clean.commits.retained": 1,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
    "hoodie.compact.inline.max.delta.commits": 1,
}
BY_VERSIONS = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1}


@pytest.fixture
def at_desk(desk: ServiceDesk) -> LogCompactionDesk:
    return LogCompactionDesk.at(desk)


def services(at_desk: LogCompactionDesk, **options: Any) -> TableServices:
    return TableServices(at_desk.desk.open(**NON_BLOCKING), options or BY_COMMITS)


def append(at_desk: LogCompactionDesk, *groups: str) -> str:
    at_desk.desk.clock.advance(1)
    return at_desk.append(*groups)


def merge(at_desk: LogCompactionDesk) -> str:
    at_desk.desk.clock.advance(1)
    merging = at_desk.log_compaction()
    instant = merging.schedule()
    result = at_desk.join(merging)
    assert result is not None
    assert result.is_committed
    return str(instant)


def compact(at_desk: LogCompactionDesk) -> str:
    at_desk.desk.clock.advance(1)
    instant = at_desk.compaction().schedule()
    assert at_desk.run(at_desk.compaction()) is not None
    return str(instant)


def files_of(at_desk: LogCompactionDesk, *instants: str) -> int:
    names = at_desk.desk.names("p")
    return sum(any(instant in name for instant in instants) for name in names)


def test_a_clean_removes_it_with_what_it_merged_once_a_base_file_took_both_over(at_desk: LogCompactionDesk) -> None:
    written = [append(at_desk, ZERO), append(at_desk, ZERO)]
    merged = merge(at_desk)
    services(at_desk, **BY_VERSIONS).clean()
    assert files_of(at_desk, *written, merged) == 3
    compact(at_desk)
    later = append(at_desk, ZERO)
    services(at_desk, **BY_VERSIONS).clean()
    assert files_of(at_desk, *written, merged) == 0
    assert at_desk.seen() == {ZERO: [*written, later]}


def test_snapshots_stay_whole_while_instants_are_archived(at_desk: LogCompactionDesk) -> None:
    written = []
    for number in range(8):
        written.append(append(at_desk, ZERO))
        if number % 2:
            merge(at_desk)
        if number % 4 == 3:
            compact(at_desk)
        at_desk.desk.clock.advance(DAY_S)
        services(at_desk).clean()
        services(at_desk).archive()
        assert at_desk.seen() == {ZERO: written}
    archived = list_archived_times(
        at_desk.desk.storage, at_desk.desk.timeline().layout, completed_after="20200101000000000"
    )
    assert len(archived) > 3
    assert at_desk.log_compaction(threshold=1).schedule() is None
    assert append(at_desk, ZERO) == at_desk.seen()[ZERO][-1]


def test_a_restore_takes_it_back_and_a_savepoint_of_it_keeps_it(at_desk: LogCompactionDesk) -> None:
    written = [append(at_desk, ZERO), append(at_desk, ZERO, ONE)]
    before = services(at_desk).savepoints.create(written[-1])
    merged = merge(at_desk)
    later = [append(at_desk, ZERO), append(at_desk, ZERO)]
    kept = services(at_desk).savepoints.create(later[0])
    again = merge(at_desk)
    compact(at_desk)
    append(at_desk, ZERO)
    services(at_desk, **BY_VERSIONS).clean()
    assert set(services(at_desk).restore(kept.instant).undone) >= {later[1], again}
    assert at_desk.seen() == {ZERO: [*written, later[0]], ONE: written[1:]}
    assert (files_of(at_desk, merged), files_of(at_desk, again)) == (1, 0)
    assert merged in services(at_desk).restore(before.instant).undone
    assert at_desk.seen() == {ZERO: written, ONE: written[1:]}
    assert files_of(at_desk, merged) == 0
    merge(at_desk)
    assert at_desk.seen() == {ZERO: written, ONE: written[1:]}


def test_one_that_is_under_way_at_a_restore_is_not_published(at_desk: LogCompactionDesk) -> None:
    written = [append(at_desk, ZERO), append(at_desk, ZERO)]
    services(at_desk).savepoints.create(written[-1])
    merging = at_desk.log_compaction()
    merging.schedule()
    taken = merging.take()
    assert taken is not None
    draft = at_desk.join_logs(*taken)
    services(at_desk).restore(written[-1])
    assert taken[0].publish(draft).outcome is Outcome.ABORTED
    assert at_desk.seen() == {ZERO: written}
    merge(at_desk)
    assert at_desk.seen() == {ZERO: written}
