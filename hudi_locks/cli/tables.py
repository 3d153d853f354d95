"""The table at a path that was typed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hudi_locks.errors import ConfigError, NotATable, ProviderLoadError, StorageError
from hudi_locks.storage import Storage, open_storage

__all__ = ["find_storage", "find_table_name", "refuse_no_table"]

_ELSEWHERE: Final = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*:")
"""Paths of other storages than this machine's; some of them only lock providers reach."""


def find_table_name(path: str, options: Mapping[str, object]) -> str | None:
    """The name of the table at `path`, as its properties tell it; None if there is none, or it is out of reach.

    Raises:
        DamagedTable: Its properties cannot be read.
    """
    from hudi_locks.table import Table  # brings Arrow along, which commands without a path do without

    storage = find_storage(path, options)
    if storage is None:
        return None
    try:
        return Table.load(storage).config.name
    except NotATable:
        return None
    except (StorageError, ProviderLoadError):
        if _ELSEWHERE.match(path):
            return None  # whoever needs the name says so
        raise


def find_storage(path: str, options: Mapping[str, object]) -> Storage | None:
    """The storage of a path; None where only lock providers reach it, or the options do not lead there."""
    if not _ELSEWHERE.match(path):
        return open_storage(path)
    try:
        return open_storage(path, options)
    except (ConfigError, ProviderLoadError):
        return None


def refuse_no_table(path: str, *, advice: str) -> None:
    """Refuse a folder that is no table, where that can be seen.

    Raises:
        NotATable: It is none; the message ends with `advice`.
    """
    if not _ELSEWHERE.match(path) and find_table_name(path, {}) is None:
        raise NotATable(f"{path} holds no Hudi table, so check the path; {advice}", path=path)
