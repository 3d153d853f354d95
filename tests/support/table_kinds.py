"""Kinds of tables as JVM Hudi makes them for its users: made, written by both, and read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from metadata_turns import read_rust_by_listing
from other_readers import COLUMNS, DEADLINE_S, ONE_CLOCK, SCHEMA, THEIRS, Jvm

from hudi_locks.spark import HoodieTable, write

__all__ = [
    "FIRST_NEW",
    "KEY",
    "OPERATION",
    "OURS",
    "TABLES",
    "TIME_TYPE",
    "Rows",
    "collect",
    "join_dates",
    "make_rows",
    "make_table",
    "name_options",
    "read_rust",
    "write_ours",
    "write_theirs",
]

_WRITE: Final = "hoodie.datasource.write."
_MOR: Final = {_WRITE + "table.type": "MERGE_ON_READ"}
OPERATION: Final = _WRITE + "operation"
_GENERATOR: Final = _WRITE + "keygenerator.class"
_KEYGEN, _PAYLOAD = "org.apache.hudi.keygen.", "org.apache.hudi.common.model."
TIME_TYPE = "hoodie.keygen.timebased.timestamp.type"
_PARTITION, KEY, _ORDER = (_WRITE + name for name in ("partitionpath.field", "recordkey.field", "precombine.field"))
_META: Final = "hoodie.metadata."
_BUCKET: Final = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
_NBCC: Final = {
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
}
_RECORD_INDEX: Final = {_META + "record.index.enable": "true", _META + "global.record.level.index.enable": "true"}
_TIMES: Final = {
    _GENERATOR: _KEYGEN + "TimestampBasedKeyGenerator",
    TIME_TYPE: "DATE_STRING",
    "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM",
}
_CDC: Final = {"hoodie.table.cdc.enabled": "true"}
_SELECTOR: Final = "hoodie.bootstrap.mode.selector"
_SELECTORS: Final = "org.apache.hudi.client.bootstrap.selector."
_BOOTSTRAP: Final = {
    _WRITE + "hive_style_partitioning": "true",
    _META + "index.column.stats.enable": "false",  # Hudi makes none of a bootstrap, and later ones hide its rows
}
_ONE_TYPE: Final[Mapping[str, Mapping[str, str]]] = {
    "copy on write: insert_overwrite": {OPERATION: "insert_overwrite"},
    "copy on write: clustered inline": {
        "hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1",
    },
    "merge on read: compacted inline": {
        **_MOR, "hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1",
    },
    "merge on read: bucket index, non-blocking": {
        **_MOR, **_BUCKET, **_NBCC, "hoodie.table.type": "MERGE_ON_READ", "hoodie.index.bucket.engine": "SIMPLE",
    },
    "merge on read: logs of Avro": {**_MOR, "hoodie.logfile.data.block.format": "avro"},
    "merge on read: partial updates": {
        **_MOR, "hoodie.write.partial.update.mode": "IGNORE_DEFAULTS", "hoodie.write.table.version": "9",
    },
}  # fmt: skip
_BOTH_TYPES: Final[Mapping[str, Mapping[str, str]]] = {
    "as it is by default": {},
    "no metadata table": {_META + "enable": "false"},
    "no partitions": {_PARTITION: ""},
    "two partition columns": {_PARTITION: "region,label"},
    "hive style, escaped": {_WRITE + "hive_style_partitioning": "true", _WRITE + "partitionpath.urlencode": "true"},
    "dates as folders": {_WRITE + "slash.separated.date.partitioning": "true"},
    "two key columns": {KEY: "id,region"},
    "no ordering column": {_ORDER: ""},
    "keys made by Hudi": {KEY: "", _ORDER: "", OPERATION: "insert"},
    "index BLOOM": {"hoodie.index.type": "BLOOM"},
    "index GLOBAL_SIMPLE": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "index GLOBAL_BLOOM": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "index BUCKET": _BUCKET,
    "index BUCKET, consistent hashing": {**_BUCKET, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"},
    "record index": {**_RECORD_INDEX, "hoodie.index.type": "RECORD_INDEX"},
    "record index by partition": {
        _META + "record.level.index.enable": "true", "hoodie.index.type": "RECORD_LEVEL_INDEX",
        "hoodie.embed.timeline.server": "true",  # as by default: release 1.2.0 fails without it
    },
    "bloom filters in the metadata table": {_META + "index.bloom.filter.enable": "true"},
    "key generator complex": {_GENERATOR: _KEYGEN + "ComplexKeyGenerator"},
    "key generator timestamp": _TIMES,
    "key generator custom": {
        **_TIMES, _GENERATOR: _KEYGEN + "CustomKeyGenerator", _PARTITION: "region:TIMESTAMP,label:SIMPLE",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM",
    },
    "merge mode COMMIT_TIME_ORDERING": {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING", _ORDER: ""},
    "payload OverwriteWithLatestAvroPayload": {_WRITE + "payload.class": _PAYLOAD + "OverwriteWithLatestAvroPayload"},
    "payload DefaultHoodieRecordPayload": {_WRITE + "payload.class": _PAYLOAD + "DefaultHoodieRecordPayload"},
    "payload EventTimeAvroPayload": {_WRITE + "payload.class": _PAYLOAD + "EventTimeAvroPayload"},
    "payload PartialUpdateAvroPayload": {_WRITE + "payload.class": _PAYLOAD + "PartialUpdateAvroPayload"},
    "payload OverwriteNonDefaultsWithLatestAvroPayload": {
        _WRITE + "payload.class": _PAYLOAD + "OverwriteNonDefaultsWithLatestAvroPayload",
    },
    "CDC, OP_KEY_ONLY": {**_CDC, "hoodie.table.cdc.supplemental.logging.mode": "OP_KEY_ONLY"},
    "CDC, DATA_BEFORE": {**_CDC, "hoodie.table.cdc.supplemental.logging.mode": "DATA_BEFORE"},
    "CDC, DATA_BEFORE_AFTER": {**_CDC, "hoodie.table.cdc.supplemental.logging.mode": "DATA_BEFORE_AFTER"},
    "schema on read": {"hoodie.schema.on.read.enable": "true"},
    "no partition columns in files": {_WRITE + "drop.partition.columns": "true"},
    "no meta columns": {"hoodie.populate.meta.fields": "false"},
    "base files of ORC": {"hoodie.table.base.file.format": "ORC", "hoodie.base.file.format": "ORC"},
    "partitions marked by Parquet": {"hoodie.partition.metafile.use.base.format": "true"},
    "bulk_insert": {OPERATION: "bulk_insert"},
    "table version 6": {"hoodie.write.table.version": "6"},
    "bootstrapped, meta columns alone": {**_BOOTSTRAP, _SELECTOR: _SELECTORS + "MetadataOnlyBootstrapModeSelector"},
    "bootstrapped, whole rows": {**_BOOTSTRAP, _SELECTOR: _SELECTORS + "FullRecordBootstrapModeSelector"},
}  # fmt: skip
TABLES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        **{f"copy on write: {name}": options for name, options in _BOTH_TYPES.items()},
        **{f"merge on read: {name}": {**options, **_MOR} for name, options in _BOTH_TYPES.items()},
        **_ONE_TYPE,
    }
)
"""What is different from the defaults of JVM Hudi, by what a person calls it."""
_DEFAULTS: Final = {
    **THEIRS,
    "hoodie.metadata.enable": "true",
    "hoodie.table.name": "t",
    KEY: "id",
    _PARTITION: "region",
    _ORDER: "ts",
    OPERATION: "upsert",
}
OURS: Final = {**ONE_CLOCK, "hoodie.write.lock.provider": "filesystem", "hoodie.upsert.shuffle.parallelism": "2"}
FIRST_NEW: Final = 14
Rows = list[tuple[Any, ...]]


def name_options(jvm: Jvm, name: str) -> dict[str, str]:
    """Options of the owner of a table of that kind."""
    asked = {"hoodie.write.table.version": str(jvm.table_version), **_DEFAULTS, **TABLES[name]}
    return {key: value for key, value in asked.items() if value or key == _PARTITION}


def make_table(jvm: Jvm, path: str, options: Mapping[str, str]) -> dict[str, str]:
    """Let JVM Hudi make a table and update it; the options for those who write to it from then on.

    Raises:
        JvmError: JVM Hudi makes no such table.
    """
    given = dict(options)
    if selector := given.pop(_SELECTOR, ""):
        _bootstrap(jvm, path, make_rows(range(12), 1), {**given, _SELECTOR: selector})
    else:
        write_theirs(jvm, path, make_rows(range(12), 1), given)
    write_theirs(jvm, path, make_rows(range(8, FIRST_NEW), 2), given)
    return given


def make_rows(numbers: range, ts: int) -> Rows:
    """Rows that stay in their partition; those of JVM Hudi before we join lie in the first three."""
    months = [n % 3 + (1 if n < FIRST_NEW else 4) for n in numbers]
    return [
        (f"k{n:02}", f"2024-0{month}-01", ts, float(n), "ab"[n % 2]) for n, month in zip(numbers, months, strict=True)
    ]


def write_theirs(jvm: Jvm, path: str, rows: Rows, options: Mapping[str, str]) -> None:
    """By JVM Hudi, with these options."""
    listed = [list(row) for row in rows]
    jvm.ask("write", path=path, rows=listed, schema=SCHEMA, options=dict(options), gate="").result(DEADLINE_S)


def write_ours(spark: Any, path: str, rows: Rows, options: Mapping[str, str]) -> None:
    """As the owner's job does, with its options."""
    write(spark.createDataFrame(rows, SCHEMA), path, {**options, **OURS}, mode="append")


def _bootstrap(jvm: Jvm, path: str, rows: Rows, options: Mapping[str, str]) -> None:
    """Let Hudi make a table of Parquet files; release 1.0.2 cannot while it holds a lock."""
    folder, generator = Path(f"{path}_source"), _KEYGEN + "SimpleKeyGenerator"
    table = pa.table(dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))
    pq.write_to_dataset(table, folder, partition_cols=["region"], row_group_size=2)
    alone = {key: value for key, value in options.items() if "lock" not in key and key not in THEIRS}
    named = {"hoodie.bootstrap.base.path": str(folder), "hoodie.bootstrap.keygen.class": generator}
    jvm.ask("bootstrap", path=path, options={**alone, **named, _GENERATOR: generator}).result(DEADLINE_S)


def collect(table: HoodieTable) -> Rows:
    """The rows that our reader shows."""
    return join_dates([tuple(row) for row in table.read().select(*COLUMNS).collect()])


def join_dates(rows: Rows) -> Rows:
    """JVM Hudi shows a date that is three folders as their path, where its options of a write alone said so."""
    return sorted(((key, region.replace("/", "-"), *rest) for key, region, *rest in rows), key=repr)


def read_rust(path: str, *, unmerged: Rows | None = None) -> Rows | None:
    """None for what hudi-rs does not read, or shows in another form; `unmerged` where it says that it cannot merge."""
    try:
        return join_dates(read_rust_by_listing(path))
    except Exception as error:  # it has no root of its own
        return unmerged if "merger of its own" in str(error) else None
