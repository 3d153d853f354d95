"""One contender of a stress run: takes the lock again and again, and writes under it, until it is told to end.

Run as `python -m hudi_locks_conformance.stress.contender SPEC`. Each event is a JSON line on standard output: `f`,
`type`, `t_s`, and `token` or `error` where there is one. A write is answered by a line on standard input, "ok" or
"fail": the process that started it keeps what the lock protects.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import threading
from dataclasses import dataclass
from typing import Any, Final

from hudi_locks import (
    AcquireTimeout,
    BackendUnavailable,
    Held,
    LockLost,
    LockManager,
    LockScope,
    SystemClock,
)

__all__ = ["main"]

_TIMEOUT_S: Final = 1.0
_PAUSE_S: Final = 0.003
_MOST_STEPS: Final = 3
_CLOCK: Final = SystemClock()


@dataclass
class _Contender:
    manager: LockManager
    scope: LockScope
    rng: random.Random
    ending: threading.Event

    def run(self) -> None:
        """Contend until told to end."""
        while not self.ending.is_set():
            held = self.acquire()
            if held is not None:
                self.use(held)

    def acquire(self) -> Held | None:
        """Ask once, for a second."""
        _tell("acquire", "invoke")
        try:
            held = self.manager.lock(self.scope, timeout_s=_TIMEOUT_S)
        except AcquireTimeout:
            _tell("acquire", "fail")
            return None
        except BackendUnavailable as error:
            _tell("acquire", "info", error=str(error))
            _CLOCK.sleep(self.rng.uniform(0, 10 * _PAUSE_S))
            return None
        _tell("acquire", "ok", token=held.token)
        return held

    def use(self, held: Held) -> None:
        """Write a few times, asking before each whether the lock is ours, and let go."""
        for _ in range(self.rng.randint(1, _MOST_STEPS)):
            if not _believes(held):
                return self.leave(held)
            _write(held.token)
            _CLOCK.sleep(self.rng.uniform(0, _PAUSE_S))
        if _believes(held):
            _tell("release", "invoke", token=held.token)
            self.leave(held)
            _tell("release", "ok", token=held.token)
        else:
            self.leave(held)
        return None

    def leave(self, held: Held) -> None:
        """Let go, also of what is lost."""
        try:
            held.release()
        except BackendUnavailable as error:
            _tell("release", "info", error=str(error))


def _believes(held: Held) -> bool:
    """Whether the holder goes on; the time is that from before the question, when it holds for certain if so."""
    asked_s = _CLOCK.monotonic()
    try:
        held.check()
    except LockLost as lost:
        _tell("check", "fail", error=str(lost))
        return False
    except BackendUnavailable as error:
        _tell("check", "fail", error=str(error))
        return False
    _tell("check", "ok", t_s=asked_s)
    return True


def _write(token: int | None) -> None:
    _tell("write", "invoke", token=token)
    if not sys.stdin.readline():
        sys.exit("nobody answers")


def _tell(f: str, kind: str, *, t_s: float | None = None, **facts: Any) -> None:
    told = {name: value for name, value in facts.items() if value is not None}
    event = {"f": f, "type": kind, "t_s": _CLOCK.monotonic() if t_s is None else t_s, **told}
    print(json.dumps(event), flush=True)  # noqa: T201  # the protocol


def main(arguments: list[str]) -> None:
    """Contend; SIGTERM ends it after the present hold."""
    name, provider, options, partition, file_id, seed = json.loads(arguments[0])
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    rng = random.Random(f"{seed} {name}")  # noqa: S311  # repeatable, guards nothing
    while not ending.is_set():
        try:
            manager = LockManager(provider, options, application="conformance kit")
        except BackendUnavailable as error:
            _tell("acquire", "info", error=str(error))
            _CLOCK.sleep(10 * _PAUSE_S)
            continue
        with manager:
            _Contender(manager, LockScope(partition, file_id), rng, ending).run()


if __name__ == "__main__":
    main(sys.argv[1:])
