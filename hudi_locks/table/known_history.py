"""Whether a table has a history of columns: on a store each look is a request, and most tables have none."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

from hudi_locks.storage import Storage
from hudi_locks.table.altered_columns import NEWEST_COLUMNS, SchemaHistory, read_schema_history
from hudi_locks.table.table import read_completed
from hudi_locks.timeline import Timeline

__all__ = ["find_schema_history"]

_TABLES: Final = 16
"""Of so many tables it is remembered."""
_MOST: Final = 2
"""Of more new commits a listing costs less than to read them."""
_plain: OrderedDict[Hashable, Timeline] = OrderedDict()
_lock = threading.Lock()


def find_schema_history(storage: Storage, timeline: Timeline) -> SchemaHistory | None:
    """See `read_schema_history`; of a table that had none the commits since then tell whether it has one.

    A history begins with a commit that says `latest_schema`. On a disk a look costs less than to read commits.
    """
    if _is_plain(storage, timeline):
        return None
    found = read_schema_history(storage, timeline)
    if found is None:
        _remember(storage, timeline)
    return found


def _is_plain(storage: Storage, timeline: Timeline) -> bool:
    with _lock:
        before = _plain.get(storage.place)
    came = () if before is None else timeline.completed_since(before)
    if before is None or len(came) > _MOST:
        return False
    if any(NEWEST_COLUMNS in read_completed(storage, timeline, instant=one).extra for one in came):
        return False
    if came:
        _remember(storage, timeline)
    return True


def _remember(storage: Storage, timeline: Timeline) -> None:
    with _lock:
        _plain.pop(storage.place, None)
        _plain[storage.place] = timeline
        while len(_plain) > _TABLES:
            _plain.popitem(last=False)
