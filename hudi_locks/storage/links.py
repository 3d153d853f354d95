"""Symbolic links in a table's folder: they may lead anywhere, so nothing is listed or removed behind them.

Whoever may write to the table can make one at any moment: this keeps from accidents, and is no wall against an attacker
on the same machine.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from hudi_locks.errors import StorageError

__all__ = ["leads_out", "refuse_leading_out", "without_links"]

_MOST_REPORTED: Final = 4_096
_log = logging.getLogger(__name__)


def leads_out(root: str, path: str) -> bool:
    """Whether a folder on the way to `path`, below `root`, is a symbolic link out of it."""
    place = root
    for name in path.split("/") if path else ():
        place = f"{place}/{name}"
        if os.path.islink(place) and not _is_inside(root, place):  # noqa: PTH114  # a Path costs ten times as much
            _report(place)
            return True
    return False


def refuse_leading_out(root: str, path: str) -> None:
    """Raise a StorageError if `leads_out`: to show nothing would hide rows of whoever put the link there on purpose."""
    if leads_out(root, path):
        message = f"{path!r} is behind a symbolic link out of the table at {root}: mount, or move, the folder there"
        raise StorageError(message, path=path)


def without_links(folder: str) -> Iterator[os.DirEntry[str]]:
    """What is in a folder, symbolic links left out and reported."""
    with os.scandir(folder) as children:
        for child in children:
            if child.is_symlink():
                _report(child.path)
            else:
                yield child


def _is_inside(root: str, place: str) -> bool:
    base = os.path.realpath(root)
    return os.path.commonpath([base, os.path.realpath(place)]) == base


@lru_cache(_MOST_REPORTED)
def _report(place: str) -> None:
    """Once for each."""
    _log.warning("%s is a symbolic link: nothing behind it is listed or removed", place)
