"""Keys of rows looked up in the record index of a table's metadata table. Runs on the driver, and by tasks."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.config import index_keys
from hudi_locks.errors import ConfigError, DamagedTable
from hudi_locks.format import MetadataPartition
from hudi_locks.format.key_groups import KeyGroups, parse_key_group
from hudi_locks.metadata_table import find_keys
from hudi_locks.spark._compat import run_in_workers
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.rows import KeyedRows, keep_persisted
from hudi_locks.storage import Storage
from hudi_locks.table import PARTITION_PATH, RECORD_KEY, BaseFile, FileSlice, Table

__all__ = ["FILE_ID", "KEY", "PATH", "RecordLookup", "warn_without_index"]

_NUMBER: Final = "number"
FILE_ID: Final = "file_id"
PATH: Final = "path"
KEY: Final = "key"
_TASKS_PER_CORE: Final = 2
_PART: Final = MetadataPartition.RECORD_INDEX
_WHOLE, _BY_PARTITION = "RECORD_INDEX", "RECORD_LEVEL_INDEX"


@dataclass(frozen=True)
class _NumberTask:
    """Keys with the number of their file group of the index."""

    groups: KeyGroups

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = self.groups.number(batch.column(RECORD_KEY), batch.column(batch.num_columns - 1))
            yield pa.RecordBatch.from_arrays([numbers, *batch.columns], [_NUMBER, *batch.schema.names])


@dataclass(frozen=True)
class _FindTask:
    """Looks keys up in file groups of the index. Picklable; made on the driver, called on executors.

    Attributes:
        storage: Of the table.
        groups: All file groups of the index.
        slices: The newest slice of each, by its id.
        columns: Of what it takes.
    """

    storage: Storage
    groups: KeyGroups
    slices: Mapping[str, FileSlice]
    columns: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take keys with the numbers of their file groups, and yield those that are there with their places."""
        for group, keys in self._divide(pa.Table.from_batches(batches, self.columns)):
            if group in self.slices:
                yield from find_keys(self.storage, self.slices[group], keys).drop_columns("is_gone").to_batches()

    def _divide(self, rows: pa.Table) -> Iterator[tuple[str, pa.Array]]:
        owners = [name for name in self.columns.names if name != RECORD_KEY]
        lists = rows.group_by(owners).aggregate([(RECORD_KEY, "distinct")])
        keys = lists.column(f"{RECORD_KEY}_distinct").combine_chunks()
        for at, one in enumerate(lists.select(owners).to_pylist()):
            yield self.groups.name(one.get(PARTITION_PATH, ""), one[_NUMBER]), keys[at].values


@dataclass(frozen=True)
class RecordLookup:
    """Looks keys of rows up in a record index.

    Attributes:
        storage: Of the table.
        groups: The file groups of the index.
        slices: The newest slice of each, by its id.
    """

    storage: Storage
    groups: KeyGroups
    slices: Mapping[str, FileSlice]

    @classmethod
    def of(cls, snapshot: Snapshot, *, by_partition: bool) -> RecordLookup | None:
        """That of a table; None where it has no record index, or it was dropped since the table was loaded.

        Raises:
            ConfigError: Its index is of the other kind.
        """
        view = snapshot.metadata
        if view is None or not snapshot.has_record_index:
            return None
        try:
            slices = {piece.file_id: piece for piece in view.list_slices(_PART)}
        except DamagedTable:
            now = Table.load(snapshot.table.storage, zone=snapshot.table.config.zone)
            if _PART.value in now.config.metadata_parts:
                raise
            return None
        groups = KeyGroups.of(slices) or KeyGroups(is_partitioned=True)
        if groups.is_partitioned != by_partition:
            raise _refuse_kind(snapshot, by_partition=by_partition)
        return cls(snapshot.table.storage, groups, slices)

    @contextmanager
    def find(
        self, keyed: KeyedRows, base_files: Iterable[BaseFile], names: Mapping[str, str], *, by: Sequence[str]
    ) -> Iterator[DataFrame | None]:
        """The rows with the place of their key, or null; None where the index tells a place that is not among them.

        The index may know of writes that a snapshot does not have, and of file groups that it lacks, as after a
        clustering.

        Args:
            keyed: The rows.
            base_files: Of the snapshot.
            names: What the columns of `look_up` are to be called.
            by: Columns that name a row.
        """
        with keep_persisted(self.look_up(keyed.frame, keyed.counts)) as known:
            named = known.withColumnsRenamed(dict(names))
            yield keyed.frame.join(named, list(by), "left") if _lies_among(known, base_files) else None

    def look_up(self, rows: DataFrame, partitions: Collection[str]) -> DataFrame:
        """The keys of rows that are there, as `key`, with `path` and `file_id` of their place.

        Args:
            rows: With record keys and partition paths.
            partitions: Paths of all of them; by an index of the whole table they do not matter.
        """
        owners = [RECORD_KEY, PARTITION_PATH] if self.groups.is_partitioned else [RECORD_KEY]
        slices = {one: piece for one, piece in self.slices.items() if self._may_have(one, partitions)}
        columns = pa.schema([(_NUMBER, pa.int32()), *((name, pa.string()) for name in owners)])
        keys = rows.select(*owners).where(F.col(RECORD_KEY).isNotNull())
        told = ", ".join(f"{name} string" for name in owners)
        numbered = run_in_workers(keys, _NumberTask(self.groups), f"{_NUMBER} int, {told}")
        most = _TASKS_PER_CORE * rows.sparkSession.sparkContext.defaultParallelism
        spread = numbered.repartition(max(1, min(len(slices), most)), *owners[1:], _NUMBER)
        task = _FindTask(self.storage, self.groups, slices, columns)
        return run_in_workers(spread, task, f"{KEY} string, {PATH} string, {FILE_ID} string")

    def _may_have(self, group: str, partitions: Collection[str]) -> bool:
        found = parse_key_group(group)
        return not self.groups.is_partitioned or (found is not None and found[0] in partitions)


def _lies_among(known: DataFrame, base_files: Iterable[BaseFile]) -> bool:
    """Whether all places that an index tells are file groups of these base files; `known` is persisted."""
    [told] = known.agg(F.collect_set(F.struct(PATH, FILE_ID))).collect()
    return {tuple(place) for place in told[0]} <= {(file.partition, file.file_id) for file in base_files}


def warn_without_index(snapshot: Snapshot, where: str) -> None:
    """Say that a table has no record index, so that keys are looked for in its files."""
    if not snapshot.has_record_index:
        message = f"{snapshot.table.storage.base} has no record index: keys are looked for in {where}"
        warnings.warn(message, UserWarning, stacklevel=4)


def _refuse_kind(snapshot: Snapshot, *, by_partition: bool) -> ConfigError:
    asked, wanted = (_BY_PARTITION, _WHOLE) if by_partition else (_WHOLE, _BY_PARTITION)
    has = "of the whole table, where each key is once" if by_partition else "by partition, where a key is once in each"
    key = index_keys.INDEX_TYPE.name
    message = f"{key}={asked}, and {snapshot.table.storage.base} has a record index {has}: set {key}={wanted}"
    return ConfigError(message, key=key, value=asked)
