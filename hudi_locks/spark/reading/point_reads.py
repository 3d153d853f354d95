"""Reads of rows by their record key: the record index of the metadata table says in which file groups they are.

Runs on the driver. As in Hudi's RecordLevelIndexSupport an option of the reader asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice, product
from typing import Final

import pyarrow as pa

from hudi_locks.format import MetadataPartition
from hudi_locks.format.key_groups import KeyGroups
from hudi_locks.format.metadata_keys import KEY_CHANGES
from hudi_locks.metadata_table import MetadataTable, find_keys
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.storage import map_in_threads
from hudi_locks.table import RECORD_KEY, Condition, FileSlice, TableConfig
from hudi_locks.table.value_ranges import find_kind

__all__ = ["choose_slices", "find_groups", "list_wanted_keys"]

ChoosePartitions = Callable[[Iterable[str]], Collection[str]]
"""Tells which of some partition paths may hold a row that is read."""

_MOST_KEYS: Final = 10_000
_PLAIN: Final = {"string": str, "int": int, "long": int}
"""Of what Python type values are, by their kind, whose text in a record key is the same for every writer."""


def list_wanted_keys(condition: Condition, config: TableConfig, schema: pa.Schema) -> frozenset[str] | None:
    """The record keys of the rows for which a condition may be true; None if these may be any.

    Args:
        condition: On the columns of the table.
        config: Of the table: how it makes keys of columns.
        schema: The user's columns.
    """
    named = condition.list_values(RECORD_KEY)
    if named is not None:
        return frozenset(named) if len(named) <= _MOST_KEYS else None
    names, prefixes = config.record_key_fields, config.prefixes_keys
    found = [texts for name in names if (texts := _list_texts(condition, name, schema)) is not None]
    if prefixes is None or not names or len(found) < len(names):
        return None
    columns = [
        [f"{name}:{text}" if prefixes else text for text in some] for name, some in zip(names, found, strict=True)
    ]
    keys = frozenset(islice(map(",".join, product(*(columns if prefixes else found))), _MOST_KEYS + 1))
    return keys if len(keys) <= _MOST_KEYS else None


def _list_texts(condition: Condition, name: str, schema: pa.Schema) -> Sequence[str] | None:
    """What is in the record key for a column; None if it may be anything, or differs from writer to writer."""
    values = condition.list_values(name)
    kind = find_kind(schema.field(name).type) if name in schema.names else None
    if values is None or kind is None or (plain := _PLAIN.get(kind.name)) is None:
        return None
    if any(type(value) is not plain or value == "" for value in values):
        return None
    return [str(value) for value in values]


def find_groups(
    snapshot: Snapshot, keys: Collection[str], *, choose: ChoosePartitions
) -> frozenset[tuple[str, str]] | None:
    """The file groups, as (partition path, file id), that have rows of these keys in a snapshot.

    Args:
        snapshot: Of the table.
        keys: The record keys.
        choose: Which partitions are read: of an index by partition the file groups of the others are not opened.

    Returns:
        None if the record index does not say it: the table has none, or somebody completed a write since the snapshot,
        which may be in the index and not in the snapshot.

    Raises:
        DamagedTable: A file of the index is gone, or cannot be read.
        UnsupportedTable: A log holds what JVM Hudi does not write there; or the metadata table is of another version.
        StorageError: The store failed.
    """
    storage, config = snapshot.table.storage, snapshot.table.config
    metadata = MetadataTable.of(storage, config) if snapshot.has_record_index else None
    if metadata is None:
        return None
    if not keys:
        return frozenset()
    view = metadata.view_now(snapshot.table.timeline)
    if view.timeline.completed() != snapshot.timeline.completed():
        return None
    slices = {piece.file_id: piece for piece in view.list_slices(MetadataPartition.RECORD_INDEX)}
    asked = list(_ask(KeyGroups.of(slices), pa.array(sorted(keys), pa.string()), choose))
    tables = map_in_threads(lambda one: find_keys(storage, slices[one[0]], one[1]), asked)
    found = pa.concat_tables([KEY_CHANGES.empty_table(), *tables])
    return frozenset(zip(found.column("path").to_pylist(), found.column("file_id").to_pylist(), strict=True))


def _ask(groups: KeyGroups, keys: pa.Array, choose: ChoosePartitions) -> Iterator[tuple[str, pa.Array]]:
    """The file groups of the index that may tell of keys, each with its own."""
    for owner in sorted(choose(groups.counts)) if groups.is_partitioned else ("",):
        yield from groups.spread(keys, owner)


def choose_slices(
    slices: Sequence[FileSlice], groups: frozenset[tuple[str, str]], *, choose: ChoosePartitions
) -> Sequence[FileSlice]:
    """Of the newest slices those of these file groups in partitions that are read; all if one of these is not there."""
    read = choose({partition for partition, _ in groups})
    wanted = {group for group in groups if group[0] in read}
    if not wanted <= {(piece.partition, piece.file_id) for piece in slices}:
        return slices
    return [piece for piece in slices if (piece.partition, piece.file_id) in wanted]
