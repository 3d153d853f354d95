"""Whether an instant was archived (layout 2: Parquet files `<first>_<last>_<level>.parquet` of the history)."""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_locks.errors import DamagedTable
from hudi_locks.storage import Storage
from hudi_locks.timeline.layout import TimelineLayout

__all__ = ["is_archived"]

_NAME: Final = re.compile(r"(\d+)_(\d+)_\d+\.parquet")


def is_archived(storage: Storage, layout: TimelineLayout, *, requested: str) -> bool:
    """Whether the history holds the instant begun at `requested`, which was thus completed.

    Files that a compaction of the history left behind are looked at too: what they hold was archived all the same. If
    one of them goes away meanwhile, the folder is listed again, since another holds its instants now.

    Raises:
        DamagedTable: A file of the history is unreadable.
    """
    while True:
        parts = [_read_times(storage, f"{layout.archive}/{name}") for name in _parts(storage, layout, requested)]
        if None not in parts:
            return any(requested in times for times in parts if times is not None)


def _parts(storage: Storage, layout: TimelineLayout, requested: str) -> list[str]:
    found = [_NAME.fullmatch(entry.name) for entry in storage.list(layout.archive)]
    return [match[0] for match in found if match and match[1] <= requested <= match[2]]


def _read_times(storage: Storage, path: str) -> set[str] | None:
    data = storage.read(path)
    if data is None:
        return None
    try:
        table = pq.read_table(pa.BufferReader(data), columns=["instantTime"])
    except (pa.ArrowException, OSError) as error:
        raise DamagedTable(f"{path} is no readable part of the archived timeline: {error}", path=path) from error
    return set(table.column("instantTime").to_pylist())
