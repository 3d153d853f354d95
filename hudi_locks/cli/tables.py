"""The table at a path that was typed."""

from __future__ import annotations

import re
from typing import Final

from hudi_locks.errors import NotATable
from hudi_locks.storage import open_storage

__all__ = ["find_table_name", "refuse_no_table"]

_ELSEWHERE: Final = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*:")
"""Paths of storages that only lock providers reach."""


def find_table_name(path: str) -> str | None:
    """The name of the table at `path`, as its properties tell it; None if there is none, or it is out of reach.

    Raises:
        DamagedTable: Its properties cannot be read.
    """
    from hudi_locks.table import Table  # brings Arrow along, which commands without a path do without

    if _ELSEWHERE.match(path):
        return None
    try:
        return Table.load(open_storage(path)).config.name
    except NotATable:
        return None


def refuse_no_table(path: str, *, advice: str) -> None:
    """Refuse a folder that is no table, where that can be seen.

    Raises:
        NotATable: It is none; the message ends with `advice`.
    """
    if not _ELSEWHERE.match(path) and find_table_name(path) is None:
        raise NotATable(f"{path} holds no Hudi table, so check the path; {advice}", path=path)
