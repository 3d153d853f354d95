"""Which tables are made, read and written, and why others are refused before anything is touched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from hudi_locks.config import datasource_keys, table_keys
from hudi_locks.errors import ConfigError, DamagedTable, UnsupportedTable
from hudi_locks.format import MetadataPartition
from hudi_locks.storage import Storage
from hudi_locks.table.config import PROPERTIES_PATH, TableConfig
from hudi_locks.table.key_generator import COMPLEX, CUSTOM, KEY_GENERATORS, NON_PARTITION, SIMPLE, TIMESTAMP
from hudi_locks.table.payloads import MERGE_MODE_SINCE, find_own_ordering

__all__ = ["check_creatable", "check_folders", "check_readable", "check_writable"]


@dataclass(frozen=True)
class _Limit:
    """A property, the values that we can answer for, why no other, and whether its owner can change it."""

    key: str
    allowed: tuple[str, ...]
    why: str
    is_curable: bool = False

    def admits(self, value: str) -> bool:
        return value.lower() in (allowed.lower() for allowed in self.allowed)


_METADATA_PARTS: Final = frozenset(part.value for part in MetadataPartition)
_METADATA_TABLE: Final = """\
of a metadata table this package keeps files, column_stats, partition_stats, bloom_filters and record_index up to \
date, and no other part. Drop that one with `hudi-locks metadata drop PATH --part {part}`, and the lock options of the \
table's writers; JVM writers make it anew if their options ask for it"""
_KINDLESS: Final = """\
a custom key generator names folders as it is told for each column, and here it is not told; write column:SIMPLE or \
column:TIMESTAMP there for each, as the options of the table's JVM writers have it; for a table of version 6 the same \
may stand in hoodie.datasource.write.partitionpath.field of the writer"""
_UNSPLIT: Final = """\
dates are three folders only of one partition column, with a simple or complex key generator, without hive style; \
writers of JVM Hudi name those of other tables in different ways"""
_UNTOLD: Final = """\
files have no partition columns, and only the folders of simple and complex key generators tell what is in them, one \
folder for each column, of copy-on-write tables whose ordering columns are others"""
_UNMADE: Final = """\
rows without meta columns are found by keys that are made of their columns, as simple, complex and nonpartitioned key \
generators make them of record key columns; use JVM Hudi for it"""
_UNKEPT: Final = """\
rows without meta columns are written to tables without record index and change logs; use JVM Hudi for others"""
_UNINDEXED: Final = """\
the files in which rows of a bootstrapped table lie are found by Hudi's HFile index alone; rewrite it with JVM Hudi"""
_INDEX_CLASSES: Final = (
    "org.apache.hudi.common.bootstrap.index.HFileBootstrapIndex",
    "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex",
)
_BEING_MADE: Final = """\
a part of the metadata table is being made: let the JVM job that makes it finish, or turn the metadata table off with \
`hudi-locks metadata drop PATH`"""

_TYPE: Final = _Limit(
    table_keys.TABLE_TYPE.name, ("COPY_ON_WRITE", "MERGE_ON_READ"), "tables are of one of these two types"
)
_VERSION_MADE: Final = _Limit(
    table_keys.TABLE_VERSION.name, ("6", "8", "9"), "tables of version 6, 8 and 9 are written"
)
_MERGE_MODE: Final = _Limit(
    table_keys.RECORD_MERGE_MODE.name,
    ("EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"),
    "rows are merged by ordering columns or by the order of commits",
)
_PARTIAL_UPDATES: Final = _Limit(
    table_keys.PARTIAL_UPDATE_MODE.name,
    ("", "NONE", table_keys.IGNORE_DEFAULTS, table_keys.FILL_UNAVAILABLE),
    "of rows that set some columns only, those are merged in which null, or one text, says nothing",
)
_PARTIAL_SINCE: Final = 9
_READ: Final = (
    _Limit(table_keys.TABLE_VERSION.name, ("6", "8", "9"), "tables of version 6, 8 and 9 are read"),
    _Limit(table_keys.BASE_FILE_FORMAT.name, ("PARQUET",), "base files are read as Parquet only"),
    _Limit(table_keys.MULTIPLE_BASE_FILE_FORMATS_ENABLE.name, ("false",), "base files are read as Parquet only"),
    _Limit(table_keys.TABLE_FORMAT.name, ("", "native"), "tables of other formats are not read by this package"),
    _Limit(table_keys.BOOTSTRAP_INDEX_ENABLE.name, ("", "true"), _UNINDEXED),
    _Limit(table_keys.BOOTSTRAP_INDEX_TYPE.name, ("", "HFILE"), _UNINDEXED),
    _Limit(table_keys.BOOTSTRAP_INDEX_CLASS.name, ("", *_INDEX_CLASSES), _UNINDEXED),
)
_MERGED: Final = (
    _Limit(table_keys.LOG_FILE_FORMAT.name, ("", "HOODIE_LOG"), "logs of other formats are not read"),
    _PARTIAL_UPDATES,
    _MERGE_MODE,
)
"""What is asked of a merge-on-read table besides."""
_WRITTEN: Final = (
    _TYPE,
    _Limit(table_keys.METADATA_PARTITIONS_INFLIGHT.name, ("",), _BEING_MADE, is_curable=True),
    _Limit(
        table_keys.METADATA_ENABLE.name,
        ("false",),
        "it is an option of writers, and makes nothing here: take the line out, and make a metadata table with"
        " hudi-locks metadata init",
        is_curable=True,
    ),
    _PARTIAL_UPDATES,
    _MERGE_MODE,
)


@dataclass(frozen=True)
class _Refusal:
    """Why a table is refused.

    Attributes:
        key: The property.
        value: Its value.
        why: And the way out, if there is one.
        is_curable: Whether the table's owner can change it without rewriting the table.
    """

    key: str
    value: str
    why: str
    is_curable: bool = False

    def __str__(self) -> str:
        return f"{self.key}={self.value}: {self.why}"


def check_readable(config: TableConfig, path: str = PROPERTIES_PATH) -> None:
    """Whether snapshots of the table can be read.

    Raises:
        UnsupportedTable: They cannot; the message says why, and the way out if there is one.
    """
    _refuse(_find_unreadable(config), path)


def check_writable(config: TableConfig, path: str = PROPERTIES_PATH) -> None:
    """Whether what we write to the table will be seen, and kept, by everybody.

    Raises:
        UnsupportedTable: It will not; the message says all reasons, first those for which there is no way out.
    """
    _refuse((*_find_unreadable(config), *_find_unwritable(config)), path)


def _find_unreadable(config: TableConfig) -> Iterator[_Refusal]:
    yield from _find_beyond(config, _READ)
    if not _are_folders_telling(config):
        yield _Refusal(table_keys.DROP_PARTITION_COLUMNS.name, "true", _UNTOLD)
    if config.table_type == "MERGE_ON_READ":
        yield from _find_beyond(config, _MERGED)
        yield from _find_old_partial(config)
        yield from _find_foreign_payload(config)
        yield from _find_other_ordering(config)
        yield from _find_unmade_keys(config)


def _find_unwritable(config: TableConfig) -> Iterator[_Refusal]:
    yield from _find_beyond(config, _WRITTEN)
    yield from _find_unmade_keys(config)
    yield from _find_unkept_keys(config)
    yield from _find_metadata_parts(config)
    yield from _find_key_generator(config)
    yield from _find_old_partial(config)
    yield from _find_other_ordering(config)
    if config.timezone == "LOCAL" and not config.zone:
        why = (
            "instants are in the unnamed zone of another machine, and the times of their files do not tell which, as in"
            " a copy of a table; say it, such as zone='Europe/Berlin'"
        )
        yield _Refusal(table_keys.TIMELINE_TIMEZONE.name, config.timezone, why, is_curable=True)


def _refuse(found: Iterable[_Refusal], path: str) -> None:
    reasons = sorted({one.key: one for one in found}.values(), key=lambda one: one.is_curable)
    if not reasons:
        return
    told = f"{path} says {reasons[0]}"
    if len(reasons) > 1:
        numbered = "; ".join(f"({number}) {reason}" for number, reason in enumerate(reasons, 1))
        told = f"{path} has {len(reasons)} properties that are not supported: {numbered}"
    keys = tuple(reason.key for reason in reasons)
    raise UnsupportedTable(told, path=path, key=reasons[0].key, value=reasons[0].value, keys=keys)


def check_creatable(config: TableConfig) -> None:
    """Whether a table with these settings can be made.

    Raises:
        ConfigError: It cannot; the message names the key.
    """
    properties = {**config.to_properties(), **config.payload_meaning}
    for limit in (_VERSION_MADE, _TYPE, _MERGE_MODE, _PARTIAL_UPDATES):
        value = properties.get(limit.key, "")
        _demand(limit.admits(value), limit.key, f"{value!r} cannot be created: {limit.why}")
    _demand(config.name, table_keys.TABLE_NAME.name, "a table needs a name")
    keyed = config.record_key_fields or not config.ordering_fields
    _demand(
        keyed, table_keys.ORDERING_FIELDS.name, "they decide between rows of one key, and a record key is not given"
    )
    single = config.version >= 9 or len(config.ordering_fields) <= 1
    _demand(single, table_keys.ORDERING_FIELDS.name, "several ordering columns need table version 9")
    key = table_keys.PARTIAL_UPDATE_MODE.name
    _demand(config.version >= _PARTIAL_SINCE or not config.extra.get(key), key, "it needs table version 9")
    for refusal in (*_find_unmade_keys(config), *_find_unkept_keys(config)):
        _demand(None, refusal.key, f"{refusal.value} cannot be created: {refusal.why}")
    _demand(_are_folders_telling(config), table_keys.DROP_PARTITION_COLUMNS.name, _UNTOLD)
    _demand(_are_dates_clear(config), datasource_keys.SLASH_SEPARATED_DATES.name, _UNSPLIT)
    _check_fields(config.record_key_fields, table_keys.RECORDKEY_FIELDS.name)
    _check_fields(config.partition_fields, table_keys.PARTITION_FIELDS.name)
    _check_fields(config.ordering_fields, table_keys.ORDERING_FIELDS.name)


def check_folders(storage: Storage, config: TableConfig, path: str) -> None:
    """Refuse a timeline that is not where it is looked for: it would be an empty one to the next writer.

    Raises:
        DamagedTable: Its folder, or that of its archive, is not there.
    """
    layout = config.layout
    if storage.stat(layout.folder) is None:
        key, folder = table_keys.TIMELINE_PATH.name, layout.folder
    elif not layout.is_version_6 and not config.has_usual_archive and storage.stat(layout.archive) is None:
        key, folder = table_keys.TIMELINE_HISTORY_PATH.name, layout.archive
    else:
        return
    message = (
        f"{path} has the table keep its instants in {folder} ({key}), and that folder is not there: either the folder"
        " is lost, or the line is damaged. Compare the line with the folders that are there, or bring the folder back;"
        " `hudi-locks verify PATH` lists all that is damaged"
    )
    raise DamagedTable(message, path=folder, key=key)


def _find_beyond(config: TableConfig, limits: Iterable[_Limit]) -> Iterator[_Refusal]:
    properties = {**config.to_properties(), **config.payload_meaning}
    for limit in limits:
        value = properties.get(limit.key, "")
        if not limit.admits(value):
            yield _Refusal(limit.key, value, limit.why, limit.is_curable)


def _find_metadata_parts(config: TableConfig) -> Iterator[_Refusal]:
    key = table_keys.METADATA_PARTITIONS.name
    value = config.extra.get(key, "")
    if strange := sorted(config.metadata_parts - _METADATA_PARTS):
        yield _Refusal(key, value, _METADATA_TABLE.format(part=strange[0]), is_curable=True)


def _find_key_generator(config: TableConfig) -> Iterator[_Refusal]:
    kind, key_class = table_keys.KEY_GENERATOR_TYPE.name, table_keys.KEY_GENERATOR_CLASS.name
    key = kind if config.extra.get(kind) or key_class not in config.extra else key_class
    value = config.extra.get(key, config.key_generator)
    if config.key_generator not in KEY_GENERATORS:
        yield _Refusal(
            key, value, f"keys are made as by {', '.join(KEY_GENERATORS)}; write to this table with JVM Hudi"
        )
    if config.key_generator == NON_PARTITION and config.partition_fields:
        why = f"it gives no partitions, and the table has {','.join(config.partition_fields)}; one of the two is wrong"
        yield _Refusal(key, value, why)
    if not _are_dates_clear(config):
        yield _Refusal(datasource_keys.SLASH_SEPARATED_DATES.name, "true", _UNSPLIT)
    if config.key_generator == CUSTOM and config.partition_fields and not config.partition_kinds:
        yield _Refusal(table_keys.PARTITION_FIELDS.name, ",".join(config.partition_fields), _KINDLESS, is_curable=True)
    is_single = len(config.record_key_fields) <= 1 and len(config.partition_fields) == 1
    if config.key_generator == TIMESTAMP and not is_single:
        yield _Refusal(key, value, "it is for one record key column and one partition column; CUSTOM takes several")


def _find_unmade_keys(config: TableConfig) -> Iterator[_Refusal]:
    """Rows without meta columns whose keys cannot be made of their other columns, as deletes in logs write them."""
    if config.has_meta_columns:
        return
    is_made = bool(config.record_key_fields) and config.key_generator in (SIMPLE, COMPLEX, NON_PARTITION)
    is_told = config.prefixes_keys is not None or config.table_type == "COPY_ON_WRITE"
    if not (is_made and is_told):
        yield _Refusal(table_keys.POPULATE_META_FIELDS.name, "false", _UNMADE)


def _find_unkept_keys(config: TableConfig) -> Iterator[_Refusal]:
    """Tables without meta columns in which something else needs the keys of rows that are there."""
    is_kept = config.has_record_index or config.change_log_mode is not None
    if not config.has_meta_columns and is_kept:
        yield _Refusal(table_keys.POPULATE_META_FIELDS.name, "false", _UNKEPT)


def _are_folders_telling(config: TableConfig) -> bool:
    """Whether partition columns that files lack can be shown, and nothing else needs them."""
    is_plain = config.key_generator in (SIMPLE, COMPLEX) and not config.splits_dates
    is_apart = config.table_type == "COPY_ON_WRITE" and not set(config.ordering_fields) & set(config.dropped_fields)
    return not config.dropped_fields or (is_plain and is_apart)


def _are_dates_clear(config: TableConfig) -> bool:
    """Whether all writers name the folders of dates alike."""
    is_plain = config.key_generator in (SIMPLE, COMPLEX) and not config.hive_style
    return not config.splits_dates or (is_plain and len(config.partition_fields) == 1)


def _find_old_partial(config: TableConfig) -> Iterator[_Refusal]:
    key = table_keys.PARTIAL_UPDATE_MODE.name
    if config.extra.get(key) and config.version < _PARTIAL_SINCE:
        why = f"readers of version {config.version} do not know it; upgrade the table to version {_PARTIAL_SINCE}"
        yield _Refusal(key, config.partial_update_mode, why)


def _find_foreign_payload(config: TableConfig) -> Iterator[_Refusal]:
    """Of a table of version 6, whose payload class alone says how rows are merged."""
    key = table_keys.PAYLOAD_CLASS.name
    payload = config.extra.get(key)
    if config.version < MERGE_MODE_SINCE and payload and not config.payload_meaning and not config.declared_merge_mode:
        why = "it is Java code that is not run here; read the table with JVM Hudi"
        yield _Refusal(key, payload, why)


def _find_other_ordering(config: TableConfig) -> Iterator[_Refusal]:
    """Where JVM Hudi compares rows of one write by the column of the table, and others by that of the class."""
    wanted = find_own_ordering(config.extra.get(table_keys.PAYLOAD_CLASS.name, ""), config.version)
    if wanted is not None and config.payload_meaning and ",".join(config.ordering_fields) != wanted:
        why = f"{wanted} is what the payload class of the table compares; name that there, as its JVM writers have to"
        named = ",".join(config.ordering_fields)
        yield _Refusal(table_keys.ORDERING_FIELDS.name, named, why, is_curable=True)


def _check_fields(fields: tuple[str, ...], key: str) -> None:
    _demand(len(set(fields)) == len(fields), key, f"{','.join(fields)} names a column twice")
    for name in fields:
        _demand(name.isidentifier(), key, f"{name!r} is no top-level column")


def _demand(condition: object, key: str, message: str) -> None:
    if not condition:
        raise ConfigError(f"{key}: {message}", key=key)
