"""The simple index: a key is found by reading the keys of the partitions that the input touches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import is_bucket_file_id
from hudi_locks.format.claim import FileGroupId
from hudi_locks.spark.index.index import Count, Index
from hudi_locks.spark.index.key_lookup import KeyLookup, regroup
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.keyed_rows import KeyedRows, keep_persisted
from hudi_locks.spark.writing.placement import Placement, Regrouped

__all__ = ["SimpleIndex"]


@dataclass(frozen=True)
class SimpleIndex(Index):
    """Hudi's HoodieSimpleIndex: reads the keys of the partitions that the input touches."""

    @contextmanager
    def keep(self, keyed: KeyedRows, operation: Operation, *, count: Count) -> Iterator[KeyedRows]:
        """See `Index.keep`."""
        del operation
        with keep_persisted(keyed.frame) as frame:
            yield replace(keyed, frame=frame, counts=count(frame))

    @contextmanager
    def assign(
        self, operation: Operation, keyed: KeyedRows, snapshot: Snapshot, *, instant: str
    ) -> Iterator[Placement]:
        """See `Index.assign`."""
        del instant
        base_files = [] if operation.replaces else snapshot.base_files(keyed.counts)
        lookup = self._look_up(operation, snapshot)
        if not self.settings.looks_up(operation):
            yield lookup.place_new(keyed.frame, base_files, keyed.counts)
            return
        with keep_persisted(lookup.tag(keyed.frame, base_files)) as tagged:
            yield lookup.place(operation, tagged, base_files)

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
        """See `Index.replan`: keys are looked up in the files that changed."""
        del written, instant
        if made.assigned is None:
            raise ValueError(f"a write that looked no key up cannot be replanned: {operation.value}")
        old, new = before.base_files(keyed.counts), now.base_files(keyed.counts)
        lookup, counts = self._look_up(operation, now), keyed.counts
        with regroup(lookup, operation, made.assigned, before=old, now=new, counts=counts) as regrouped:
            yield regrouped

    def tells_places(self, operation: Operation) -> bool:
        """See `Index.tells_places`."""
        return self.settings.looks_up(operation)

    def _check_rows(self, snapshot: Snapshot) -> None:
        base_files = snapshot.base_files()
        if base_files and all(is_bucket_file_id(file.file_id) for file in base_files):
            raise UnsupportedTable(
                f"{base_files[0].path} and all others belong to buckets; set hoodie.index.type=BUCKET and"
                " hoodie.bucket.index.num.buckets to the number that the table was written with",
                path=base_files[0].path,
            )

    def _look_up(self, operation: Operation, snapshot: Snapshot) -> KeyLookup:
        sizing = self.settings.sizing(snapshot.record_bytes)
        if operation is Operation.BULK_INSERT:
            sizing = replace(sizing, small_file_bytes=0)
        return KeyLookup(snapshot.table.storage, sizing, snapshot.planned_groups)
