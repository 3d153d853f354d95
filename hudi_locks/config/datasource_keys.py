"""Keys of writing rows: operations, record keys, tasks, streams."""

from __future__ import annotations

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
    aliases=("hoodie.datasource.write.storage.type",),
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
        "hoodie.payload.ordering.field",
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
INSERT_DUP_POLICY = Key(
    "hoodie.datasource.insert.dup.policy",
    str,
    "none",
    "what an insert does with rows whose key the table has: none writes them too, drop leaves them out",
    since="0.14.0",
    choices=("none", "drop", "fail"),
    accepted=("none", "drop"),
    refusal="an insert looks for no key that it would fail for; drop leaves such rows out, and upsert updates them",
)
DUPLICATES_ON_INSERTS = Key(
    "hoodie.merge.allow.duplicate.on.inserts",
    bool,
    True,
    "whether an insert may put a row into a file that has its key",
    since="0.8.0",
    accepted=("true",),
    refusal="an insert merges no rows; use upsert, or hoodie.datasource.write.insert.drop.duplicates=true",
)
RECONCILE_SCHEMA = Key(
    "hoodie.datasource.write.reconcile.schema",
    bool,
    False,
    "whether columns missing from a write are filled with nulls",
    since="0.8.0",
)
SET_NULL_FOR_MISSING_COLUMNS = Key(
    "hoodie.write.set.null.for.missing.columns",
    bool,
    False,
    "the same: whether columns missing from a write are filled with nulls",
    since="0.14.1",
)
DROP_COLUMNS_BY_WRITE = Key(
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop",
    bool,
    False,
    "whether a column that a write lacks is dropped from the table",
    since="0.13.0",
    accepted=("false",),
    refusal="no write drops a column; drop it by table.schema.drop, or fill it by"
    " hoodie.datasource.write.reconcile.schema=true",
)
WRITE_SCHEMA = Key(
    "hoodie.write.schema",
    str,
    None,
    "Avro schema to write rows by",
    since="0.12.0",
    refusal="the columns of the DataFrame are those of the write; name and cast them there",
)
OPERATION_COLUMN = Key(
    "hoodie.allow.operation.metadata.field",
    bool,
    False,
    "whether rows get the meta column _hoodie_operation of Flink jobs",
    since="0.9.0",
    accepted=("false",),
    refusal="rows have Hudi's five meta columns here; write such a table by Flink",
)
COMMIT_METADATA_PREFIX = Key(
    "hoodie.datasource.write.commitmeta.key.prefix",
    str,
    "_",
    "options of hudi_locks.spark.write that begin with it are kept in the commit's extra metadata",
    since="0.4.0",
)
EMPTY_COMMITS = Key(
    "hoodie.allow.empty.commit",
    bool,
    True,
    "whether a write without rows leaves a commit",
    since="0.10.1",
    accepted=("true",),
    no_effect="such a write leaves a commit without files, which tells that it was done",
)
IGNORE_FAILED_ROWS = Key(
    "hoodie.write.ignore.failed",
    bool,
    False,
    "whether a write is committed without the rows that could not be written",
    accepted=("false",),
    refusal="a row that cannot be written fails the write, since it would be lost",
)
PRECOMMIT_VALIDATORS = Key(
    "hoodie.precommit.validators",
    str,
    "",
    "Java classes that judge a write before its commit",
    since="0.8.0",
    accepted=("",),
    refusal="Java code is not run here, and a write that it would refuse must not pass; check the DataFrame before",
)
PREWRITE_VALIDATORS = Key(
    "hoodie.prewrite.validators",
    str,
    "",
    "Java classes that judge a write before it begins",
    accepted=("",),
    refusal="Java code is not run here, and a write that it would refuse must not pass; check the DataFrame before",
)
ERROR_TABLE = Key(
    "hoodie.errortable.enable",
    bool,
    False,
    "whether rows that cannot be written go to a table of their own",
    accepted=("false",),
    refusal="a row that cannot be written fails the write here; divide the DataFrame before",
)
SAME_ORDERING_UPDATES = Key(
    "hoodie.payload.update.on.same.ordering.field",
    bool,
    True,
    "whether a row replaces one with an equal value in the ordering column",
    accepted=("true",),
    refusal="of rows with equal ordering values the later one wins here, as by Hudi's merge modes",
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
STREAMING_IGNORE_FAILED = Key(
    "hoodie.datasource.write.streaming.ignore.failed.batch",
    bool,
    False,
    "whether a stream goes on after a micro-batch that failed",
    since="0.4.0",
    accepted=("false",),
    no_effect="a micro-batch that fails ends the stream, so that no row is lost; start it anew from its checkpoint",
)
STREAMING_DISABLE_COMPACTION = Key(
    "hoodie.datasource.write.streaming.disable.compaction",
    bool,
    False,
    "whether a stream compacts nothing",
    since="0.14.0",
    accepted=("true",),
    no_effect="a stream compacts only where hoodie.datasource.compaction.async.enable=true says so",
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
