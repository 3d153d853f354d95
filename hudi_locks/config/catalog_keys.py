"""Keys of catalog sync: what a write tells the Hive Metastore or AWS Glue of its table."""

from __future__ import annotations

from typing import Final

from hudi_locks.config.key import Key

HIVE_SYNC_TOOL: Final = "org.apache.hudi.hive.HiveSyncTool"
GLUE_SYNC_TOOL: Final = "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool"
"""Sync tools of JVM Hudi that are followed here."""
HMS: Final = "hms"
"""The one way of asking a metastore that is offered."""
ALL, READ_OPTIMIZED, REAL_TIME = "ALL", "RO", "RT"

HIVE_SYNC_ENABLE = Key(
    "hoodie.datasource.hive_sync.enable",
    bool,
    False,
    "whether a write brings the Hive Metastore up to date, with `hoodie.datasource.hive_sync.mode=hms`",
)
META_SYNC_ENABLE = Key(
    "hoodie.datasource.meta.sync.enable",
    bool,
    False,
    "whether a write brings the catalogs of `hoodie.meta.sync.client.tool.class` up to date",
)
SYNC_TOOLS = Key(
    "hoodie.meta.sync.client.tool.class",
    str,
    HIVE_SYNC_TOOL,
    f"tools that `hoodie.datasource.meta.sync.enable` asks for, with commas between; `{HIVE_SYNC_TOOL}` and"
    f" `{GLUE_SYNC_TOOL}` are followed here, and a write warns of any other",
)
MODE = Key(
    "hoodie.datasource.hive_sync.mode",
    str,
    None,
    "how the metastore is asked: `hms`, which is Thrift. Any other, and none, which is JDBC in JVM Hudi, leaves the"
    " catalog as it is, and a write warns of it",
    since="0.9.0",
)
URIS = Key(
    "hoodie.datasource.hive_sync.metastore.uris",
    str,
    None,
    "metastores, with commas between: `thrift://host:port`; else those of hive-site.xml or of the running Spark",
)
DATABASE = Key(
    "hoodie.datasource.hive_sync.database",
    str,
    None,
    "database of the table in the catalog; that of `hoodie.database.name`, else `default`, if absent",
)
TABLE = Key(
    "hoodie.datasource.hive_sync.table", str, None, "name of the table in the catalog; the table's own if absent"
)
PARTITION_FIELDS = Key(
    "hoodie.datasource.hive_sync.partition_fields",
    str,
    None,
    "names of the partition columns in the catalog, with commas between; those of the table if absent",
)
EXTRACTOR = Key(
    "hoodie.datasource.hive_sync.partition_extractor_class",
    str,
    None,
    "how values of partition columns are told from folders, by class name: SinglePartPartitionValueExtractor,"
    " MultiPartKeysValueExtractor, HiveStylePartitionValueExtractor, NonPartitionedExtractor or"
    " SlashEncodedDayPartitionValueExtractor; as the table makes its folders if absent",
)
CREATE_DATABASE = Key(
    "hoodie.datasource.hive_sync.auto_create_database", bool, True, "whether the database is made if it is not there"
)
STRATEGY = Key(
    "hoodie.datasource.hive_sync.table.strategy",
    str,
    ALL,
    "for merge-on-read tables: ALL makes `name_ro`, `name_rt` and `name`; RO and RT make `name` alone, read optimized"
    " or with the logs",
    choices=(ALL, READ_OPTIMIZED, REAL_TIME),
    since="0.13.0",
)
SKIP_RO_SUFFIX = Key(
    "hoodie.datasource.hive_sync.skip_ro_suffix",
    bool,
    False,
    "for merge-on-read tables: whether the read-optimized one is called `name`; with the logs it has that name too,"
    " and comes last, unless `hoodie.meta.sync.sync_snapshot_with_table_name=false`",
)
WITH_SNAPSHOT = Key(
    "hoodie.meta.sync.sync_snapshot_with_table_name",
    bool,
    True,
    "for merge-on-read tables: whether `name` is made beside `name_ro` and `name_rt`",
    since="0.14.0",
)
SUPPORT_TIMESTAMP = Key(
    "hoodie.datasource.hive_sync.support_timestamp",
    bool,
    False,
    "whether timestamps are `timestamp` to Hive, and not `bigint`; Spark sees timestamps either way",
)
AS_DATASOURCE = Key(
    "hoodie.datasource.hive_sync.sync_as_datasource",
    bool,
    True,
    "whether the catalog tells Spark to read the table as Hudi's, with the columns as Spark knows them",
)
SCHEMA_LETTERS = Key(
    "hoodie.datasource.hive_sync.schema_string_length_thresh",
    int,
    4000,
    "most letters of one property; Spark's columns are spread over as many as they take",
    minimum=1,
)
OMIT_META_COLUMNS = Key(
    "hoodie.datasource.hive_sync.omit_metadata_fields",
    bool,
    False,
    "whether the catalog leaves out Hudi's five meta columns",
    since="0.13.0",
)
TABLE_PROPERTIES = Key(
    "hoodie.datasource.hive_sync.table_properties", str, "", "more properties of the table: `name=value`, one on a line"
)
SERDE_PROPERTIES = Key(
    "hoodie.datasource.hive_sync.serde_properties", str, "", "more properties of its serde: `name=value`, one on a line"
)
BATCH_SIZE = Key("hoodie.datasource.hive_sync.batch_num", int, 1000, "most partitions that one request adds", minimum=1)
INCREMENTAL = Key(
    "hoodie.meta.sync.incremental",
    bool,
    True,
    "whether only partitions of the writes since the last sync are compared; else all",
    since="0.14.0",
)
CONDITIONAL = Key(
    "hoodie.datasource.meta_sync.condition.sync",
    bool,
    False,
    "whether the catalog is left alone when neither columns nor partitions changed, the time of the last sync too",
)
IGNORE_EXCEPTIONS = Key(
    "hoodie.datasource.hive_sync.ignore_exceptions",
    bool,
    False,
    "whether a sync that fails lets the write succeed",
    accepted=("true",),
    no_effect="the write is completed before the sync begins, so that a sync which fails is a warning in its result",
)
MANAGED = Key(
    "hoodie.datasource.hive_sync.create_managed_table",
    bool,
    False,
    "whether the catalog owns the files, and removes them with the table",
    accepted=("false",),
    no_effect="tables are made external, so that a DROP TABLE in the catalog removes no file",
)
COMMENTS = Key(
    "hoodie.datasource.hive_sync.sync_comment",
    bool,
    False,
    "whether comments of columns are told",
    accepted=("false",),
    no_effect="comments of columns are not told to the catalog",
)
BUCKETS = Key(
    "hoodie.datasource.hive_sync.bucket_sync",
    bool,
    False,
    "whether Hive is told of buckets",
    accepted=("false",),
    no_effect="Hive is not told of buckets",
)
GLUE_REGION = Key(
    "hoodie.aws.glue.region", str, None, "region of AWS Glue; AWS's default chain decides if absent", since="0.15.0"
)
GLUE_ENDPOINT = Key("hoodie.aws.glue.endpoint", str, None, "URL of AWS Glue, if not its region's own", since="0.15.0")
GLUE_CATALOG = Key(
    "hoodie.datasource.meta.sync.glue.catalogId", str, None, "account whose AWS Glue is meant; the own if absent"
)
GLUE_DATABASE = Key(
    "hoodie.datasource.meta.sync.glue.database_name",
    str,
    None,
    "database of the table in AWS Glue, in place of `hoodie.datasource.hive_sync.database`",
)
GLUE_TABLE = Key(
    "hoodie.datasource.meta.sync.glue.table_name",
    str,
    None,
    "name of the table in AWS Glue, in place of `hoodie.datasource.hive_sync.table`",
)
GLUE_SKIP_ARCHIVE = Key(
    "hoodie.datasource.meta.sync.glue.skip_table_archive",
    bool,
    True,
    "whether AWS Glue keeps no older version of the table at each change: it has a limit of them",
    since="0.14.0",
)
GLUE_METADATA_LISTING = Key(
    "hoodie.datasource.meta.sync.glue.metadata_file_listing",
    bool,
    False,
    "whether Athena is told to list files by the metadata table",
    since="0.14.0",
)
GLUE_INDEX = Key(
    "hoodie.datasource.meta.sync.glue.partition_index_fields.enable",
    bool,
    False,
    "whether AWS Glue indexes partition columns",
    since="0.15.0",
    accepted=("false",),
    no_effect="no partition index is made, and none is dropped; make it once with `aws glue create-partition-index`,"
    " and give this key to JVM Hudi's syncs of the table, which drop all indexes without it",
)
GLUE_INDEX_FIELDS = Key(
    "hoodie.datasource.meta.sync.glue.partition_index_fields",
    str,
    None,
    "which partition columns AWS Glue indexes: up to three lists with commas between them, columns with semicolons",
    since="0.15.0",
    no_effect="no partition index is made; make it once with `aws glue create-partition-index`",
)
