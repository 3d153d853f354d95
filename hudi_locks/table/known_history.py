"""Whether a table has a history of columns: on a store each look is a request, and most tables have none."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Final

from hudi_locks.format import WRITE_ACTIONS, Instant, interpreting
from hudi_locks.storage import Storage
from hudi_locks.table.altered_columns import NEWEST_COLUMNS, SchemaHistory, read_schema_history
from hudi_locks.table.table import read_completed
from hudi_locks.timeline import Timeline

__all__ = ["find_planned_before", "find_schema_history"]

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


def find_planned_before(storage: Storage, timeline: Timeline, history: SchemaHistory) -> dict[str, int]:
    """Writes that were planned before a change of the columns, and go by one that came later, as their commits say.

    JVM Hudi runs a plan, of a compaction for one, by the columns of that moment, and takes the word of its commit.

    Args:
        storage: Of the table.
        timeline: Of the table.
        history: Of its columns.

    Returns:
        The time of the version that the files of each have, by its requested time.

    Raises:
        DamagedTable: A commit cannot be read.
    """
    changes = [one.number for one in history.versions]
    late = [one for one in timeline.completed(WRITE_ACTIONS) if _is_passed(one, changes)]
    said = {one.requested: _read_version(storage, timeline, one) for one in late}
    return {requested: number for requested, number in said.items() if number is not None and number > int(requested)}


def _is_passed(write: Instant, changes: Sequence[int]) -> bool:
    """Whether the columns were changed between its begin and its end."""
    return any(int(write.requested) < number < int(write.completion or 0) for number in changes)


def _read_version(storage: Storage, timeline: Timeline, write: Instant) -> int | None:
    told = read_completed(storage, timeline, instant=write).extra.get(NEWEST_COLUMNS)
    with interpreting("newest columns", write.requested):
        return None if told is None else int(json.loads(told)["version_id"])


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
