"""Rows of buckets that a clustering splits and merges: each goes to the file group that the new ring names."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.errors import UnsupportedTable, WriteAborted
from hudi_locks.format.consistent_hashing import HashRing, hash_record_keys
from hudi_locks.format.ring_change import RingChange
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.placement import GROUP
from hudi_locks.spark.writing.rows import column_named
from hudi_locks.table import RECORD_KEY
from hudi_locks.table.hash_rings import find_hash_ring

__all__ = ["change_ring", "spread_by_ring"]


def change_ring(snapshot: Snapshot, change: RingChange, *, instant: str) -> HashRing:
    """The ring of a partition after a change.

    Raises:
        WriteAborted: It is not the one that was to change.
    """
    ring = find_hash_ring(snapshot.table.storage, snapshot.timeline, change.partition)
    if ring is None or ring.number != change.number:
        message = f"the buckets of partition {change.partition!r} changed since clustering {instant} was planned"
        raise WriteAborted(f"{message}: take it back, and plan anew", instant=instant, partition=change.partition)
    return ring.change(change.nodes)


def spread_by_ring(
    rows: DataFrame, ring: HashRing, change: RingChange, *, hash_fields: Sequence[str], order: Sequence[str]
) -> DataFrame:
    """The rows of one group with the file group of each, those of one file group together and in order.

    Args:
        rows: With meta columns.
        ring: After the change.
        change: The file groups that they may go to.
        hash_fields: Fields that are hashed.
        order: Columns to sort by.
    """
    placed = rows.withColumn(GROUP, _place(ring, change, hash_fields))
    spread = placed.repartition(len(change.file_ids), GROUP)
    return spread.sortWithinPartitions(GROUP, *map(column_named, order)) if order else spread


def _place(ring: HashRing, change: RingChange, hash_fields: Sequence[str]) -> Column:
    fields = list(hash_fields)

    def place(keys):  # type: ignore[no-untyped-def]  # Spark reads annotations of a Pandas UDF and knows few
        """A series of record keys to one of file ids."""
        import numpy as np

        column = pa.array(keys, pa.string(), from_pandas=True).fill_null("")
        found = np.array(ring.file_ids, dtype=object)[ring.assign(hash_record_keys(column, fields))]
        if others := {*found} - change.file_ids:
            raise UnsupportedTable(
                f"a key of partition {change.partition!r} lies in a bucket that is split or merged, and belongs into"
                f" file group {min(others)} by the columns {', '.join(fields)}: give hoodie.bucket.index.hash.field as"
                " the table was written with"
            )
        return keys.__class__(found)

    return F.pandas_udf(place, "string")(F.col(RECORD_KEY))
