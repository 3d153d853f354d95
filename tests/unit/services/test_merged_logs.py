"""Services beside log compactions: what these make is kept, removed and taken back with its file slice."""

from __future__ import annotations

from typing import Any

import pytest
from compaction_harness import NON_BLOCKING
from log_compaction_harness import LogCompactionHarness
from service_harness import ServiceHarness

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
def service(harness: ServiceHarness) -> LogCompactionHarness:
    return LogCompactionHarness.at(harness)


def services(service: LogCompactionHarness, **options: Any) -> TableServices:
    return TableServices(service.harness.open(**NON_BLOCKING), options or BY_COMMITS)


def append(service: LogCompactionHarness, *groups: str) -> str:
    service.harness.clock.advance(1)
    return service.append(*groups)


def merge(service: LogCompactionHarness) -> str:
    service.harness.clock.advance(1)
    merging = service.log_compaction()
    instant = merging.schedule()
    result = service.join(merging)
    assert result is not None
    assert result.is_committed
    return str(instant)


def compact(service: LogCompactionHarness) -> str:
    service.harness.clock.advance(1)
    instant = service.compaction().schedule()
    assert service.run(service.compaction()) is not None
    return str(instant)


def files_of(service: LogCompactionHarness, *instants: str) -> int:
    names = service.harness.names("p")
    return sum(any(instant in name for instant in instants) for name in names)


def test_a_clean_removes_it_with_what_it_merged_once_a_base_file_took_both_over(service: LogCompactionHarness) -> None:
    written = [append(service, ZERO), append(service, ZERO)]
    merged = merge(service)
    services(service, **BY_VERSIONS).clean()
    assert files_of(service, *written, merged) == 3
    compact(service)
    later = append(service, ZERO)
    services(service, **BY_VERSIONS).clean()
    assert files_of(service, *written, merged) == 0
    assert service.seen() == {ZERO: [*written, later]}


def test_snapshots_stay_whole_while_instants_are_archived(service: LogCompactionHarness) -> None:
    written = []
    for number in range(8):
        written.append(append(service, ZERO))
        if number % 2:
            merge(service)
        if number % 4 == 3:
            compact(service)
        service.harness.clock.advance(DAY_S)
        services(service).clean()
        services(service).archive()
        assert service.seen() == {ZERO: written}
    archived = list_archived_times(
        service.harness.storage, service.harness.timeline().layout, completed_after="20200101000000000"
    )
    assert len(archived) > 3
    assert service.log_compaction(threshold=1).schedule() is None
    assert append(service, ZERO) == service.seen()[ZERO][-1]


def test_a_restore_takes_it_back_and_a_savepoint_of_it_keeps_it(service: LogCompactionHarness) -> None:
    written = [append(service, ZERO), append(service, ZERO, ONE)]
    before = services(service).savepoints.create(written[-1])
    merged = merge(service)
    later = [append(service, ZERO), append(service, ZERO)]
    kept = services(service).savepoints.create(later[0])
    again = merge(service)
    compact(service)
    append(service, ZERO)
    services(service, **BY_VERSIONS).clean()
    assert set(services(service).restore(kept.instant).undone) >= {later[1], again}
    assert service.seen() == {ZERO: [*written, later[0]], ONE: written[1:]}
    assert (files_of(service, merged), files_of(service, again)) == (1, 0)
    assert merged in services(service).restore(before.instant).undone
    assert service.seen() == {ZERO: written, ONE: written[1:]}
    assert files_of(service, merged) == 0
    merge(service)
    assert service.seen() == {ZERO: written, ONE: written[1:]}


def test_one_that_is_under_way_at_a_restore_is_not_published(service: LogCompactionHarness) -> None:
    written = [append(service, ZERO), append(service, ZERO)]
    services(service).savepoints.create(written[-1])
    merging = service.log_compaction()
    merging.schedule()
    taken = merging.take()
    assert taken is not None
    draft = service.join_logs(*taken)
    services(service).restore(written[-1])
    assert taken[0].publish(draft).outcome is Outcome.ABORTED
    assert service.seen() == {ZERO: written}
    merge(service)
    assert service.seen() == {ZERO: written}
