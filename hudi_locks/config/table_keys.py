"""Keys that a table keeps in hoodie.properties, and those that name the table."""

from __future__ import annotations

from typing import Final

from hudi_locks.config.key import Key

BASE_PATH = Key("hoodie.base.path", str, None, "where the table lies: a path or URL", since="0.4.0")
TABLE_NAME = Key(
    "hoodie.table.name",
    str,
    None,
    "name of the table",
    aliases=("hoodie.datasource.write.table.name",),
    since="0.4.0",
)
DATABASE_NAME = Key("hoodie.database.name", str, None, "name of its database", since="0.11.0")
TABLE_TYPE = Key(
    "hoodie.table.type",
    str,
    "COPY_ON_WRITE",
    "whether updates rewrite base files or append logs",
    since="0.4.1",
    choices=("COPY_ON_WRITE", "MERGE_ON_READ"),
)
TABLE_VERSION = Key("hoodie.table.version", int, None, "layout version of the table", since="0.6.0", minimum=0)
INITIAL_VERSION = Key(
    "hoodie.table.initial.version", int, None, "version that the table was made with", since="1.0.0", minimum=0
)
TIMELINE_LAYOUT_VERSION = Key(
    "hoodie.timeline.layout.version", int, None, "layout version of the timeline", since="0.5.1", minimum=0
)
TIMELINE_PATH = Key("hoodie.timeline.path", str, "timeline", "timeline folder below .hoodie", since="1.0.0")
TIMELINE_HISTORY_PATH = Key(
    "hoodie.timeline.history.path", str, "history", "archive folder below the timeline's", since="1.0.0"
)
TIMELINE_TIMEZONE = Key(
    "hoodie.table.timeline.timezone",
    str,
    "LOCAL",
    "zone of the instants",
    since="0.10.0",
    choices=("LOCAL", "UTC"),
)
ARCHIVELOG_FOLDER = Key("hoodie.archivelog.folder", str, "archived", "archive folder of version 6", since="0.4.0")
RECORDKEY_FIELDS = Key(
    "hoodie.table.recordkey.fields", str, None, "columns that make the record key, comma-separated", since="0.9.0"
)
PARTITION_FIELDS = Key(
    "hoodie.table.partition.fields", str, None, "columns that make the partition path, comma-separated", since="0.9.0"
)
ORDERING_FIELDS = Key(
    "hoodie.table.ordering.fields",
    str,
    None,
    "columns that decide which of two rows of one key wins",
    aliases=("hoodie.table.precombine.field",),
    since="1.1.0",
)
PRECOMBINE_FIELD_LEGACY_NAME = "hoodie.table.precombine.field"
"""How tables below version 9 call `ORDERING_FIELDS`."""
PARTITION_EXTRACTOR = Key(
    "hoodie.table.partition_extractor_class",
    str,
    None,
    "Java class that reads values out of folders; the one for slashes tells of dates that are three folders",
    since="1.2.0",
)
KEY_GENERATOR_CLASS = Key("hoodie.table.keygenerator.class", str, None, "Java class that makes keys", since="0.9.0")
KEY_GENERATOR_TYPE = Key("hoodie.table.keygenerator.type", str, None, "kind of key generator", since="1.0.0")
COMPLEX_KEY_ENCODING = Key(
    "hoodie.table.complex.keygen.encoding",
    str,
    None,
    "how ComplexKeyGenerator wrote the keys of a single record key column: name:value or the bare value",
    since="1.3.0",
    choices=("FIELD_PREFIXED", "VALUE_ONLY"),
)
POPULATE_META_FIELDS = Key(
    "hoodie.populate.meta.fields", bool, True, "whether rows carry the five meta columns", since="0.8.0"
)
BASE_FILE_FORMAT = Key(
    "hoodie.table.base.file.format",
    str,
    "PARQUET",
    "format of base files",
    aliases=("hoodie.base.file.format", "hoodie.table.ro.file.format"),
    since="0.4.0",
)
LOG_FILE_FORMAT = Key(
    "hoodie.table.log.file.format",
    str,
    "HOODIE_LOG",
    "format of log files",
    aliases=("hoodie.table.rt.file.format",),
    since="0.4.0",
    accepted=("HOODIE_LOG",),
    refusal="log files have this format only; leave it out",
)
METASERVER = Key(
    "hoodie.metaserver.enabled",
    bool,
    False,
    "whether Hudi's metaserver has the timeline of the table",
    since="0.13.0",
    accepted=("false",),
    refusal="the timeline of a table is read and written below its folder alone",
)
RECORD_MERGERS = Key(
    "hoodie.write.record.merge.custom.implementation.classes",
    str,
    "",
    "Java classes that merge rows of one key",
    aliases=("hoodie.datasource.write.record.merger.impls",),
    since="0.13.0",
    accepted=("", "org.apache.hudi.common.model.HoodieAvroRecordMerger"),
    refusal="Java code is not run here; leave it out, and say how rows are merged by hoodie.record.merge.mode"
    " (EVENT_TIME_ORDERING for Hudi's own mergers)",
)
MULTIPLE_BASE_FILE_FORMATS_ENABLE = Key(
    "hoodie.table.multiple.base.file.formats.enable", bool, False, "whether base file formats are mixed", since="1.0.0"
)
CDC_ENABLED = Key(
    "hoodie.table.cdc.enabled",
    bool,
    False,
    "whether writes log what they change, for CDC queries of JVM Hudi; of a table that is made",
    since="0.13.0",
)
OP_KEY_ONLY: Final = "OP_KEY_ONLY"
DATA_BEFORE: Final = "DATA_BEFORE"
DATA_BEFORE_AFTER: Final = "DATA_BEFORE_AFTER"
CDC_MODE = Key(
    "hoodie.table.cdc.supplemental.logging.mode",
    str,
    DATA_BEFORE_AFTER,
    "what a change log says of a row: OP_KEY_ONLY its key, DATA_BEFORE what it was too, DATA_BEFORE_AFTER what it was"
    " and is",
    since="0.13.0",
    choices=(OP_KEY_ONLY, DATA_BEFORE, DATA_BEFORE_AFTER),
)
TABLE_FORMAT = Key("hoodie.table.format", str, "native", "table format", since="1.1.0")
TABLE_CHECKSUM = Key("hoodie.table.checksum", int, None, "CRC-32 of <database>.<table>", since="0.11.0")
INDEX_DEFINITIONS = Key(
    "hoodie.table.index.defs.path",
    str,
    None,
    "where the indexes of the metadata table are defined",
    since="1.0.0",
    no_effect="it is .hoodie/.index_defs/index.json",
)
PARTITION_EXTRACTOR = Key(
    "hoodie.table.partition_extractor_class",
    str,
    None,
    "Java class by which a metastore reads values out of partition paths",
    since="1.1.0",
    no_effect="partition paths are read as the other properties of the table say",
)
CREATE_SCHEMA = Key(
    "hoodie.table.create.schema",
    str,
    None,
    "Avro schema given when it was made",
    since="0.9.0",
    no_effect="the columns of a table are those of its first write",
)
DROP_PARTITION_COLUMNS = Key(
    "hoodie.datasource.write.drop.partition.columns",
    bool,
    False,
    "whether partition columns are left out of the files; of a table that is made",
    since="0.10.0",
)
PARTITION_METAFILE_USE_BASE_FORMAT = Key(
    "hoodie.partition.metafile.use.base.format",
    bool,
    False,
    "whether partition metadata is a Parquet file",
    since="0.11.0",
)
PARTIAL_UPDATE_MODE = Key(
    "hoodie.table.partial.update.mode",
    str,
    None,
    "what a row says of columns that it does not set: IGNORE_DEFAULTS leaves those as they are where it has null,"
    " FILL_UNAVAILABLE where it has the text for a value that was not sent; needs table version 9",
    since="1.1.0",
    choices=("IGNORE_DEFAULTS", "FILL_UNAVAILABLE"),
)
IGNORE_DEFAULTS: Final = "IGNORE_DEFAULTS"
FILL_UNAVAILABLE: Final = "FILL_UNAVAILABLE"
UNAVAILABLE_VALUE = Key(
    "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value",
    str,
    "__debezium_unavailable_value",
    "text by which a row says that a value was not sent, under FILL_UNAVAILABLE",
    aliases=("hoodie.write.partial.update.unavailable.value",),
    since="1.1.0",
)
RECORD_MERGE_MODE = Key(
    "hoodie.record.merge.mode",
    str,
    None,
    "how two rows of one key become one; EVENT_TIME_ORDERING with an ordering field, else COMMIT_TIME_ORDERING",
    aliases=("hoodie.write.record.merge.mode",),
    since="1.0.0",
    choices=("EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING", "CUSTOM"),
)
DELETE_FIELD = Key(
    "hoodie.record.merge.property.hoodie.payload.delete.field",
    str,
    None,
    "column whose value can make of a row a delete; needs the value too, and table version 9",
    aliases=("hoodie.payload.delete.field",),
    since="1.1.0",
)
DELETE_MARKER = Key(
    "hoodie.record.merge.property.hoodie.payload.delete.marker",
    str,
    None,
    "its value that does",
    aliases=("hoodie.payload.delete.marker",),
    since="1.1.0",
)
RECORD_MERGE_STRATEGY_ID = Key(
    "hoodie.record.merge.strategy.id",
    str,
    None,
    "id of the merger",
    aliases=(
        "hoodie.write.record.merge.strategy.id",
        "hoodie.compaction.record.merger.strategy",
        "hoodie.datasource.write.record.merger.strategy",
    ),
    since="0.13.0",
)
PAYLOAD_CLASS = Key(
    "hoodie.compaction.payload.class",
    str,
    None,
    "Java class that merges rows, below version 9",
    aliases=("hoodie.datasource.write.payload.class",),
    since="0.4.0",
)
LEGACY_PAYLOAD_CLASS = Key(
    "hoodie.table.legacy.payload.class",
    str,
    None,
    "the class that merged rows before a table came to version 9; a downgrade takes it again",
    since="1.1.0",
)
METADATA_PARTITIONS = Key(
    "hoodie.table.metadata.partitions", str, "", "partitions of the metadata table that are in use", since="0.11.0"
)
METADATA_PARTITIONS_INFLIGHT = Key(
    "hoodie.table.metadata.partitions.inflight", str, "", "partitions of the metadata table being built", since="0.11.0"
)
METADATA_ENABLE = Key(
    "hoodie.metadata.enable",
    bool,
    False,
    "true has a metadata table made after a write, if the table has none; false keeps reads from going by one. One that"
    " is there is kept up to date in any case",
    since="0.7.0",
)
BOOTSTRAP_BASE_PATH = Key(
    "hoodie.bootstrap.base.path",
    str,
    None,
    "where the files of a bootstrapped table lie",
    since="0.6.0",
    refusal="bootstrap the table with JVM Hudi, or load its rows by bulk_insert",
)
BOOTSTRAP_INDEX_ENABLE = Key(
    "hoodie.bootstrap.index.enable",
    bool,
    True,
    "whether an index tells where the rows of a bootstrapped table lie",
    since="0.9.0",
    accepted=("true",),
    refusal="the table is made by JVM Hudi; leave it out",
)
BOOTSTRAP_INDEX_TYPE = Key(
    "hoodie.bootstrap.index.type",
    str,
    None,
    "kind of that index",
    since="1.0.0",
    accepted=("HFILE",),
    refusal="the table is made by JVM Hudi; leave it out",
)
BOOTSTRAP_INDEX_CLASS = Key(
    "hoodie.bootstrap.index.class",
    str,
    None,
    "Java class of that index",
    since="0.6.0",
    accepted=(
        "org.apache.hudi.common.bootstrap.index.HFileBootstrapIndex",
        "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex",
    ),
    refusal="the table is made by JVM Hudi; leave it out",
)
