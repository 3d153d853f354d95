"""The simple bucket index: a row's file group follows from its key, and no table is read."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.config import index_keys
from hudi_locks.errors import ConfigError, UnsupportedTable
from hudi_locks.format import BucketCounts, bucket_of_file_id
from hudi_locks.format.claim import FileGroupId
from hudi_locks.spark._compat import is_on, reread_shuffled
from hudi_locks.spark.index.index import Count, Index
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.session import typed_task_errors
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.placement import GROUP, BucketGroups, FileGroup, Placement, Regrouped
from hudi_locks.spark.writing.rows import KeyedRows, keep_persisted, spread_unkeyed
from hudi_locks.table import PARTITION_PATH, RECORD_KEY, BaseFile, FileSlice, LogFile, find_bucket_counts

__all__ = ["BucketIndex"]

_RIGHT_NUMBER: Final = "hoodie.bucket.index.num.buckets to the number that the table was written with"
_OUT_OF_RANGE: Final = f"is out of range; set {_RIGHT_NUMBER}"
_SERVED_TWICE: Final = f"""\
another file group serves too; set {_RIGHT_NUMBER}, or, if a bulk insert of JVM Hudi came to a bucket that was there, \
load all rows of the table into a new one"""
_Piece = TypeVar("_Piece", BaseFile, FileSlice, BaseFile | FileSlice)


@dataclass(frozen=True)
class BucketIndex(Index):
    """Hudi's HoodieBucketIndex with the SIMPLE engine, of a copy-on-write table."""

    @property
    def buckets(self) -> BucketCounts:
        """Buckets of each partition."""
        return self.settings.buckets

    @property
    def hash_fields(self) -> Sequence[str]:
        """Record key fields that are hashed."""
        return self.settings.hash_fields

    @contextmanager
    def keep(self, keyed: KeyedRows, operation: Operation, *, count: Count) -> Iterator[KeyedRows]:
        """See `Index.keep`: buckets follow from keys alone, so the one shuffle of a write is its memory too."""
        located = keyed.frame.withColumn(GROUP, self._bucket_column())
        tasks = self.settings.count_tasks(located.sparkSession, self.buckets.most, operation=operation)
        with typed_task_errors(), _keep_shuffled(spread_unkeyed(located, keyed.columns, tasks=tasks)) as kept:
            frame = kept if keyed.columns is None else keyed.columns.add_to(kept)
            yield replace(keyed, frame=frame, counts=count(_merge_tasks(frame), 0).counts)

    @contextmanager
    def assign(
        self, operation: Operation, keyed: KeyedRows, snapshot: Snapshot, *, instant: str
    ) -> Iterator[Placement]:
        """See `Index.assign`."""
        base_files = [] if operation.replaces else snapshot.base_files(keyed.counts)
        yield self._place(keyed.frame, base_files, instant=instant)

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
        """See `Index.replan`: the rows of the buckets that changed between the snapshots."""
        del operation, made
        files = now.base_files(keyed.counts)
        known, bases = self._by_bucket(before.base_files(keyed.counts)), self._by_bucket(files)
        changed = {key for key in known | bases if known.get(key) != bases.get(key)}
        keys = {group: (group.partition, bucket_of_file_id(group.file_id)) for group in written}
        touched = frozenset(group for group, key in keys.items() if key in changed)
        named = sorted({keys[group] for group in touched})
        placement = self._place(_select_buckets(keyed.frame, named), files, instant=instant)
        yield Regrouped(placement, touched, tuple(bases[key] for key in named if key in bases))

    def tells_places(self, operation: Operation) -> bool:
        """See `Index.tells_places`."""
        del operation
        return True

    def check(self, snapshot: Snapshot) -> None:
        """See `Index.check`: the table may name other numbers of buckets."""
        found = find_bucket_counts(snapshot.table.storage, snapshot.timeline)
        if found is None or found == self.buckets:
            super().check(snapshot)
            return
        number, expressions = index_keys.BUCKET_INDEX_NUM_BUCKETS, index_keys.BUCKET_INDEX_PARTITION_EXPRESSIONS
        raise ConfigError(
            f"the table has {found.default} buckets in each partition, and others by {found.text!r}, while the options"
            f" say {self.buckets.default} and {self.buckets.text!r}; set {number.name}={found.default} and"
            f" {expressions.name}={found.text}, or keys would be there twice",
            key=expressions.name,
            asked=self.buckets.text,
            table=found.text,
        )

    def _check_rows(self, snapshot: Snapshot) -> None:
        base_files = snapshot.base_files()
        self._by_bucket(base_files)
        self._check_samples({file: (key, _read_bucket(file)) for file, key in snapshot.sample_keys(base_files).items()})

    def _check_samples(self, samples: Mapping[BaseFile | LogFile, tuple[str, int]]) -> None:
        for file, (key, found) in samples.items():
            bucket, count = self._bucket_of(key, file.partition), self.buckets.count(file.partition)
            if bucket != found:
                raise UnsupportedTable(
                    f"{file.path} holds the key {key!r}, which {count} buckets over {', '.join(self.hash_fields)}"
                    f" would put into bucket {bucket}; set hoodie.bucket.index.num.buckets and"
                    " hoodie.bucket.index.hash.field to what the table was written with",
                    path=file.path,
                    partition=file.partition,
                    buckets=count,
                    hash_fields=list(self.hash_fields),
                )

    def _place(self, located: DataFrame, pieces: Iterable[BaseFile | FileSlice], *, instant: str) -> Placement:
        seed = uuid.uuid5(uuid.NAMESPACE_OID, instant)
        return Placement(located, BucketGroups(self._list_groups(pieces), seed), None)

    def _list_groups(self, pieces: Iterable[BaseFile | FileSlice]) -> dict[tuple[str, int], FileGroup]:
        """The file group that each bucket has; rows for one that has a slice go to its log, where there are logs."""
        return {key: _name_group(piece) for key, piece in self._by_bucket(pieces).items()}

    def _bucket_of(self, key: str, partition: str) -> int:
        keys, partitions = pa.array([key]), pa.array([partition])
        return int(self.buckets.assign(keys, self.hash_fields, partitions=partitions)[0].as_py())

    def _bucket_column(self) -> Column:
        hash_fields, buckets = list(self.hash_fields), self.buckets

        def bucket(keys, *paths):  # type: ignore[no-untyped-def]  # Spark reads annotations of a Pandas UDF and knows few
            """A series of record keys, and where it matters one of partition paths, to a series of buckets."""
            import pandas as pd

            columns = [pa.array(column, pa.string(), from_pandas=True).fill_null("") for column in (keys, *paths)]
            partitions = columns[1] if paths else None
            return pd.Series(buckets.assign(columns[0], hash_fields, partitions=partitions).to_numpy())

        paths = [F.col(PARTITION_PATH)] if self.buckets.expressions else []
        return F.pandas_udf(bucket, "int")(F.col(RECORD_KEY), *paths)

    def _by_bucket(self, pieces: Iterable[_Piece]) -> dict[tuple[str, int], _Piece]:
        found: dict[tuple[str, int], _Piece] = {}
        for piece in pieces:
            key, count = (piece.partition, _read_bucket(piece)), self.buckets.count(piece.partition)
            if key in found or key[1] >= count:
                fault = _SERVED_TWICE if key in found else _OUT_OF_RANGE
                raise UnsupportedTable(
                    f"partition {piece.partition!r} holds {_name_file(piece)} for bucket {key[1]} of {count}, which"
                    f" {fault}",
                    path=_name_file(piece),
                    partition=piece.partition,
                    bucket=key[1],
                    buckets=count,
                )
            found[key] = piece
        return found


def _select_buckets(located: DataFrame, buckets: Iterable[tuple[str, int]]) -> DataFrame:
    name = F.concat(F.col(PARTITION_PATH), F.lit("/"), F.col(GROUP).cast("string"))
    return located.where(name.isin([f"{partition}/{bucket}" for partition, bucket in buckets]))


def _read_bucket(piece: BaseFile | FileSlice) -> int:
    if not piece.file_id[:8].isdigit():
        path = _name_file(piece)
        raise UnsupportedTable(
            f"{path} belongs to no bucket, so the table was not written with a bucket index; set"
            " hoodie.index.type=SIMPLE",
            path=path,
            partition=piece.partition,
        )
    return bucket_of_file_id(piece.file_id)


def _name_file(piece: BaseFile | FileSlice) -> str:
    return piece.path if isinstance(piece, BaseFile) else piece.paths[0]


def _name_group(piece: BaseFile | FileSlice) -> FileGroup:
    if isinstance(piece, BaseFile):
        return FileGroup(piece.partition, piece.file_id, piece)
    return FileGroup(piece.partition, piece.file_id, piece.base, is_logged=True)


def _merge_tasks(shuffled: DataFrame) -> DataFrame:
    """The same rows in one task for each core: of a few rows a task takes longer than all of them."""
    return shuffled.coalesce(shuffled.sparkSession.sparkContext.defaultParallelism)


@contextmanager
def _keep_shuffled(shuffled: DataFrame) -> Iterator[DataFrame]:
    """Rows whose last step is a shuffle, computed once for the length of the block: that shuffle is their memory."""
    again = reread_shuffled(shuffled) if is_on(shuffled.sparkSession, "shuffle") else None
    if again is not None:
        yield again
        return
    with keep_persisted(shuffled) as kept:
        yield kept
