"""Keys of writing and reading rows: operations, record keys, tasks, streams, queries."""

from __future__ import annotations

from typing import Any

from hudi_locks.config.key import Key

OPERATION = Key(
    "hoodie.datasource.write.operation",
    str,
    "upsert",
    "what a write does",
    since="0.4.0",
    choices=(
        "upsert",
        "insert",
        "bulk_insert",
        "delete",
        "insert_overwrite",
        "insert_overwrite_table",
        "delete_partition",
    ),
)
PARTITIONS_TO_DELETE = Key(
    "hoodie.datasource.write.partitions.to.delete",
    str,
    None,
    "partition paths that delete_partition deletes, comma-separated; those of the rows when absent",
    since="0.8.0",
)
WRITE_TABLE_TYPE = Key(
    "hoodie.datasource.write.table.type",
    str,
    "COPY_ON_WRITE",
    "type of a table that the write makes",
    since="0.4.0",
    choices=("COPY_ON_WRITE", "MERGE_ON_READ"),
)
RECORDKEY_FIELD = Key(
    "hoodie.datasource.write.recordkey.field",
    str,
    None,
    "columns that make the record key, comma-separated",
    since="0.4.0",
)
PRECOMBINE_FIELD = Key(
    "hoodie.datasource.write.precombine.field",
    str,
    None,
    "columns that decide which of two rows of one key wins",
    aliases=(
        "hoodie.datasource.write.ordering.fields",
        "hoodie.table.ordering.fields",
        "hoodie.table.precombine.field",
    ),
    since="0.4.0",
)
PARTITIONPATH_FIELD = Key(
    "hoodie.datasource.write.partitionpath.field",
    str,
    None,
    "columns that make the partition path, comma-separated; absent or empty for none",
    since="0.4.0",
)
HIVE_STYLE_PARTITIONING = Key(
    "hoodie.datasource.write.hive_style_partitioning",
    bool,
    False,
    "whether partition folders are called column=value",
    since="0.5.0",
)
PARTITIONPATH_URLENCODE = Key(
    "hoodie.datasource.write.partitionpath.urlencode",
    bool,
    False,
    "whether partition values are URL-encoded in folder names",
    since="0.5.0",
)
SLASH_SEPARATED_DATES = Key(
    "hoodie.datasource.write.slash.separated.date.partitioning",
    bool,
    False,
    "whether dates of the one partition column are three folders, year/month/day; unknown to writers before Hudi 1.2",
    since="1.2.0",
)
WRITE_KEYGENERATOR_CLASS = Key(
    "hoodie.datasource.write.keygenerator.class", str, None, "Java class that makes keys", since="0.4.0"
)
WRITE_KEYGENERATOR_TYPE = Key(
    "hoodie.datasource.write.keygenerator.type", str, None, "kind of key generator", since="0.7.0"
)
COMPLEX_KEY_VALUE_ONLY = Key(
    "hoodie.write.complex.keygen.new.encoding",
    bool,
    None,
    "whether ComplexKeyGenerator writes the bare value of a single record key column, for a new or empty table of"
    " version 8; otherwise the table tells",
    since="1.1.0",
)
CONSISTENT_LOGICAL_TIMESTAMP = Key(
    "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
    bool,
    False,
    "whether timestamps in keys and partition paths are written as text in the zone of the machine, as"
    " `2026-01-01 10:00:00.0`, and not in microseconds; all writers of a table need the same",
    since="0.10.1",
)
INSERT_DROP_DUPLICATES = Key(
    "hoodie.datasource.write.insert.drop.duplicates",
    bool,
    False,
    "whether an insert leaves out rows whose key the table has",
    since="0.5.0",
)
RECONCILE_SCHEMA = Key(
    "hoodie.datasource.write.reconcile.schema",
    bool,
    False,
    "whether columns missing from a write are filled with nulls",
    since="0.8.0",
)
SCHEMA_ON_READ = Key(
    "hoodie.schema.on.read.enable",
    bool,
    False,
    "whether a table whose columns ALTER TABLE changed is read and written by their history",
    since="0.11.0",
    no_effect="such a table is always read and written by that history",
)
ROW_WRITER_ENABLE = Key(
    "hoodie.datasource.write.row.writer.enable",
    bool,
    True,
    "JVM writers only: native rows in bulk insert",
    no_effect="it is for JVM writers; rows never pass through Avro here",
)
COMBINE_BEFORE_INSERT = Key(
    "hoodie.combine.before.insert",
    bool,
    False,
    "whether an insert first merges rows of one key within the batch",
    since="0.4.0",
)
COMBINE_BEFORE_UPSERT = Key(
    "hoodie.combine.before.upsert",
    bool,
    True,
    "whether an upsert first merges rows of one key within the batch",
    since="0.4.0",
)
COMBINE_BEFORE_DELETE = Key(
    "hoodie.combine.before.delete",
    bool,
    True,
    "whether a delete first merges rows of one key within the batch",
    since="0.5.0",
    accepted=("true",),
    no_effect="a key is deleted once, however often it is named",
)
WRITE_TABLE_VERSION = Key(
    "hoodie.write.table.version",
    int,
    8,
    "version of a table that the write makes, and the least that an existing one must have",
    since="1.0.0",
    minimum=6,
)
AUTO_UPGRADE_VERSION = Key(
    "hoodie.write.auto.upgrade",
    bool,
    True,
    "JVM writers only: whether an older table is upgraded by a write",
    since="1.0.0",
    accepted=("false",),
    no_effect="no write upgrades a table here; hudi-locks upgrade does",
)

MERGE_MEMORY = Key(
    "hoodie.memory.merge.max.size",
    int,
    1 << 30,
    "how much of its input a task keeps in memory, in bytes; more goes to local disk",
    since="0.4.0",
    minimum=1,
)
SHUFFLE_PARALLELISM_INSERT = Key(
    "hoodie.insert.shuffle.parallelism", int, 0, "tasks of an insert; 0 for Spark's choice", minimum=0
)
SHUFFLE_PARALLELISM_UPSERT = Key(
    "hoodie.upsert.shuffle.parallelism", int, 0, "tasks of an upsert; 0 for Spark's choice", minimum=0
)
SHUFFLE_PARALLELISM_DELETE = Key(
    "hoodie.delete.shuffle.parallelism", int, 0, "tasks of a delete; 0 for Spark's choice", minimum=0
)
SHUFFLE_PARALLELISM_BULKINSERT = Key(
    "hoodie.bulkinsert.shuffle.parallelism", int, 0, "tasks of a bulk insert; 0 for Spark's choice", minimum=0
)
BULK_INSERT_SORT_MODE = Key(
    "hoodie.bulkinsert.sort.mode",
    str,
    "NONE",
    "order of rows in a bulk insert",
    choices=(
        "NONE",
        "GLOBAL_SORT",
        "PARTITION_SORT",
        "PARTITION_PATH_REPARTITION",
        "PARTITION_PATH_REPARTITION_AND_SORT",
    ),
    accepted=("NONE",),
    refusal="rows are written as they come; sort the DataFrame instead",
)

STREAMING_CHECKPOINT_IDENTIFIER = Key(
    "hoodie.datasource.write.streaming.checkpoint.identifier",
    str,
    "default_single_writer",
    "names a stream among those that write to one table",
    since="0.13.0",
)
STREAMING_RETRY_COUNT = Key(
    "hoodie.datasource.write.streaming.retry.count",
    int,
    3,
    "how often a micro-batch is tried again after a failure that may pass",
    since="0.4.0",
    minimum=0,
)
STREAMING_RETRY_INTERVAL_MS = Key(
    "hoodie.datasource.write.streaming.retry.interval.ms",
    int,
    2_000,
    "pause before a micro-batch is tried again, in ms",
    since="0.4.0",
    minimum=0,
)

QUERY_TYPE = Key(
    "hoodie.datasource.query.type",
    str,
    "snapshot",
    "what a read returns",
    since="0.5.0",
    choices=("snapshot", "incremental", "read_optimized"),
    refusal="a writer reads nothing; give it to hudi_locks.spark.read, or call read, as_of or incremental",
)
AS_OF_INSTANT = Key(
    "as.of.instant",
    str,
    None,
    "time that a snapshot is read at",
    since="0.9.0",
    refusal="a writer reads nothing; give it to hudi_locks.spark.read, or call read, as_of or incremental",
)
BEGIN_INSTANT = Key(
    "hoodie.datasource.read.begin.instanttime",
    str,
    None,
    "an incremental read begins after it",
    since="0.4.0",
    refusal="a writer reads nothing; give it to hudi_locks.spark.read, or call read, as_of or incremental",
)
END_INSTANT = Key(
    "hoodie.datasource.read.end.instanttime",
    str,
    None,
    "an incremental read ends with it",
    since="0.4.0",
    refusal="a writer reads nothing; give it to hudi_locks.spark.read, or call read, as_of or incremental",
)
FULL_SCAN = Key(
    "hoodie.datasource.read.incr.fallback.fulltablescan.enable",
    bool,
    True,
    "whether an incremental read that begins before the active timeline shows all that archived commits wrote; false,"
    " by which JVM Hudi leaves some of it out, is refused",
    since="0.9.0",
    refusal="a writer reads nothing; give it to hudi_locks.spark.read, or call read, as_of or incremental",
)
READ_KEYS: tuple[Key[Any], ...] = (QUERY_TYPE, AS_OF_INSTANT, BEGIN_INSTANT, END_INSTANT, FULL_SCAN)
"""Options of one read."""

_EVERY_ROW = (
    "a table shows each of its rows or fails, whatever the session says; `hudi-locks verify` names the files, and"
    " as_of, partitions or where read what needs none of them"
)
IGNORE_CORRUPT_FILES = Key(
    "ignoreCorruptFiles",
    bool,
    False,
    "whether Spark passes over damaged files",
    aliases=("ignorecorruptfiles",),
    accepted=("false",),
    refusal=_EVERY_ROW,
)
IGNORE_MISSING_FILES = Key(
    "ignoreMissingFiles",
    bool,
    False,
    "whether Spark passes over files that are gone",
    aliases=("ignoremissingfiles",),
    accepted=("false",),
    refusal=_EVERY_ROW,
)
LENIENT_KEYS: tuple[Key[bool], ...] = (IGNORE_CORRUPT_FILES, IGNORE_MISSING_FILES)
"""Options of Spark's file sources by which rows would be missing in silence."""
