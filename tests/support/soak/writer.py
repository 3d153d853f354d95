"""One writer process: does its deeds one after the other, and tells on standard output what became of each.

Run as `python -m soak.writer SPEC`. It stops or kills itself at points of the protocol, as often as its spec says.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from typing import Any

from hudi_locks import Clock, LockManager
from hudi_locks.errors import HudiLocksError, StorageError
from hudi_locks.storage import open_storage
from hudi_locks.table import Table
from hudi_locks.transaction import Outcome, PublishResult, StopPoint
from soak.deeds import Deed, draw_deed
from soak.plan import SkewedClock, WriterSpec, draw_stop_s
from soak.writing import DeedWriter

_KILL_SHARE = 0.4
_PAUSE_S = 0.05


def tell(event: str, **facts: Any) -> None:
    """A line for the process that started this one."""
    sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
    sys.stdout.flush()


class Fate:
    """Stops or kills this process at a named point, as its seed draws it."""

    def __init__(self, spec: WriterSpec) -> None:
        self._spec = spec
        self._rng = random.Random(f"{spec.seed} {spec.name} fate")

    def __call__(self, point: StopPoint) -> None:
        if self._rng.random() >= self._spec.risk:
            return
        if self._rng.random() < _KILL_SHARE:
            tell("dies", point=point.value)
            os.kill(os.getpid(), signal.SIGKILL)
        tell("stops", point=point.value, for_s=draw_stop_s(self._rng, self._spec.lease_s))
        os.kill(os.getpid(), signal.SIGSTOP)
        tell("wakes")


class Career:
    """All deeds of one writer."""

    def __init__(self, spec: WriterSpec, writer: DeedWriter, *, clock: Clock, ending: threading.Event) -> None:
        self._spec = spec
        self._writer = writer
        self._clock = clock
        self._rng = random.Random(f"{spec.seed} {spec.name} pauses")
        self._ending = ending

    def run(self) -> None:
        """Until told to end, or until all deeds are done; the present one is finished, or given up between attempts."""
        number = 0
        while not self._ending.is_set() and (not self._spec.deeds or number < self._spec.deeds):
            name = f"{self._spec.seed}:{self._spec.name}:{number}"
            self._do(draw_deed(name, beside_jvm=self._spec.beside_jvm))
            number += 1

    def _do(self, deed: Deed) -> None:
        attempts = 0
        while not self._ending.is_set() and not self._attempt(deed):
            attempts += 1
            self._clock.sleep(self._rng.uniform(0, min(attempts, 10)) * _PAUSE_S)

    def _attempt(self, deed: Deed) -> bool:
        try:
            self._writer.services.precede_write()
            result = self._writer.write(deed)
        except HudiLocksError as error:
            tell("failed", deed=deed.name, instant=self._writer.instant, error=type(error).__name__, why=str(error))
            return bool(self._writer.instant) and self._resolve(deed) is Outcome.COMMITTED
        return self._conclude(deed, result)

    def _conclude(self, deed: Deed, result: PublishResult) -> bool:
        if result.outcome is Outcome.UNKNOWN:
            return self._resolve(deed) is Outcome.COMMITTED
        if result.is_committed:
            tell("committed", deed=deed.name, instant=result.instant, completion=result.completion_time)
            self._writer.services.follow_write()
            return True
        kind = "conflict" if result.conflict else "aborted"
        tell(kind, deed=deed.name, instant=result.instant, why=result.reason)
        return False

    def _resolve(self, deed: Deed) -> Outcome:
        """What became of an attempt that does not know it."""
        while True:
            try:
                outcome = self._writer.transactions.resolve(self._writer.instant)
            except HudiLocksError as error:
                tell("unresolved", instant=self._writer.instant, error=type(error).__name__, why=str(error))
                self._clock.sleep(10 * _PAUSE_S)
                continue
            tell("resolved", deed=deed.name, instant=self._writer.instant, outcome=outcome.value)
            return outcome


def _load(spec: WriterSpec, clock: Clock) -> Table:
    """The table, once its store answers."""
    while (table := _try_to_load(spec)) is None:
        clock.sleep(10 * _PAUSE_S)
    return table


def _try_to_load(spec: WriterSpec) -> Table | None:
    try:
        return Table.load(open_storage(spec.path, spec.options), for_writing=True)
    except StorageError as error:
        tell("not loaded", error=type(error).__name__, why=str(error))
        return None


def main(text: str) -> None:
    """Write until SIGTERM."""
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    spec = WriterSpec.decode(text)
    clock = SkewedClock(spec.skew_ms)
    table = _load(spec, clock)
    with LockManager.from_options(spec.options, clock=clock) as locks:
        writer = DeedWriter(table, locks, options=spec.options, clock=clock, trace=Fate(spec))
        tell("ready")
        Career(spec, writer, clock=clock, ending=ending).run()
        tell("ended")


if __name__ == "__main__":
    main(sys.argv[1])
