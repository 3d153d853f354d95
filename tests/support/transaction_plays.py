"""Histories of a simulator: who plays together, in which order, and what is checked at the end."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial

from logging_simulator import LoggingSimulator
from transaction_simulator import Simulator
from transaction_store import SimulatorLock

Histories = Callable[..., Simulator]
_GROUPS = {"w0": "g-0", "w1": "g-0", "w2": "h-0", "w3": "g-0"}


class Dealt(random.Random):
    """Chance that was dealt beforehand, as numbers below 2**16; once they are spent it is always the same."""

    def __init__(self, dealt: tuple[int, ...]) -> None:
        super().__init__(0)
        self._dealt = iter(dealt)

    def random(self) -> float:
        found = next(self._dealt, None)
        return super().random() if found is None else found / 2**16


def play_native(seed: int, *, rng: random.Random | None = None, kind: type[Simulator] = Simulator) -> Simulator:
    """Two to four writers, a cleaner that takes the living for dead, a helper, an archiver; no lock at all.

    Each process has a clock of its own, off by up to 40 ms, which is as long as many steps take.
    """
    simulator = kind(rng or random.Random(seed), crash=(0.0, 0.004, 0.01)[seed % 3], lost=(0.0, 0.1, 0.3)[seed % 3])
    for number, (name, group) in enumerate(_some(simulator, _GROUPS, (2, 3, 3, 4)).items()):
        simulator.spawn(name, partial(simulator.writer, name, group, skew_ms=_skew(simulator)), may_crash=number < 2)
    simulator.spawn("cleaner", partial(simulator.cleaner, skew_ms=_skew(simulator)), may_crash=True)
    if seed % 2:
        simulator.spawn("helper", partial(simulator.helper, skew_ms=_skew(simulator)))
    if seed % 3 == 0:
        simulator.spawn("archiver", simulator.archiver)
    simulator.run()
    simulator.recover()
    return simulator


def play_mixed(seed: int, *, rng: random.Random | None = None, kind: type[Simulator] = Simulator) -> Simulator:
    """Two or three writers that crash, a JVM writer, cleaner and archiver that ignore claims; the lock works."""
    simulator = kind(rng or random.Random(seed), foreign=True, crash=(0.002, 0.01, 0.02)[seed % 3])
    lock = SimulatorLock(simulator)
    for name in _some(simulator, _GROUPS, (2, 2, 3)):
        simulator.spawn(
            name, partial(simulator.writer, name, "g-0", locks=lock, skew_ms=_skew(simulator)), may_crash=True
        )
    simulator.spawn("jvm", partial(simulator.jvm_writer, "g-0", lock))
    simulator.spawn("jvm cleaner", partial(simulator.jvm_cleaner, lock))
    simulator.spawn("archiver", partial(simulator.archiver, lock=lock))
    simulator.run()
    simulator.recover()
    return simulator


def play_non_blocking(seed: int, *, rng: random.Random | None = None) -> LoggingSimulator:
    """As `play_native`, of writers that do not block each other, most of them on one file group."""
    simulator = LoggingSimulator(
        rng or random.Random(seed), crash=(0.0, 0.004, 0.01)[seed % 3], lost=(0.0, 0.1, 0.3)[seed % 3]
    )
    for number, (name, group) in enumerate(_some(simulator, _GROUPS, (2, 3, 4, 4)).items()):
        simulator.spawn(name, partial(simulator.writers, name, group, skew_ms=_skew(simulator)), may_crash=number < 2)
    if seed % 4:
        simulator.spawn("cleaner", partial(simulator.cleaner, skew_ms=_skew(simulator)), may_crash=True)
    for name in ("compactor", "other compactor")[: seed % 3]:
        simulator.spawn(name, partial(simulator.compactor, name, skew_ms=_skew(simulator)), may_crash=True)
    if seed % 2:
        simulator.spawn("helper", partial(simulator.helper, skew_ms=_skew(simulator)))
    simulator.run()
    simulator.recover()
    return simulator


def _some(simulator: Simulator, groups: Mapping[str, str], counts: tuple[int, ...]) -> dict[str, str]:
    return dict(list(groups.items())[: simulator.rng.choice(counts)])


def _skew(simulator: Simulator) -> int:
    return simulator.rng.choice((0, 0, -40, 40))
