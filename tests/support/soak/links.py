"""The way from writers to the store of a table: requests that are slow, come late or get no answer, and outages."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from http_proxy import HttpProxy, Late, Verdict
from waiting import until

from hudi_locks import Clock, SystemClock

__all__ = ["Link", "Risks"]

_MOST_DELAY_S: Final = 0.6
_MOST_LATE_S: Final = 6.0
_OUTAGE_S: Final = (0.5, 5.0)
_BUSY: Final = 503
_FAILED: Final = 500


@dataclass(frozen=True)
class Risks:
    """How likely one request is to meet each fault.

    Attributes:
        slow: It takes up to 0.6 s longer.
        dropped: The connection ends before the service sees it.
        lost: The service does it, and its answer is lost.
        late: The connection ends, and the service does it up to 6 s later.
        busy: The answer is 503.
        failed: The answer is 500.
        silent: Of an outage, that all answers are lost; else no request reaches the service.
    """

    slow: float = 0.0
    dropped: float = 0.0
    lost: float = 0.0
    late: float = 0.0
    busy: float = 0.0
    failed: float = 0.0
    silent: float = 0.5


class Link:
    """Faults of a proxy, drawn by a seed. Thread-safe; close it before the proxy.

    Args:
        proxy: Through which all writers go.
        risks: Of each request.
        seed: Of all that is drawn.
        restart: Kills the service and starts it again on its data; None where it stays up.
        clock: Times outages.

    Attributes:
        met: How many requests met each fault, and how many outages and restarts there were.
    """

    def __init__(
        self,
        proxy: HttpProxy,
        risks: Risks,
        *,
        seed: int,
        restart: Callable[[], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.met: Counter[str] = Counter()
        self._proxy = proxy
        self._risks = risks
        self._restart = restart
        self._rng = random.Random(f"{seed} link")
        self._clock = clock or SystemClock()
        self._guard = threading.Lock()
        self._is_open = True
        self._ends_s = 0.0
        self._outage: Verdict = None
        self._restarting: threading.Thread | None = None
        self._failure: BaseException | None = None
        proxy.rules.append(self._judge)

    def strike(self) -> None:
        """Begin an outage, or restart the service; nothing while there is one."""
        if self._is_out() or self._is_restarting():
            return
        if self._restart is not None and self._rng.random() < 1 / 3:
            self._note("restarts of the service")
            self._restarting = threading.Thread(target=self._start_again, args=(self._restart,), daemon=True)
            self._restarting.start()
            return
        self._note("outages")
        self._outage = "lose" if self._rng.random() < self._risks.silent else "drop"
        self._ends_s = self._clock.monotonic() + self._rng.uniform(*_OUTAGE_S)

    def heal(self) -> None:
        """Let all through from now on, and return when nothing is late any more.

        Raises:
            Exception: The service could not be started again.
        """
        self._is_open = False
        if self._restarting is not None:
            self._restarting.join()
        if self._failure is not None:
            raise self._failure
        until(lambda: self._proxy.late == 0)

    def _is_restarting(self) -> bool:
        return self._restarting is not None and self._restarting.is_alive()

    def _is_out(self) -> bool:
        return self._clock.monotonic() < self._ends_s

    def _start_again(self, restart: Callable[[], None]) -> None:
        try:
            restart()
        except Exception as error:  # told by `heal`
            self._failure = error

    def _judge(self, kind: str, key: str) -> Verdict:
        """A rule of the proxy, which asks one request at a time."""
        del kind, key
        if not self._is_open:
            return None
        if self._is_out():
            return self._outage
        draw = self._rng.random()
        for name, share in self._shares().items():
            if draw < share:
                self._note(name)
                return self._give(name)
            draw -= share
        return None

    def _shares(self) -> Mapping[str, float]:
        risks = self._risks
        return {
            "slow": risks.slow,
            "dropped": risks.dropped,
            "answers lost": risks.lost,
            "late": risks.late,
            "busy": risks.busy,
            "failed": risks.failed,
        }

    def _give(self, name: str) -> Verdict:
        if name == "slow":
            delay_s = self._rng.uniform(0, _MOST_DELAY_S)
            return lambda: self._clock.sleep(delay_s)
        if name == "late":
            return Late(self._rng.uniform(0, _MOST_LATE_S))
        return {"dropped": "drop", "answers lost": "lose", "busy": _BUSY, "failed": _FAILED}[name]

    def _note(self, name: str) -> None:
        with self._guard:
            self.met[name] += 1
