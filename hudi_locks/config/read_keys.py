"""Keys of reading rows: what a query asks for, and what would show other rows than a table has."""

from __future__ import annotations

from typing import Any

from hudi_locks.config.key import Key

_READS_NOTHING = "a writer reads nothing; give it to hudi_locks.spark.read, or call read, as_of or incremental"
_NAMED_OTHERWISE = "name the partitions of a read by its argument partitions, and rows by where"

QUERY_TYPE = Key(
    "hoodie.datasource.query.type",
    str,
    "snapshot",
    "what a read returns",
    since="0.5.0",
    choices=("snapshot", "incremental", "read_optimized"),
    refusal=_READS_NOTHING,
)
INCREMENTAL_FORMAT = Key(
    "hoodie.datasource.query.incremental.format",
    str,
    "latest_state",
    "what an incremental read by hudi_locks.spark.read shows of each row: how the commits left it, or (cdc) what each"
    " commit made of it",
    since="0.13.0",
    choices=("latest_state", "cdc"),
    refusal=_READS_NOTHING,
)
AS_OF_INSTANT = Key(
    "as.of.instant", str, None, "time that a snapshot is read at", since="0.9.0", refusal=_READS_NOTHING
)
BEGIN_INSTANT = Key(
    "hoodie.datasource.read.begin.instanttime",
    str,
    None,
    "an incremental read begins after it",
    since="0.4.0",
    refusal=_READS_NOTHING,
)
END_INSTANT = Key(
    "hoodie.datasource.read.end.instanttime",
    str,
    None,
    "an incremental read ends with it",
    since="0.4.0",
    refusal=_READS_NOTHING,
)
STREAM_START = Key(
    "hoodie.datasource.streaming.startOffset",
    str,
    None,
    "a stream begins after it; earliest for the beginning of the table",
    aliases=("hoodie.datasource.streaming.startoffset",),
    since="0.13.0",
    refusal=_READS_NOTHING,
)
READ_KEYS: tuple[Key[Any], ...] = (
    QUERY_TYPE,
    INCREMENTAL_FORMAT,
    AS_OF_INSTANT,
    BEGIN_INSTANT,
    END_INSTANT,
    STREAM_START,
)
"""Options of one read."""

VIEW_TYPE = Key(
    "hoodie.datasource.view.type",
    str,
    None,
    "older name for what a read returns",
    since="0.4.0",
    refusal="its values meant other reads than those of hoodie.datasource.query.type; give that one",
)
INCREMENTAL_FILTERS = Key(
    "hoodie.datasource.read.incr.filters",
    str,
    "",
    "conditions on the rows of an incremental read",
    since="0.5.0",
    accepted=("",),
    refusal="filter the DataFrame that is read",
)
INCREMENTAL_PATH_GLOB = Key(
    "hoodie.datasource.read.incr.path.glob",
    str,
    "",
    "pattern of the paths that an incremental read looks into",
    since="0.6.0",
    accepted=("",),
    refusal=_NAMED_OTHERWISE,
)
READ_PATHS = Key("hoodie.datasource.read.paths", str, "", "files to read", accepted=("",), refusal=_NAMED_OTHERWISE)
END_SCHEMA = Key(
    "hoodie.datasource.read.schema.use.end.instanttime",
    bool,
    False,
    "whether an incremental read shows the columns that the table had at its end",
    since="0.9.0",
    accepted=("false",),
    refusal="an incremental read shows the columns of now; choose some by its argument columns",
)
FULL_SCAN = Key(
    "hoodie.datasource.read.incr.fallback.fulltablescan.enable",
    bool,
    True,
    "whether an incremental read that begins before the active timeline shows all that archived commits wrote",
    since="0.9.0",
    accepted=("true",),
    refusal="rows of archived commits would be missing in silence, as JVM Hudi leaves some of them out; leave it out",
)
LOG_MERGE_TYPE = Key(
    "hoodie.datasource.merge.type",
    str,
    "payload_combine",
    "whether rows of logs are merged with those of base files",
    since="0.6.0",
    accepted=("payload_combine",),
    refusal="a read shows each key once; read base files alone by hoodie.datasource.query.type=read_optimized",
)
AS_READ_OPTIMIZED = Key(
    "hoodie.query.as.ro.table",
    bool,
    False,
    "whether a read shows base files alone, as catalogs say it",
    accepted=("false",),
    refusal="give hoodie.datasource.query.type=read_optimized",
)
REFUSED_READ_KEYS: tuple[Key[Any], ...] = (
    VIEW_TYPE,
    INCREMENTAL_FILTERS,
    INCREMENTAL_PATH_GLOB,
    READ_PATHS,
    END_SCHEMA,
    FULL_SCAN,
    LOG_MERGE_TYPE,
    AS_READ_OPTIMIZED,
)
"""Options of one read that would show other rows, and are refused."""

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
