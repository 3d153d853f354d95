"""What a seeded history did, as a few letters: equal in two processes if the seed alone decides."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterable
from pkgutil import resolve_name
from typing import Any

from rows_simulator import play_replacing
from serviced_simulator import play_long_lived, play_long_lived_beside_jvm, play_serviced, play_serviced_beside_jvm
from transaction_plays import play_mixed, play_native

from hudi_locks.storage import Entry, Storage

PLAYS = (
    play_native,
    play_mixed,
    play_replacing,
    play_serviced,
    play_serviced_beside_jvm,
    play_long_lived,
    play_long_lived_beside_jvm,
)
_THREADED = (
    "services.archival",
    "services.restoring",
    "services.retention",
    "table.table",
    "table.losses",
    "table.old_logs",
)
_RANDOM_NAME = re.compile(r"[0-9a-f]{32}")
"""Staged files have one; nothing rests on its order."""


def do_one_step_at_a_time(patch: Callable[[str, Any], object]) -> None:
    """Let nothing be done on threads of its own, so that each storage call is a step of its process."""

    def map_in_order(call: Callable[[Any], Any], arguments: Iterable[Any], *, threads: int = 1) -> list[Any]:
        del threads
        return [call(argument) for argument in arguments]

    def list_in_order(storage: Storage, folders: Iterable[str]) -> list[list[Entry]]:
        return [storage.list(folder) for folder in folders]

    for module in _THREADED:
        patch(f"hudi_locks.{module}.map_in_threads", map_in_order)
    patch("hudi_locks.storage.Storage.list_each", list_in_order)


def digest(seed: int) -> str:
    """Of one history of each kind."""
    found = hashlib.sha256()
    for play in PLAYS:
        simulator = play(seed)
        lines = [
            *simulator.trail,
            *(f"{name} {outcome}" for name, outcome in simulator.outcomes.items()),
            simulator.wrong(),
        ]
        found.update(_RANDOM_NAME.sub("*", "\n".join(lines)).encode())
    return found.hexdigest()


def _set(path: str, value: Any) -> None:
    owner, _, name = path.rpartition(".")
    setattr(resolve_name(owner), name, value)


if __name__ == "__main__":
    do_one_step_at_a_time(_set)
    sys.stdout.write(" ".join(map(digest, map(int, sys.argv[1:]))))
