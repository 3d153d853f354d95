"""Two writes that come to one file group at the same moment, interleaved on purpose."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from early_conflict_marks import EARLIER, NOW, markers
from hudi_locks_providers.in_process import InProcessLockProvider

from hudi_locks import Capability, Lease, LockScope, Owner
from hudi_locks.early_conflict import (
    DetectionContext,
    GuardedMarkers,
    SimpleDirectMarkerBased,
    SimpleTransactionDirectMarkerBased,
    find_reported,
)
from hudi_locks.errors import HoodieEarlyConflictDetectionException
from hudi_locks.format.claim import FileGroupId
from hudi_locks.markers import DirectMarkers
from hudi_locks.storage import Storage
from hudi_locks.timeline import LAYOUT_2

GROUPS = [FileGroupId(f"p{number % 3}", f"g{number}-0") for number in range(20)]
PATIENCE_S = 20.0


class Telling(InProcessLockProvider):
    """Tells when somebody has to wait, which the manager then does."""

    capabilities = InProcessLockProvider.capabilities - {Capability.TIMED_WAIT, Capability.FAIR, Capability.CANCEL}
    refused: ClassVar[threading.Event] = threading.Event()

    def try_acquire(self, scope: LockScope, owner: Owner, _: float) -> Lease | None:
        lease = super().try_acquire(scope, owner, 0.0)
        if lease is None:
            self.refused.set()
        return lease


class Stopping:
    """A storage that does something else before its call of a number."""

    def __init__(self, storage: Storage, number: int, action: Callable[[], None]) -> None:
        self._storage, self._left, self._action = storage, number, action

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._storage, name)
        if not callable(found):
            return found

        def call(*args: Any) -> Any:
            self._left -= 1
            if self._left == -1:
                self._action()
            return found(*args)

        return call


class Race:
    """Two writes of the same file groups, one of which is stopped in the middle while the other one runs."""

    def __init__(self, ground: Any, kind: Any, *, groups: int = 2) -> None:
        self.ground, self.kind, self.groups = ground, kind, GROUPS[:groups]
        self.errors: dict[str, HoodieEarlyConflictDetectionException] = {}
        self.threads: list[threading.Thread] = []
        for requested in (EARLIER, NOW):
            ground.begin(requested)

    def announce(self, requested: str, storage: Any) -> None:
        options = {
            "hoodie.write.lock.provider": f"{__name__}:Telling",
            "hoodie.base.path": "/race",
            "hoodie.write.lock.wait_time_ms_between_retry": 1,
            "hoodie.write.lock.max_wait_time_ms_between_retry": 1,
            "hoodie.write.lock.num_retries": 100_000,
            "hoodie.write.lock.app_id": requested,
        }
        context = DetectionContext(storage, LAYOUT_2, requested, lock_options=options)
        try:
            GuardedMarkers(DirectMarkers(storage, requested), context, self.kind).create_all(
                markers(requested, self.groups)
            )
        except HoodieEarlyConflictDetectionException as error:
            self.errors[requested] = error

    def run(self, first: str, stop_at: int) -> None:
        """Let the other one run before call number `stop_at` of `first`, until it is done or has to wait."""
        other = NOW if first == EARLIER else EARLIER
        Telling.refused.clear()
        self.announce(first, Stopping(self.ground.storage, stop_at, lambda: self._start(other)))
        for thread in self.threads:
            thread.join(PATIENCE_S)
        if not self.threads:
            self.announce(other, self.ground.storage)

    def _start(self, other: str) -> None:
        thread = threading.Thread(target=self._work, args=(other,))
        self.threads.append(thread)
        thread.start()
        assert Telling.refused.wait(PATIENCE_S)

    def _work(self, other: str) -> None:
        self.announce(other, self.ground.storage)
        Telling.refused.set()

    def told(self) -> set[str]:
        """Who knows of the conflict: by an error of its task, or by what its driver finds."""
        found = {requested for requested in (EARLIER, NOW) if find_reported(self.ground.storage, requested)}
        return found | self.errors.keys()


@pytest.mark.parametrize("first", [EARLIER, NOW])
@pytest.mark.parametrize("stop_at", range(25))
def test_with_locks_exactly_the_later_one_is_told(ground: Any, first: str, stop_at: int) -> None:
    for groups in range(1, 21):
        ground.__post_init__()
        race = Race(ground, SimpleTransactionDirectMarkerBased, groups=groups)
        race.run(first, stop_at)
        assert race.told() == {NOW}


def test_without_locks_both_may_pass_as_the_rfc_allows(ground: Any) -> None:
    told = []
    for stop_at in range(12):
        ground.__post_init__()
        race = Race(ground, SimpleDirectMarkerBased)
        race.run(NOW, stop_at)
        told.append(race.told())
    assert {frozenset(who) for who in told} == {frozenset(), frozenset({NOW})}
