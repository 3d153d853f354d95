"""All checks that are built. Importing this module declares them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from types import ModuleType
from typing import Final

from hudi_locks import ConfigError
from hudi_locks_conformance.check import CHECKS, OWN_CHECKS, Check, Level
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

__all__ = ["CHECKS", "GROUPS", "load_checks", "read_skips", "select_checks"]

GROUPS: Final[dict[str, tuple[ModuleType, ...]]] = {
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


def load_checks(modules: Iterable[str]) -> list[Check]:
    """The checks that these modules declare with `check`, for `select_checks`.

    Raises:
        ConfigError: A module cannot be imported, declares no check, or one whose id another one has.
    """
    found: dict[str, Check] = {}
    for module in modules:
        try:
            importlib.import_module(module)
        except (ImportError, ValueError) as error:
            raise ConfigError(f"the checks of {module} cannot be loaded: {error}", module=module) from error
        declared = OWN_CHECKS.get(module, {})
        twice = sorted(found.keys() & declared.keys())
        if twice or not declared:
            said = f"declares {', '.join(twice)} once more" if twice else "declares no check"
            raise ConfigError(f"{module} {said}; see hudi_locks_conformance.check", module=module)
        found |= declared
    return list(found.values())


def read_skips(words: Iterable[str], own: Iterable[Check] = ()) -> dict[str, str]:
    """The checks to leave out, by id, each with its reason, of words of the form `ID=REASON`.

    Raises:
        ConfigError: A word gives no reason, or names no check.
    """
    known, skips = {*CHECKS, *(found.id for found in own)}, dict[str, str]()
    for word in words:
        name, _, reason = (part.strip() for part in word.partition("="))
        if not reason:
            raise ConfigError(f"{word!r} says not why the check is skipped: {name or 'ID'}=REASON", key=name)
        if name not in known:
            raise ConfigError(f"{name!r} is no check that could be skipped; see --list", key=name)
        skips[name] = reason
    return skips


def select_checks(
    level: Level | None = Level.CORE, only: Iterable[str] = (), *, own: Iterable[Check] = ()
) -> list[Check]:
    """The checks asked for at `level`, all of them if it is None, or those that `only` names.

    Args:
        level: See `Level.contents`.
        only: Ids, letters of groups, or ids without their part; replaces the level.
        own: More checks to choose among, from `load_checks`.

    Raises:
        KeyError: A word of `only` names no check.
    """
    words = list(only)
    ordered = sorted([*CHECKS.values(), *own], key=lambda found: (found.group, int(found.number), found.id))
    unknown = [word for word in words if not any(_is_named(found, word) for found in ordered)]
    if unknown:
        raise KeyError(", ".join(unknown))
    if words:
        return [found for found in ordered if any(_is_named(found, word) for word in words)]
    return [found for found in ordered if level is None or found.level in level.contents]


def _is_named(found: Check, word: str) -> bool:
    return word in (found.id, found.group, f"{found.group}{found.number}")
