"""All checks that are built. Importing this module declares them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hudi_locks_conformance.check import CHECKS, Check, Level
from hudi_locks_conformance.checks import (
    contract,
    exclusion,
    expiry,
    failures,
    fairness,
    fencing,
    generated,
    hygiene,
    interop,
    late,
    lifetimes,
    links,
    loading,
    loss,
    naming,
    ownership,
    peers,
    processes,
    renewal,
    requests,
    skew,
    takeover,
    waiting,
)

__all__ = ["CHECKS", "GROUPS", "select_checks"]

GROUPS: Final = {
    "A": (contract, naming),
    "B": (exclusion, late),
    "C": (ownership,),
    "D": (waiting,),
    "E": (expiry, renewal, loss, peers, takeover, late),
    "F": (fencing,),
    "G": (fairness,),
    "H": (failures, links, requests),
    "I": (skew,),
    "J": (processes, lifetimes),
    "K": (loading,),
    "L": (hygiene,),
    "M": (interop,),
    "N": (generated,),
}
"""The modules of the groups, by letter."""


def select_checks(level: Level | None = Level.CORE, only: Iterable[str] = ()) -> list[Check]:
    """The checks asked for at `level`, all of them if it is None, or those that `only` names.

    Args:
        level: See `Level.contents`.
        only: Ids, letters of groups, or ids without their part; replaces the level.

    Raises:
        KeyError: A word of `only` names no check.
    """
    words = list(only)
    ordered = sorted(CHECKS.values(), key=lambda found: (found.group, int(found.number), found.id))
    unknown = [word for word in words if not any(_is_named(found, word) for found in ordered)]
    if unknown:
        raise KeyError(", ".join(unknown))
    if words:
        return [found for found in ordered if any(_is_named(found, word) for word in words)]
    return [found for found in ordered if level is None or found.level in level.contents]


def _is_named(found: Check, word: str) -> bool:
    return word in (found.id, found.group, f"{found.group}{found.number}")
