"""The simple bucket index: a row's file group follows from its key, and no table is read."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import BucketCounts, bucket_of_file_id
from hudi_locks.format.claim import FileGroupId
from hudi_locks.spark.writing.placement import GROUP, BucketGroups, FixedBuckets, Placement, Regrouped
from hudi_locks.table import PARTITION_PATH, RECORD_KEY, BaseFile

__all__ = ["BucketIndex"]


@dataclass(frozen=True)
class BucketIndex:
    """Hudi's BucketIndex with the SIMPLE engine.

    Attributes:
        hash_fields: Record key fields that are hashed.
        buckets: Buckets of each partition.
    """

    hash_fields: Sequence[str]
    buckets: BucketCounts

    def locate(self, rows: DataFrame) -> DataFrame:
        """Give each row its bucket, which follows from its key."""
        return rows.withColumn(GROUP, self._bucket_column())

    def place(self, located: DataFrame, base_files: Iterable[BaseFile], *, instant: str) -> Placement:
        """Give each bucket its file group.

        Args:
            located: Rows with their buckets, those of one bucket and partition in one task.
            base_files: Of the partitions that they touch.
            instant: Makes the ids of new file groups.

        Raises:
            UnsupportedTable: A partition holds two file groups for one bucket, or one that belongs to no bucket.
        """
        bases = self._by_bucket(base_files)
        seed = uuid.uuid5(uuid.NAMESPACE_OID, instant)
        return Placement(located, BucketGroups(bases, seed), None)

    def place_again(
        self,
        located: DataFrame,
        *,
        before: Iterable[BaseFile],
        now: Iterable[BaseFile],
        written: Iterable[FileGroupId],
        instant: str,
    ) -> Regrouped:
        """The rows of the buckets that changed between two snapshots.

        Args:
            located: All rows of the write.
            before: Newest files of the partitions by the earlier snapshot.
            now: The same by the later one.
            written: File groups that the write looked at.
            instant: Of the write.

        Raises:
            UnsupportedTable: See `place`.
        """
        known, bases = self._by_bucket(before), self._by_bucket(now)
        changed = {key for key in known | bases if known.get(key) != bases.get(key)}
        keys = {group: (group.partition, bucket_of_file_id(group.file_id)) for group in written}
        touched = frozenset(group for group, key in keys.items() if key in changed)
        named = sorted({keys[group] for group in touched})
        name = F.concat(F.col(PARTITION_PATH), F.lit("/"), F.col(GROUP).cast("string"))
        rows = located.where(name.isin([f"{partition}/{bucket}" for partition, bucket in named]))
        return Regrouped(
            self.place(rows, now, instant=instant), touched, tuple(bases[key] for key in named if key in bases)
        )

    def append(self, located: DataFrame) -> Placement:
        """Give each bucket the file group whose id is the same for all writers; nothing is listed for it.

        Args:
            located: Rows with their buckets, those of one bucket and partition in one task.
        """
        return Placement(located, FixedBuckets(), None)

    def check(self, base_files: Iterable[BaseFile], samples: Mapping[BaseFile, str]) -> None:
        """Whether rows of the table lie where this index would look for them.

        Args:
            base_files: All of the table.
            samples: A record key of each of a few of them.

        Raises:
            UnsupportedTable: A file or key belongs to another bucket: the number of buckets or the hash fields differ.
        """
        self._by_bucket(base_files)
        for file, key in samples.items():
            bucket, count = self.bucket_of(key, file.partition), self.buckets.count(file.partition)
            if bucket != _read_bucket(file):
                fields = ", ".join(self.hash_fields)
                raise UnsupportedTable(
                    f"{file.path} holds the key {key!r}, which {count} buckets over {fields} would put"
                    f" into bucket {bucket}; set hoodie.bucket.index.num.buckets and"
                    " hoodie.bucket.index.hash.field to what the table was written with",
                    path=file.path,
                    partition=file.partition,
                    buckets=count,
                    hash_fields=list(self.hash_fields),
                )

    def bucket_of(self, key: str, partition: str) -> int:
        """The bucket of one record key."""
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

    def _by_bucket(self, base_files: Iterable[BaseFile]) -> dict[tuple[str, int], BaseFile]:
        found: dict[tuple[str, int], BaseFile] = {}
        for file in base_files:
            key, count = (file.partition, _read_bucket(file)), self.buckets.count(file.partition)
            if key in found or key[1] >= count:
                raise UnsupportedTable(
                    f"partition {file.partition!r} holds {file.path} for bucket {key[1]} of {count}, which"
                    f" {'another file group serves too' if key in found else 'is out of range'}; set"
                    " hoodie.bucket.index.num.buckets to the number that the table was written with",
                    path=file.path,
                    partition=file.partition,
                    bucket=key[1],
                    buckets=count,
                )
            found[key] = file
        return found


def _read_bucket(file: BaseFile) -> int:
    if not file.file_id[:8].isdigit():
        raise UnsupportedTable(
            f"{file.path} belongs to no bucket, so the table was not written with a bucket index; set"
            " hoodie.index.type=SIMPLE",
            path=file.path,
            partition=file.partition,
        )
    return bucket_of_file_id(file.file_id)
