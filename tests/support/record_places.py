"""Where the row of each record key lies, by the files of a table and by the record index of its metadata table."""

from __future__ import annotations

import pyarrow as pa

from hudi_locks.format import MetadataPartition
from hudi_locks.format.key_groups import parse_key_group
from hudi_locks.metadata_table import LocatedKeys, MetadataTable
from hudi_locks.metadata_table.record_files import read_changes, read_whole
from hudi_locks.spark import HoodieTable

__all__ = ["list_places", "list_places_by_partition", "read_index", "read_index_by_partition"]

Places = dict[str, tuple[str, str]]
"""Partition path and file id by record key."""
PlacesByPartition = dict[tuple[str, str], str]
"""File id by partition path and record key."""


def list_places(table: HoodieTable) -> Places:
    """By the rows; each key has one."""
    names = ("_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name")
    found = [(key, path, name.partition("_")[0]) for key, path, name in table.read().select(*names).collect()]
    assert len({key for key, *_ in found}) == len(found), "a key has more than one row"
    return {key: (path, file_id) for key, path, file_id in found}


def read_index(table: HoodieTable) -> Places:
    """By the index, all that it has."""
    storage = table.table.storage
    metadata = MetadataTable.of(storage, table.table.config)
    assert metadata is not None
    view, part = metadata.view(table.table.timeline()), MetadataPartition.RECORD_INDEX
    keys = pa.array(sorted(view.read(part)), pa.string())
    found: Places = {}
    for piece in view.list_slices(part):
        told = LocatedKeys.open(storage, piece).find(keys).to_pylist()
        found |= {row["key"]: (row["path"], row["file_id"]) for row in told}
    assert sorted(found) == keys.to_pylist()
    return found


def list_places_by_partition(table: HoodieTable) -> PlacesByPartition:
    """By the rows; each key has one in a partition."""
    names = ("_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name")
    found = [(path, key, name.partition("_")[0]) for key, path, name in table.read().select(*names).collect()]
    assert len({place[:2] for place in found}) == len(found), "a key has more than one row in a partition"
    return {(path, key): file_id for path, key, file_id in found}


def read_index_by_partition(table: HoodieTable) -> PlacesByPartition:
    """By the index, all that it has; what it has of a partition is in the file groups of that."""
    storage = table.table.storage
    metadata = MetadataTable.of(storage, table.table.config)
    assert metadata is not None
    found: PlacesByPartition = {}
    for piece in metadata.view(table.table.timeline()).list_slices(MetadataPartition.RECORD_INDEX):
        keys = {key for path in piece.paths for key, _ in read_changes(read_whole(storage, path), path)}
        owner = parse_key_group(piece.file_id)
        for row in LocatedKeys.open(storage, piece).find(pa.array(sorted(keys), pa.string())).to_pylist():
            assert owner is not None
            assert owner[0] == row["path"]
            assert (row["path"], row["key"]) not in found
            found[row["path"], row["key"]] = row["file_id"]
    return found
