"""Where the row of each record key lies, by the files of a table and by the record index of its metadata table."""

from __future__ import annotations

import pyarrow as pa

from hudi_locks.format import MetadataPartition
from hudi_locks.metadata_table import LocatedKeys, MetadataTable
from hudi_locks.spark import HoodieTable

__all__ = ["list_places", "read_index"]

Places = dict[str, tuple[str, str]]
"""Partition path and file id by record key."""


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
