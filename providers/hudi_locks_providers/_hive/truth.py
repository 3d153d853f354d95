"""Whether a metastore keeps locks apart, and drops those of dead holders."""

from __future__ import annotations

import contextlib
import threading
import uuid
from typing import Final

from hudi_locks.errors import LockError
from hudi_locks.lock import Finding
from hudi_locks_providers._hive.metastore import LockGone, Metastore

__all__ = ["HiveTruth"]

_RACERS: Final = 6
_ROUNDS: Final = 4
_HOUSEKEEPERS: Final = ("metastore.housekeeping.threads.on", "hive.compactor.initiator.on")
_TOO_SHORT_S: Final = 30.0


class HiveTruth:
    """Tries one metastore on names that no table has.

    Args:
        metastore: To try.
        database: In which the names are.
        timeout_s: Its `hive.txn.timeout`.
    """

    def __init__(self, metastore: Metastore, database: str, timeout_s: float) -> None:
        self._metastore = metastore
        self._database = database
        self._timeout_s = timeout_s

    def examine(self) -> tuple[Finding, ...]:
        """All that was found.

        Raises:
            BackendUnavailable: It does not answer.
            BackendRefused: It does not offer locks.
        """
        return (self._try_race(), self._ask_timeout(), self._ask_housekeeper())

    def _try_race(self) -> Finding:
        granted = [self._race() for _ in range(_ROUNDS)]
        wrong = sum(number != 1 for number in granted)
        if wrong:
            said = f"{wrong} of {_ROUNDS} rounds granted not exactly one lock: {granted}"
            return Finding("one-winner", ok=False, found=said, advice="use another lock service")
        return Finding("one-winner", ok=True, found=f"one of {_RACERS} racers won, in each of {_ROUNDS} rounds")

    def _race(self) -> int:
        table = f"hudi_locks_probe_{uuid.uuid4().hex}"
        start = threading.Barrier(_RACERS)
        answers: list[tuple[int, bool]] = []

        def run() -> None:
            start.wait()
            with contextlib.suppress(LockError):
                answers.append(self._metastore.lock(self._database, [table], host="", agent="hudi-locks probe"))

        threads = [threading.Thread(target=run) for _ in range(_RACERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for lock_id, _ in answers:
            with contextlib.suppress(LockGone):
                self._metastore.unlock(lock_id)
        return sum(granted for _, granted in answers)

    def _ask_timeout(self) -> Finding:
        said = f"a silent holder may be dropped after {self._timeout_s:g} s (hive.txn.timeout)"
        ok = self._timeout_s >= _TOO_SHORT_S
        advice = "" if ok else f"a pause of {self._timeout_s:g} s loses the lock: raise hive.txn.timeout to 300s"
        return Finding("holder-timeout", ok=ok, found=said, advice=advice)

    def _ask_housekeeper(self) -> Finding:
        found = {name: self._metastore.find_setting(name, "") for name in _HOUSEKEEPERS}
        running = [name for name, value in found.items() if value.lower() == "true"]
        if running:
            return Finding("drops-dead-locks", ok=True, found=f"{running[0]} is true")
        return Finding(
            "drops-dead-locks",
            ok=False,
            found=f"neither {' nor '.join(_HOUSEKEEPERS)} is true: locks of dead holders stay for ever",
            advice="let one metastore run with it, or remove such locks with `hudi-locks unlock`",
        )
