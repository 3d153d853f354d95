"""A simulator whose processes live long: each keeps what it knows of the timeline from one write to the next."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from serviced_simulator import ServicedSimulator, finish, lay_ground, spawn_disturbers

from hudi_locks.services import TableServices
from hudi_locks.transaction import Transactions


class FollowedSimulator(ServicedSimulator):
    """As its parent, where a process is one writer object for all that it does."""

    def __init__(self, rng: random.Random, **how: Any) -> None:
        super().__init__(rng, **how)
        self._kept: dict[str, Transactions] = {}

    def transactions(self, name: str, **how: Any) -> Any:
        process = self.mine()
        if process is None:
            return super().transactions(name, **how)
        if process.name not in self._kept:
            self._kept[process.name] = super().transactions(process.name, **how)
        return self._kept[process.name]

    def stream(self, name: str, writes: int) -> None:
        """Rows one after the other, mostly to the file group to which the others bring theirs."""
        for number in range(writes):
            self.add(f"{name}{number}", share=0.8)


def play_followed(seed: int, *, rng: random.Random | None = None) -> ServicedSimulator:
    """Streams of commits to one file group, one of them by a process that may die; services in between. No lock."""
    simulator = FollowedSimulator(
        rng or random.Random(seed), crash=(0.0, 0.002, 0.005)[seed % 3], lost=(0.0, 0.1)[seed % 2]
    )
    lay_ground(simulator)
    for name in ("stream", "flow", "brook")[: 2 + seed % 2]:
        simulator.spawn(name, partial(simulator.stream, name, 4), may_crash=name == "flow")
    if seed % 3 == 2:
        simulator.spawn("dreamer", partial(simulator.dream, "dreamer"))
    spawn_disturbers(simulator, seed)
    if seed % 2:
        work = partial(simulator.serve, "archiver", TableServices.archive, all_dead=True, pauses=(50, 150))
        simulator.spawn("early archiver", work, may_crash=True, frailty=4.0)
    return finish(simulator)
