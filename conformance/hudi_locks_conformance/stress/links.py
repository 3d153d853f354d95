"""Links between contenders and their lock service, for a stress run to break."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from hudi_locks_conformance.faults.proxy import FaultProxy
from hudi_locks_conformance.servers import Server

__all__ = ["ShakyLink"]

_DELAY_S: Final = 0.05
_MOST_ANSWERS: Final = 3


class ShakyLink:
    """A way to a server that the kit started, with one fault at a time; whoever is not sent this way has none.

    Args:
        server: What it leads to.

    Attributes:
        options: For those who are to take this way.
        healed_s: When the present fault ends, on the system's monotonic clock; None if there is none.
        broken: What befell it so far, in order.
    """

    def __init__(self, server: Server) -> None:
        self._proxy = FaultProxy(server.port)
        self._proxy.start()
        before, behind = server.kind.options(server.port), server.kind.options(self._proxy.port)
        self.options: dict[str, str] = {name: value for name, value in behind.items() if before[name] != value}
        self.healed_s: float | None = None
        self.broken: list[str] = []

    def break_down(self, rng: random.Random, healed_s: float) -> None:
        """Draw a fault, to last until then."""
        faults: dict[str, Callable[[], None]] = {
            "cut": self._proxy.cut,
            "half-open": self._proxy.half_open,
            "slow": lambda: self._proxy.delay(_DELAY_S),
            "answers lost": lambda: self._proxy.drop_answer(rng.randint(1, _MOST_ANSWERS)),
        }
        fault = rng.choice(list(faults))
        faults[fault]()
        self.broken.append(fault)
        self.healed_s = healed_s

    def heal_due(self, now_s: float) -> None:
        """End the fault if it has lasted long enough."""
        if self.healed_s is not None and now_s >= self.healed_s:
            self._proxy.heal()
            self.healed_s = None

    def close(self) -> None:
        """End it, and all connections on it."""
        self._proxy.close()
