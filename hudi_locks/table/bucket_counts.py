"""The numbers of buckets that a table names for its partitions (Hudi's PartitionBucketIndexHashingConfig)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hudi_locks.config import Options, index_keys
from hudi_locks.format import INITIAL_BUCKET_COUNTS, BucketCounts
from hudi_locks.storage import Storage
from hudi_locks.table.config import TableConfig
from hudi_locks.timeline import Timeline

__all__ = ["create_bucket_counts", "find_bucket_counts"]

_FOLDER: Final = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
_SUFFIX: Final = ".hashing_config"


def create_bucket_counts(storage: Storage, config: TableConfig) -> None:
    """Write what a new table has, where partitions differ; the JVM's readers look for it there.

    Raises:
        ConfigError: The expressions cannot be used.
    """
    options = Options(config.extra)
    expressions = options.find(index_keys.BUCKET_INDEX_PARTITION_EXPRESSIONS)
    if not expressions:
        return
    counts = BucketCounts.parse(expressions, options.get_value(index_keys.BUCKET_INDEX_NUM_BUCKETS))
    storage.make_folder(_FOLDER)
    storage.create_if_absent(f"{_FOLDER}/{INITIAL_BUCKET_COUNTS}{_SUFFIX}", counts.encode())


def find_bucket_counts(storage: Storage, timeline: Timeline) -> BucketCounts | None:
    """The numbers in force: the newest whose write is completed; None if the table names none.

    Raises:
        DamagedTable: They cannot be read.
    """
    for instant in sorted(_list_instants(storage), reverse=True):
        path = f"{_FOLDER}/{instant}{_SUFFIX}"
        data = storage.read(path)
        if data is not None and (instant == INITIAL_BUCKET_COUNTS or timeline.is_completed(instant)):
            return BucketCounts.decode(data, path)
    return None


def _list_instants(storage: Storage) -> Iterator[str]:
    for name in storage.list_names(_FOLDER):
        if name.endswith(_SUFFIX):
            yield name.removesuffix(_SUFFIX)
