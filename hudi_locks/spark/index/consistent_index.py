"""The bucket index with consistent hashing, of a merge-on-read table: the ring of a partition says where a key belongs.

All rows go to logs, as with the simple engine. A clustering may split a file group or merge two: it replaces them, so a
write that has begun meets it as a conflict, and the next one finds the ring that it left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format.claim import FileGroupId
from hudi_locks.format.consistent_hashing import HashRing, hash_record_keys
from hudi_locks.spark.index.index import Count, Index
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.session import typed_task_errors
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.placement import GROUP, ListedGroups, Placement, Regrouped
from hudi_locks.spark.writing.rows import KeyedRows, keep_persisted, spread_rows
from hudi_locks.table import PARTITION_PATH, RECORD_KEY
from hudi_locks.table.hash_rings import load_hash_rings, refuse_strangers

__all__ = ["ConsistentIndex"]


@dataclass(frozen=True)
class ConsistentIndex(Index):
    """Hudi's HoodieSparkConsistentBucketIndex."""

    can_replan: ClassVar[bool] = False
    may_replace: ClassVar[bool] = False

    @contextmanager
    def keep(self, keyed: KeyedRows, operation: Operation, *, count: Count) -> Iterator[KeyedRows]:
        """See `Index.keep`."""
        del operation
        with keep_persisted(keyed.frame) as kept, typed_task_errors():
            yield replace(keyed, frame=kept, counts=count(kept, 0).counts)

    @contextmanager
    def assign(
        self, operation: Operation, keyed: KeyedRows, snapshot: Snapshot, *, instant: str
    ) -> Iterator[Placement]:
        """See `Index.assign`.

        Raises:
            UnsupportedTable: A write has replaced a file group of a ring, or made one that is in none.
        """
        del instant
        rings = self._load_rings(snapshot, keyed.counts)
        slices = snapshot.file_slices(keyed.counts)
        refuse_strangers(rings, slices)
        _refuse_replaced(rings, snapshot)
        ids = frozenset(file_id for ring in rings.values() for file_id in ring.file_ids)
        bases = {(piece.partition, piece.file_id): piece.base for piece in slices if piece.base is not None}
        is_load = operation is Operation.BULK_INSERT  # to new file groups it brings base files
        logged = frozenset(piece.file_id for piece in slices) if is_load else ids
        located = keyed.frame.withColumn(GROUP, self._group_column(rings))
        tasks = self.settings.count_tasks(located.sparkSession, len(ids), operation=operation)
        yield Placement(spread_rows(located, keyed.columns, tasks=tasks), ListedGroups(bases, logged=logged), None)

    @contextmanager
    def replan(
        self,
        operation: Operation,
        keyed: KeyedRows,
        made: Placement,
        *,
        before: Snapshot,
        now: Snapshot,
        written: Iterable[FileGroupId],
        instant: str,
    ) -> Iterator[Regrouped]:
        """See `Index.replan`; never asked, since it cannot."""
        del operation, keyed, before, now, written, instant
        yield Regrouped(made, frozenset(), ())

    def tells_places(self, operation: Operation) -> bool:
        """See `Index.tells_places`."""
        del operation
        return True

    def _check_rows(self, snapshot: Snapshot) -> None:
        slices = snapshot.file_slices()
        rings = self._load_rings(snapshot, {piece.partition for piece in slices})
        refuse_strangers(rings, slices)
        for file, key in snapshot.sample_log_keys(snapshot.data_files()).items():
            ring = rings[file.partition]
            [number] = ring.assign(hash_record_keys(pa.array([key]), self.settings.hash_fields))
            if ring.file_ids[number] != file.file_id:
                raise UnsupportedTable(
                    f"{file.path} holds the key {key!r}, which belongs to file group {ring.file_ids[number]} by the"
                    f" columns {', '.join(self.settings.hash_fields)}; set hoodie.bucket.index.hash.field to what the"
                    " table was written with",
                    path=file.path,
                    partition=file.partition,
                    hash_fields=list(self.settings.hash_fields),
                )

    def _load_rings(self, snapshot: Snapshot, partitions: Iterable[str]) -> Mapping[str, HashRing]:
        storage, timeline = snapshot.table.storage, snapshot.timeline
        return load_hash_rings(storage, timeline, partitions, buckets=self.settings.buckets.default)

    def _group_column(self, rings: Mapping[str, HashRing]) -> Column:
        hash_fields = list(self.settings.hash_fields)

        def place(keys, paths):  # type: ignore[no-untyped-def]  # Spark reads annotations of a Pandas UDF and knows few
            """A series of record keys and one of partition paths to a series of file ids."""
            import numpy as np

            column = pa.array(keys, pa.string(), from_pandas=True).fill_null("")
            hashes, found = hash_record_keys(column, hash_fields), np.empty(len(keys), dtype=object)
            for partition in paths.unique():
                chosen, ring = (paths == partition).to_numpy(), rings[partition]
                found[chosen] = np.array(ring.file_ids, dtype=object)[ring.assign(hashes[chosen])]
            return keys.__class__(found)

        return F.pandas_udf(place, "string")(F.col(RECORD_KEY), F.col(PARTITION_PATH))


def _refuse_replaced(rings: Mapping[str, HashRing], snapshot: Snapshot) -> None:
    """Readers hide for good what is logged to a file group that was replaced."""
    for (partition, file_id), instant in sorted(snapshot.replaced_groups.items()):
        if partition in rings and file_id in rings[partition].file_ids:
            message = (
                f"replacecommit {instant} ended file group {file_id} of partition {partition!r}, which the ring of its"
                " index names still: readers would hide what is logged there; let JVM Hudi write that partition"
            )
            raise UnsupportedTable(message, partition=partition, file_id=file_id, instant=instant)
