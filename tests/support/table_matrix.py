"""Kinds of tables as JVM Hudi makes them for its users, and what becomes of each when this package joins it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from metadata_turns import read_rust_by_listing
from other_readers import COLUMNS, DEADLINE_S, ONE_CLOCK, SCHEMA, THEIRS, Jvm, JvmError

from hudi_locks.errors import HudiLocksError
from hudi_locks.spark import HoodieTable, write
from hudi_locks.verification import verify_table

__all__ = ["EQUAL", "TABLES", "Outcome", "find_row", "join_table", "write_row"]

EQUAL: Final = "equal"
_WRITE: Final = "hoodie.datasource.write."
_MOR: Final = {_WRITE + "table.type": "MERGE_ON_READ"}
_OPERATION: Final = _WRITE + "operation"
_GENERATOR: Final = _WRITE + "keygenerator.class"
_KEYGEN, _PAYLOAD = "org.apache.hudi.keygen.", "org.apache.hudi.common.model."
_TIME_TYPE = "hoodie.keygen.timebased.timestamp.type"
_PARTITION, _KEY, _ORDER = (_WRITE + name for name in ("partitionpath.field", "recordkey.field", "precombine.field"))
_META: Final = "hoodie.metadata."
_BUCKET: Final = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
_NBCC: Final = {
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie.clean.failed.writes.policy": "LAZY",
}
_RECORD_INDEX: Final = {_META + "record.index.enable": "true", _META + "global.record.level.index.enable": "true"}
_TIMES: Final = {
    _GENERATOR: _KEYGEN + "TimestampBasedKeyGenerator",
    _TIME_TYPE: "DATE_STRING",
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
    "copy on write: insert_overwrite": {_OPERATION: "insert_overwrite"},
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
    "two key columns": {_KEY: "id,region"},
    "no ordering column": {_ORDER: ""},
    "keys made by Hudi": {_KEY: "", _ORDER: "", _OPERATION: "insert"},
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
    "bulk_insert": {_OPERATION: "bulk_insert"},
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
    _KEY: "id",
    _PARTITION: "region",
    _ORDER: "ts",
    _OPERATION: "upsert",
}
_OURS: Final = {**ONE_CLOCK, "hoodie.write.lock.provider": "filesystem", "hoodie.upsert.shuffle.parallelism": "2"}
_FIRST_NEW: Final = 14
_FILTERS: Final[Mapping[str, Callable[[tuple[Any, ...]], bool]]] = {
    "value > 10": lambda row: row[3] > 10,
    "ts = 3 and label = 'a'": lambda row: row[2] == 3 and row[4] == "a",
}
"""By which readers pass over files."""
_Rows = list[tuple[Any, ...]]
_HEAD: Final = "| table | Hudi | read | written |\n|---|---|---|---|\n"


@dataclass(frozen=True)
class Outcome:
    """What came of one table: "equal", "refused: …", "not by Hudi: …", or what was wrong.

    Attributes:
        read: Our reader beside the JVM.
        written: Every reader after an upsert of ours.
    """

    read: str
    written: str


def join_table(spark: Any, jvm: Jvm, path: str, name: str, *, judge: Jvm | None = None) -> Outcome:
    """Let JVM Hudi make and update a table of that kind, and then join it; `judge` says what rows it has."""
    asked = {"hoodie.write.table.version": str(jvm.table_version), **_DEFAULTS, **TABLES[name]}
    options = {key: value for key, value in asked.items() if value or key == _PARTITION}
    try:
        if selector := options.pop(_SELECTOR, ""):
            _bootstrap(jvm, path, _rows(range(12), 1), {**options, _SELECTOR: selector})
        else:
            _write_theirs(jvm, path, _rows(range(12), 1), options)
        _write_theirs(jvm, path, _rows(range(8, _FIRST_NEW), 2), options)
        expected = _join_dates((judge or jvm).read_path(path))
    except JvmError as error:
        told = f"not by Hudi: {str(error).split(':')[0].split(' > ')[-1].split('.')[-1]}"
        return Outcome(told, told)
    return Outcome(
        _try(lambda: _read(spark, path, expected)), _try(lambda: _write(spark, jvm, path, options, judge=judge))
    )


def _rows(numbers: range, ts: int) -> _Rows:
    """Rows that stay in their partition; those of JVM Hudi before we join lie in the first three."""
    months = [n % 3 + (1 if n < _FIRST_NEW else 4) for n in numbers]
    return [
        (f"k{n:02}", f"2024-0{month}-01", ts, float(n), "ab"[n % 2]) for n, month in zip(numbers, months, strict=True)
    ]


def _write_theirs(jvm: Jvm, path: str, rows: _Rows, options: Mapping[str, str]) -> None:
    listed = [list(row) for row in rows]
    jvm.ask("write", path=path, rows=listed, schema=SCHEMA, options=dict(options), gate="").result(DEADLINE_S)


def _bootstrap(jvm: Jvm, path: str, rows: _Rows, options: Mapping[str, str]) -> None:
    """Let Hudi make a table of Parquet files; release 1.0.2 cannot while it holds a lock."""
    folder, generator = Path(f"{path}_source"), _KEYGEN + "SimpleKeyGenerator"
    table = pa.table(dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))
    pq.write_to_dataset(table, folder, partition_cols=["region"], row_group_size=2)
    alone = {key: value for key, value in options.items() if "lock" not in key and key not in THEIRS}
    named = {"hoodie.bootstrap.base.path": str(folder), "hoodie.bootstrap.keygen.class": generator}
    jvm.ask("bootstrap", path=path, options={**alone, **named, _GENERATOR: generator}).result(DEADLINE_S)


def _try(step: Any) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found: str = step()
    except HudiLocksError as error:
        return f"refused: {getattr(error, 'key', None) or type(error).__name__}"
    return found


def _read(spark: Any, path: str, expected: _Rows) -> str:
    return EQUAL if _collect(HoodieTable.load(spark, path)) == expected else "wrong: other rows than the JVM reads"


def _collect(table: HoodieTable) -> _Rows:
    return _join_dates([tuple(row) for row in table.read().select(*COLUMNS).collect()])


def _join_dates(rows: _Rows) -> _Rows:
    """JVM Hudi shows a date that is three folders as their path, where its options of a write alone said so."""
    return sorted(((key, region.replace("/", "-"), *rest) for key, region, *rest in rows), key=repr)


def _write(spark: Any, jvm: Jvm, path: str, options: Mapping[str, str], *, judge: Jvm | None) -> str:
    """Write as the owner's job does, with its options; then all readers look, and the JVM goes on."""
    readers = [judge or jvm, *([] if _TIME_TYPE in options else [jvm])]
    replaces, is_keyless = options[_OPERATION] not in ("upsert", "insert"), _KEY not in options
    before, by_rust = HoodieTable.load(spark, path).read().count(), _read_rust(path)
    is_judged_by_rust = by_rust == _collect(HoodieTable.load(spark, path))
    write(spark.createDataFrame(_rows(range(12, 17), 3), SCHEMA), path, {**options, **_OURS}, mode="append")
    rows = _collect(HoodieTable.load(spark, path))
    if sum(row[2] == 3 for row in rows) != len(range(12, 17)) or not (
        replaces or len(rows) == before + (5 if is_keyless else 3)
    ):
        return "wrong: other rows than were written"
    for told in ("true", "false"):
        if any(_join_dates(one.read_path(path, {"hoodie.metadata.enable": told})) != rows for one in readers):
            return f"wrong: JVM Hudi reads other rows (hoodie.metadata.enable={told})"
    if is_judged_by_rust and _read_rust(path) != rows:
        return "wrong: hudi-rs reads other rows, and read those of JVM Hudi"
    if strange := _find_strange_filter(spark, readers, path, rows):
        return f"wrong: other rows where {strange}"
    if damages := verify_table(HoodieTable.load(spark, path).table.storage).damages:
        return f"wrong: {damages[0]}"
    _write_theirs(jvm, path, _rows(range(15, 18), 4), options)
    after = _collect(HoodieTable.load(spark, path))
    if any(_join_dates(one.read_path(path)) != after for one in readers) or not (
        replaces or len(after) == len(rows) + (3 if is_keyless else 1)
    ):
        return "wrong: rows after the next write of JVM Hudi"
    return EQUAL


def _read_rust(path: str) -> _Rows | None:
    """None for what hudi-rs does not read, or shows in another form."""
    try:
        return _join_dates(read_rust_by_listing(path))
    except Exception:  # it has no root of its own
        return None


def _find_strange_filter(spark: Any, readers: list[Jvm], path: str, rows: _Rows) -> str:
    """A condition by which ours, or a JVM that goes by the metadata table, finds other rows; "" for none."""
    for where, holds in _FILTERS.items():
        wanted = [row for row in rows if holds(row)]
        table = HoodieTable.load(spark, path)
        ours = _join_dates([tuple(row) for row in table.read(where=where).select(*COLUMNS).collect()])
        options = {"hoodie.metadata.enable": "true"}
        asked = {"path": path, "options": options, "columns": list(COLUMNS), "where": where}
        found = [one.ask("read", **asked).result(DEADLINE_S) for one in readers]
        if any(_join_dates([tuple(row) for row in told]) != wanted for told in (ours, *found)):
            return where
    return ""


def find_row(page: Path, name: str, release: str) -> Outcome:
    """What the page says of a kind of table of that release.

    Raises:
        LookupError: It has no such row.
    """
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[:2] == [name, release]:
            return Outcome(*(cell.strip("`") for cell in cells[2:4]))
    raise LookupError(f"{page.name} has no row of {name!r} for {release}")


def write_row(page: Path, name: str, release: str, outcome: Outcome) -> None:
    """Put what was found into the page, in the order of the kinds."""
    text = page.read_text(encoding="utf-8")
    head, found, after = text.partition(_HEAD)
    if not found:
        raise LookupError(f"{page.name} has no table of kinds")
    lines = after.splitlines(keepends=True)
    end = next((at for at, line in enumerate(lines) if not line.startswith("|")), len(lines))
    rows = {tuple(cell.strip() for cell in line.split("|")[1:3]): line for line in lines[:end]}
    rows[name, release] = f"| {name} | {release} | {outcome.read} | {outcome.written} |\n"
    order = {kind: place for place, kind in enumerate(TABLES)}
    kept = sorted(rows.items(), key=lambda row: (order.get(row[0][0], len(order)), row[0][1]))
    page.write_text(head + found + "".join(line for _, line in kept) + "".join(lines[end:]), encoding="utf-8")
