"""What a merge-on-read table takes, and in which state; all else is refused before anything is written. On the driver.

The id of a file group follows from its bucket alone here, so a file group that was replaced can never be written
again: readers hide it for good, and with it whatever comes later.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hudi_locks.config import Key, Options, datasource_keys, index_keys, table_keys, write_keys
from hudi_locks.errors import ConfigError, UnsupportedTable
from hudi_locks.format import WRITE_ACTIONS, WriteStat, bucket_of_file_id, fixed_bucket_file_id
from hudi_locks.spark.index.bucket_index import BucketIndex
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.storage import map_in_threads
from hudi_locks.table import BaseFile, LogFile, TableConfig, read_commit

__all__ = ["FixedGroups", "check_fixed_groups", "check_not_replaced", "refuse_operation", "refuse_unfit"]

_MERGE_ON_READ: Final = "MERGE_ON_READ"
_ENDED: Final = "readers would hide the file groups of these partitions for good, and what is written there later too"
_REFUSED: Final = {
    Operation.BULK_INSERT: "it makes base files beside the buckets; use insert, which goes to logs",
    Operation.INSERT_OVERWRITE: f"{_ENDED}; delete the rows that are to go, and insert the others",
    Operation.INSERT_OVERWRITE_TABLE: f"{_ENDED}; make a new table, or delete the rows",
    Operation.DELETE_PARTITION: f"{_ENDED}; delete the rows",
}


def refuse_unfit(options: Options, config: TableConfig) -> None:
    """Whether a writer with these options may write to the table, as far as its settings tell.

    Raises:
        ConfigError: A merge-on-read table needs the simple bucket index; non-blocking writers such a table, and an
            order of rows that all of them know.
    """
    mode = options.get_value(write_keys.CONCURRENCY_MODE).upper()
    if config.table_type == _MERGE_ON_READ:
        _demand(options, index_keys.INDEX_TYPE, "BUCKET", why="logs go where the bucket of a key says")
        _demand(options, index_keys.BUCKET_INDEX_ENGINE, "SIMPLE", why="buckets stay as they are")
    if mode != write_keys.NON_BLOCKING:
        return
    key = write_keys.CONCURRENCY_MODE.name
    if config.table_type != _MERGE_ON_READ:
        message = f"{key}={mode} needs a {_MERGE_ON_READ} table, and this one is {config.table_type}: writers that do"
        raise ConfigError(f"{message} not wait for each other cannot rewrite base files", key=key)
    if not config.ordering_fields and config.declared_merge_mode != "COMMIT_TIME_ORDERING":
        message = f"{key}={mode} needs a column that orders rows of one key, since writers complete in any order; name"
        way_out = f"say {table_keys.RECORD_MERGE_MODE.name}=COMMIT_TIME_ORDERING, if the write begun last is to win"
        raise ConfigError(f"{message} one, or {way_out}", key=key)


def _demand(options: Options, key: Key[str], needed: str, *, why: str) -> None:
    found = options.get_value(key).upper()
    if found != needed:
        message = f"a {_MERGE_ON_READ} table is written with {key.name}={needed} only, since {why}; it is {found}"
        raise ConfigError(message, key=key.name, value=found)


def refuse_operation(operation: Operation, *, drops_duplicates: bool) -> None:
    """Whether the operation can be done by logs.

    Raises:
        ConfigError: It cannot; the message says why, and the way out.
    """
    key = datasource_keys.OPERATION.name
    if operation in _REFUSED:
        message = f"{key}={operation.value} is not offered on a merge-on-read table: {_REFUSED[operation]}"
        raise ConfigError(message, key=key, value=operation.value)
    if operation is Operation.INSERT and drops_duplicates:
        name = datasource_keys.INSERT_DROP_DUPLICATES.name
        message = f"{name}=true would have every append look up its keys; a key is there once anyway, so leave it out"
        raise ConfigError(message, key=name)


def check_fixed_groups(index: BucketIndex, snapshot: Snapshot) -> None:
    """Whether every file group of the table has the one id of its bucket, and holds keys that belong there.

    Lists the table; for one whose writers we do not know.

    Raises:
        UnsupportedTable: One has another id, or holds a key of another bucket.
    """
    files = snapshot.data_files()
    _refuse_other_ids(index, files)
    for file, key in snapshot.sample_log_keys(files).items():
        bucket, count = index.bucket_of(key, file.partition), index.buckets.count(file.partition)
        if bucket != bucket_of_file_id(file.file_id):
            raise UnsupportedTable(
                f"{file.path} holds the key {key!r}, which {count} buckets over {', '.join(index.hash_fields)}"
                f" would put into bucket {bucket}; set hoodie.bucket.index.num.buckets and"
                " hoodie.bucket.index.hash.field to what the table was written with",
                path=file.path,
                buckets=count,
            )


class FixedGroups:
    """Watches, for one writer, that what others commit to its table keeps to the ids of buckets. Not thread-safe.

    A JVM writer that blocks gives a new bucket an id of its own: then a key would be there twice. It is seen in its
    commit, which is read once.

    Args:
        index: The bucket index.
    """

    def __init__(self, index: BucketIndex) -> None:
        self._index = index
        self._seen: set[str] = set()

    def check(self, snapshot: Snapshot) -> None:
        """Look at the commits of the active timeline that were not looked at yet.

        Raises:
            UnsupportedTable: One has written a file group of another id.
        """
        new = [i.requested for i in snapshot.timeline.completed(WRITE_ACTIONS) if i.requested not in self._seen]
        storage, timeline = snapshot.table.storage, snapshot.timeline
        commits = map_in_threads(lambda requested: read_commit(storage, timeline, requested=requested), new)
        _refuse_other_ids(self._index, (stat for commit in commits for stat in commit.stats if stat.path))
        self._seen.update(new)


def _refuse_other_ids(index: BucketIndex, files: Iterable[BaseFile | LogFile | WriteStat]) -> None:
    for file in files:
        partition = file.partition_path if isinstance(file, WriteStat) else file.partition
        count = index.buckets.count(partition)
        bucket = bucket_of_file_id(file.file_id) if file.file_id[:8].isdigit() else None
        if bucket is None or bucket >= count or file.file_id != fixed_bucket_file_id(bucket):
            raise UnsupportedTable(
                f"{file.path} belongs to no file group that {count} buckets give, whose ids are such as"
                f" {fixed_bucket_file_id(0)}: it was made by a writer that did not use the simple bucket index with"
                " NON_BLOCKING_CONCURRENCY_CONTROL, or by one with more buckets, and a key could be there twice; write"
                " with what made it, or load its rows into a new table",
                path=file.path,
                buckets=count,
            )


def check_not_replaced(snapshot: Snapshot, partitions: Iterable[str]) -> None:
    """Whether rows that are logged to these partitions will be seen.

    Raises:
        UnsupportedTable: A write replaced file groups there.
    """
    touched = frozenset(partitions)
    for (partition, file_id), instant in sorted(snapshot.replaced_groups.items()):
        if partition in touched:
            raise UnsupportedTable(
                f"replacecommit {instant} ended file group {file_id} of partition {partition!r}, and readers would hide"
                " what is logged there now; clean the table and archive that instant with JVM Hudi, or use a new table",
                partition=partition,
                file_id=file_id,
                instant=instant,
            )
