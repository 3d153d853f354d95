"""All declared keys, found by any of their names."""

from __future__ import annotations

import difflib
import re
from types import MappingProxyType, ModuleType
from typing import Any, Final

from hudi_locks.config import (
    catalog_keys,
    clustering_keys,
    compaction_keys,
    datasource_keys,
    file_keys,
    index_keys,
    ingest_keys,
    lock_keys,
    metrics_keys,
    read_keys,
    security_keys,
    service_keys,
    table_keys,
    time_partition_keys,
    write_keys,
)
from hudi_locks.config.key import Key

__all__ = ["KEYS", "find_key", "nearest_key", "strip_member"]

_MODULES: Final = (
    lock_keys,
    security_keys,
    write_keys,
    clustering_keys,
    compaction_keys,
    service_keys,
    table_keys,
    datasource_keys,
    file_keys,
    index_keys,
    time_partition_keys,
    ingest_keys,
    metrics_keys,
    read_keys,
    catalog_keys,
)
_TYPO_DISTANCE: Final = 2
_SIMILAR: Final = 0.8


def _declared(module: ModuleType) -> list[Key[Any]]:
    return [value for value in vars(module).values() if isinstance(value, Key)]


def _by_any_name() -> dict[str, Key[Any]]:
    keys = sorted((key for module in _MODULES for key in _declared(module)), key=lambda key: key.name)
    aliases = {alias: key for key in keys for alias in key.aliases}
    return aliases | {key.name: key for key in keys}


_BY_ANY_NAME: Final = MappingProxyType(_by_any_name())
KEYS: Final = MappingProxyType({name: key for name, key in _BY_ANY_NAME.items() if name == key.name})
"""Every key by its own name."""


def find_key(name: str) -> Key[Any] | None:
    """The key that `name` means: by its own name, else by an alias; also when it is for one chained provider alone."""
    return _BY_ANY_NAME.get(strip_member(name))


def strip_member(name: str) -> str:
    """The name without the prefix that gives a key to one of two chained providers."""
    return name.removeprefix(lock_keys.CHAIN_FIRST).removeprefix(lock_keys.CHAIN_SECOND)


def nearest_key(name: str) -> tuple[str, bool] | None:
    """The known name most like `name`, and whether `name` can only be a slip of it; None if nothing is like it.

    A slip is another way of writing the separators or the case, or at most two letters wrong.
    """
    flat = {_flatten(known): known for known in _BY_ANY_NAME}
    found = difflib.get_close_matches(_flatten(name), flat, n=3, cutoff=_SIMILAR)
    if not found:
        return None
    best = min(found, key=lambda candidate: _distance(_flatten(name), candidate))
    return flat[best], _distance(_flatten(name), best) <= _TYPO_DISTANCE


def _flatten(name: str) -> str:
    return re.sub(r"[._-]+", ".", name.strip().lower())


def _distance(left: str, right: str) -> int:
    """Edits between two texts, a swap of two neighbours being one."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, char in enumerate(left, 1):
        older, before, row = before, row, [i]
        for j, other in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (char != other))
            if i > 1 and j > 1 and char == right[j - 2] and left[i - 2] == other:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]
