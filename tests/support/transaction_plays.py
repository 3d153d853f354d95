"""Histories of a world: who plays together, in which order, and what is checked at the end."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial

from logging_world import LoggingWorld
from transaction_store import WorldLock
from transaction_world import World

Histories = Callable[..., World]
_GROUPS = {"w0": "g-0", "w1": "g-0", "w2": "h-0", "w3": "g-0"}


class Dealt(random.Random):
    """Chance that was dealt beforehand, as numbers below 2**16; once they are spent it is always the same."""

    def __init__(self, dealt: tuple[int, ...]) -> None:
        super().__init__(0)
        self._dealt = iter(dealt)

    def random(self) -> float:
        found = next(self._dealt, None)
        return super().random() if found is None else found / 2**16


def play_native(seed: int, *, rng: random.Random | None = None) -> World:
    """Two to four writers, a cleaner that takes the living for dead, a helper, an archiver; no lock at all.

    Each process has a clock of its own, off by up to 40 ms, which is as long as many steps take.
    """
    world = World(rng or random.Random(seed), crash=(0.0, 0.004, 0.01)[seed % 3], lost=(0.0, 0.1, 0.3)[seed % 3])
    for number, (name, group) in enumerate(_some(world, _GROUPS, (2, 3, 3, 4)).items()):
        world.spawn(name, partial(world.writer, name, group, skew_ms=_skew(world)), may_crash=number < 2)
    world.spawn("cleaner", partial(world.cleaner, skew_ms=_skew(world)), may_crash=True)
    if seed % 2:
        world.spawn("helper", partial(world.helper, skew_ms=_skew(world)))
    if seed % 3 == 0:
        world.spawn("archiver", world.archiver)
    world.run()
    world.recover()
    return world


def play_mixed(seed: int, *, rng: random.Random | None = None) -> World:
    """Two or three writers that crash, a JVM writer, cleaner and archiver that ignore claims; the lock works."""
    world = World(rng or random.Random(seed), foreign=True, crash=(0.002, 0.01, 0.02)[seed % 3])
    lock = WorldLock(world)
    for name in _some(world, _GROUPS, (2, 2, 3)):
        world.spawn(name, partial(world.writer, name, "g-0", locks=lock, skew_ms=_skew(world)), may_crash=True)
    world.spawn("jvm", partial(world.jvm_writer, "g-0", lock))
    world.spawn("jvm cleaner", partial(world.jvm_cleaner, lock))
    world.spawn("archiver", partial(world.archiver, lock=lock))
    world.run()
    world.recover()
    return world


def play_non_blocking(seed: int, *, rng: random.Random | None = None) -> LoggingWorld:
    """As `play_native`, of writers that do not block each other, most of them on one file group."""
    world = LoggingWorld(rng or random.Random(seed), crash=(0.0, 0.004, 0.01)[seed % 3], lost=(0.0, 0.1, 0.3)[seed % 3])
    for number, (name, group) in enumerate(_some(world, _GROUPS, (2, 3, 4, 4)).items()):
        world.spawn(name, partial(world.writers, name, group, skew_ms=_skew(world)), may_crash=number < 2)
    if seed % 4:
        world.spawn("cleaner", partial(world.cleaner, skew_ms=_skew(world)), may_crash=True)
    for name in ("compactor", "other compactor")[: seed % 3]:
        world.spawn(name, partial(world.compactor, name, skew_ms=_skew(world)), may_crash=True)
    if seed % 2:
        world.spawn("helper", partial(world.helper, skew_ms=_skew(world)))
    world.run()
    world.recover()
    return world


def _some(world: World, groups: Mapping[str, str], counts: tuple[int, ...]) -> dict[str, str]:
    return dict(list(groups.items())[: world.rng.choice(counts)])


def _skew(world: World) -> int:
    return world.rng.choice((0, 0, -40, 40))
