"""A service that is slow now and then is no violation."""

from __future__ import annotations

import threading
from pathlib import Path

from hudi_locks_conformance import Harness, Status, run_check, select_checks
from hudi_locks_conformance.sample import SampleLockProvider

from hudi_locks import Lease, SystemClock

_SLOW_S = 2.2


class SlowOnce(SampleLockProvider):
    """Its first release of all takes longer than the waits of the kit's own options."""

    first = threading.Lock()

    def release(self, lease: Lease) -> None:
        if self.first.acquire(blocking=False):
            SystemClock().sleep(_SLOW_S)  # real time: a service that is slow
        super().release(lease)


def test_eight_threads_wait_for_one_slow_answer(tmp_path: Path) -> None:
    harness = Harness("slow", {"hoodie.sample.folder": str(tmp_path / "locks")})
    harness.__dict__["kind"] = SlowOnce  # of this module, which cannot be loaded by name
    outcome = run_check(select_checks(only=["J6"])[0], harness)
    assert outcome.status is Status.PASS, outcome.message
