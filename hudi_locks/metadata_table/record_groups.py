"""The file groups of a metadata table's record index, as its definition and its files tell them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from hudi_locks.format import MetadataPartition, TimelineLayout
from hudi_locks.format.key_groups import KeyGroups
from hudi_locks.format.records import interpreting
from hudi_locks.storage import Storage
from hudi_locks.table import DataFiles, find_completions
from hudi_locks.timeline import Timeline

__all__ = ["INDEXES_PATH", "find_record_groups", "is_partitioned", "list_fresh_groups"]

INDEXES_PATH: Final = ".hoodie/.index_defs/index.json"
"""What each index of a metadata table is about."""


def is_partitioned(storage: Storage) -> bool:
    """Whether a table's record index is one by partition, by its definition; releases before 1.1 define none.

    Raises:
        DamagedTable: The definitions cannot be read.
    """
    data = storage.read(INDEXES_PATH)
    with interpreting("definition of the record index", INDEXES_PATH):
        defined = json.loads(data or b"{}").get("indexDefinitions", {}).get(MetadataPartition.RECORD_INDEX.value, {})
        return str((defined.get("indexOptions") or {}).get("isPartitioned", "")).lower() == "true"


def find_record_groups(storage: Storage, listed: DataFiles, layout: TimelineLayout, *, fresh: int) -> KeyGroups:
    """Those of an index, of whose files these are all; of one by partition also before any partition has some.

    A partition has as many as completed writes made. Where there are none yet, those of a write that is under way tell
    how many it is to have, so that two writes that bring the same partition agree.

    Args:
        storage: Of the table.
        listed: The files.
        layout: Of the timeline of the metadata table.
        fresh: How many a partition gets that has none.
    """
    named = KeyGroups.of((file.file_id for file in listed.both), fresh=fresh)
    if not named and is_partitioned(storage):
        return KeyGroups(is_partitioned=True, fresh=fresh)
    if not named.is_partitioned:
        return named
    completion = find_completions(storage, Timeline.load(storage, layout), listed, exactly=False).take
    done = KeyGroups.of(file.file_id for file in listed.both if completion(file.instant) is not None)
    return replace(named, counts={**named.counts, **done.counts})


def list_fresh_groups(known: KeyGroups, there: Iterable[str], partitions: Iterable[str]) -> tuple[str, ...] | None:
    """File groups of an index by partition that a write is to begin, since nobody completed any for their partition.

    All of a partition are begun at once, those that get no key too: their number says where its keys are.

    Args:
        known: What the tasks of the write spread their keys by.
        there: Ids of those that completed writes made.
        partitions: Those that the write writes to.

    Returns:
        None if a partition has another number of them than the tasks knew.
    """
    now, fresh = KeyGroups.of(there).counts, list[str]()
    for partition in sorted(set(partitions)) if known.is_partitioned else ():
        if partition not in now:
            fresh += known.list_ids(partition)
        elif now[partition] != known.count(partition):
            return None
    return tuple(fresh)
