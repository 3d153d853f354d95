"""What `hoodie.properties` says of a table in one table version, as another version says it (Hudi's upgrade handlers).

What a table means stays as it is: how two rows with one key become one, how keys and folders are named. What another
version has no words for is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from hudi_locks.config import Options, datasource_keys, table_keys
from hudi_locks.errors import TableError, UnsupportedTable
from hudi_locks.format import decode_properties
from hudi_locks.storage import Storage
from hudi_locks.table.config import BY_COMMIT, BY_TIME, MERGERS, PROPERTIES_PATH, TableConfig
from hudi_locks.table.key_generator import (
    CUSTOM,
    join_partition_fields,
    name_class,
    name_key_generator,
    split_partition_fields,
)
from hudi_locks.table.limits import check_writable
from hudi_locks.table.payloads import BY_PAYLOAD, MERGE_MODE_SINCE, MYSQL, find_own_ordering

__all__ = ["VERSIONS", "read_current_properties", "take_writer_options", "translate_properties"]

VERSIONS: Final = (6, 8, 9)
"""Those that are written; 7 was never released."""
_Properties = dict[str, str]
_PACKAGE: Final = "org.apache.hudi.common.model."
_CUSTOM: Final = "CUSTOM"
_DEFAULT, _LATEST = MERGERS[BY_TIME][1], MERGERS[BY_COMMIT][1]
_TIMED: Final = "EventTimeAvroPayload"
_NAMED_IN_8: Final = {
    "PartialUpdateAvroPayload": (BY_TIME, {table_keys.PARTIAL_UPDATE_MODE.name: table_keys.IGNORE_DEFAULTS}),
    "OverwriteNonDefaultsWithLatestAvroPayload": (
        BY_COMMIT,
        {table_keys.PARTIAL_UPDATE_MODE.name: table_keys.IGNORE_DEFAULTS},
    ),
    "debezium.PostgresDebeziumAvroPayload": (
        BY_TIME,
        {
            table_keys.PARTIAL_UPDATE_MODE.name: table_keys.FILL_UNAVAILABLE,
            table_keys.UNAVAILABLE_VALUE.name: str(table_keys.UNAVAILABLE_VALUE.default),
            table_keys.DELETE_FIELD.name: "_change_operation_type",
            table_keys.DELETE_MARKER.name: "d",
        },
    ),
    MYSQL: (
        BY_TIME,
        {table_keys.DELETE_FIELD.name: "_change_operation_type", table_keys.DELETE_MARKER.name: "d"},
    ),
    "AWSDmsAvroPayload": (
        BY_COMMIT,
        {table_keys.DELETE_FIELD.name: "Op", table_keys.DELETE_MARKER.name: "D"},
    ),
}
"""Payload classes that a table of version 8 names, and what version 9 says in place of each."""
_CLASSES: Final = frozenset({_DEFAULT, _LATEST, _TIMED, *_NAMED_IN_8})
_LEGACY_CLASS: Final = table_keys.LEGACY_PAYLOAD_CLASS.name
_MODE, _STRATEGY = table_keys.RECORD_MERGE_MODE.name, table_keys.RECORD_MERGE_STRATEGY_ID.name
_CLASS: Final = table_keys.PAYLOAD_CLASS.name
_ORDERING: Final = (
    table_keys.ORDERING_FIELDS.name,
    table_keys.PRECOMBINE_FIELD_LEGACY_NAME,
    datasource_keys.PRECOMBINE_FIELD.name,
)
_TYPE, _GENERATOR = table_keys.KEY_GENERATOR_TYPE.name, table_keys.KEY_GENERATOR_CLASS.name


def take_writer_options(config: TableConfig, options: Options) -> TableConfig:
    """The table as a writer with these options takes it, where releases before 1.0 left to writers what a table is.

    A copy-on-write table of Hudi 0.15 names no payload class, and one with a custom key generator does not tell how the
    folder of each partition column is named: each of its writers goes by its own options.
    """
    if config.version >= MERGE_MODE_SINCE:
        return config
    asked = options.find(table_keys.PAYLOAD_CLASS)
    is_merged = config.table_type == "MERGE_ON_READ"
    says_it = config.declared_merge_mode or is_merged or _CLASS in config.extra
    extra = {**config.extra, _CLASS: asked} if asked and not says_it else config.extra
    return replace(config, extra=extra, partition_kinds=_find_kinds(config, options))


def _find_kinds(config: TableConfig, options: Options) -> tuple[str, ...]:
    if config.key_generator != CUSTOM or config.partition_kinds:
        return config.partition_kinds
    asked = options.find(datasource_keys.PARTITIONPATH_FIELD) or ""
    fields = [name.strip() for name in asked.split(",")]
    names, kinds = split_partition_fields(fields, {_TYPE: CUSTOM})
    return kinds if names == config.partition_fields else ()


def read_current_properties(storage: Storage, opened: int) -> dict[str, str]:
    """What a table says of itself now; nothing while a JVM writes its properties anew.

    Args:
        storage: Of the table.
        opened: Its version when it was opened.

    Raises:
        DamagedTable: They are no properties.
        StorageError: The store failed.
        TableError: The table became one of another version: nothing may go on with what was known of it.
    """
    known = decode_properties(storage.read(PROPERTIES_PATH) or b"", PROPERTIES_PATH)
    version = known.get(table_keys.TABLE_VERSION.name, "").strip()
    if version.isdigit() and int(version) != opened:
        message = (
            f"{storage.base} was of version {opened} when it was opened, and is of version {version} now: open it anew,"
            " with another HoodieTable.load or TableWriter.open"
        )
        raise TableError(message, path=storage.base, opened=opened, found=int(version))
    return known


def translate_properties(
    properties: Mapping[str, str], version: int, options: Options, *, zone: str | None = None
) -> _Properties:
    """The properties of a table as another version says them; the metadata table is not among what they tell of.

    Args:
        properties: As they are.
        version: One of VERSIONS.
        options: Of a writer of the table, which tell what a table of version 6 leaves to them.
        zone: Where LOCAL is, if that is where its instants are.

    Raises:
        DamagedTable: The properties contradict themselves.
        UnsupportedTable: That version has no words for what the table is, or such a table is not written here.
    """
    known = dict(properties)
    at = VERSIONS.index(TableConfig.from_properties(known).version)
    while VERSIONS[at] != version:
        following = at + (1 if VERSIONS[at] < version else -1)
        known = _STEPS[VERSIONS[at], VERSIONS[following]](known, options)
        at = following
    check_writable(take_writer_options(TableConfig.from_properties(known), options).in_zone(zone))
    return known


def _from_6_to_8(known: _Properties, options: Options) -> _Properties:
    config = take_writer_options(TableConfig.from_properties(known), options)
    fields = join_partition_fields(config.partition_fields, config.partition_kinds)
    return {
        **known,
        **_name_merging(known, config),
        **_name_generator(known),
        **({table_keys.PARTITION_FIELDS.name: fields} if config.partition_kinds else {}),
        table_keys.INITIAL_VERSION.name: known.get(table_keys.INITIAL_VERSION.name, str(config.version)),
        table_keys.TABLE_VERSION.name: "8",
        table_keys.TIMELINE_LAYOUT_VERSION.name: "2",
        table_keys.TIMELINE_PATH.name: "timeline",
        table_keys.TIMELINE_HISTORY_PATH.name: "history",
    }


def _name_generator(known: _Properties) -> _Properties:
    """By its kind, and by its class as before; a table that names none has one that follows from its columns."""
    kind = name_key_generator(known.get(_TYPE), known.get(_GENERATOR))
    return {_TYPE: kind, _GENERATOR: known.get(_GENERATOR) or name_class(kind)} if kind else {}


def _name_merging(known: _Properties, config: TableConfig) -> _Properties:
    """As JVM Hudi takes a payload class; of a merge-on-read table the ordering column decides under both of its own."""
    if _MODE in known:
        return {}
    payload = config.extra.get(_CLASS, "").removeprefix(_PACKAGE)
    if payload and payload not in (_DEFAULT, _LATEST, _TIMED):
        return {_MODE: _CUSTOM, _STRATEGY: BY_PAYLOAD, _CLASS: f"{_PACKAGE}{payload}"}
    is_ordered = config.table_type == "MERGE_ON_READ" and bool(config.ordering_fields)
    mode = BY_TIME if payload in (_DEFAULT, _TIMED) or is_ordered else BY_COMMIT
    return _describe_mode(mode)


def _describe_mode(mode: str) -> _Properties:
    strategy, payload = MERGERS[mode]
    return {_MODE: mode, _STRATEGY: strategy, _CLASS: f"{_PACKAGE}{payload}"}


def _from_8_to_9(known: _Properties, options: Options) -> _Properties:
    del options
    _refuse_open_keys(known, 9)
    payload = known.get(_CLASS, "").removeprefix(_PACKAGE)
    if known.get(_MODE, "").upper() == _CUSTOM and payload not in _CLASSES:
        raise _refuse(known, _CLASS, "rows are merged by code of its own: let JVM Hudi upgrade the table")
    mode, more = _NAMED_IN_8.get(payload, (known.get(_MODE) or TableConfig.from_properties(known).merge_mode, {}))
    kept = {key: value for key, value in known.items() if key not in (_CLASS, _STRATEGY, *_ORDERING)}
    ordering = find_own_ordering(payload, 9) or ",".join(TableConfig.from_properties(known).ordering_fields)
    return {
        **kept,
        **more,
        _MODE: mode,
        **({_LEGACY_CLASS: f"{_PACKAGE}{payload}"} if payload in _CLASSES else {}),
        **({table_keys.ORDERING_FIELDS.name: ordering} if ordering else {}),
        table_keys.TABLE_VERSION.name: "9",
    }


def _from_9_to_8(known: _Properties, options: Options) -> _Properties:
    del options
    _refuse_open_keys(known, 8)
    config = TableConfig.from_properties(known)
    payload = known.get(_LEGACY_CLASS, "").removeprefix(_PACKAGE)
    column = find_own_ordering(payload, 8) or ",".join(config.ordering_fields)
    if "," in column:
        raise _refuse(known, table_keys.ORDERING_FIELDS.name, "version 8 has one ordering column")
    more = _NAMED_IN_8[payload][1] if payload in _NAMED_IN_8 else {}
    for key in (table_keys.PARTIAL_UPDATE_MODE.name, table_keys.DELETE_FIELD.name):
        if known.get(key) and key not in more:
            raise _refuse(known, key, "version 8 says such a thing by a payload class alone, and the table has none")
    gone = (_LEGACY_CLASS, *_ORDERING, *more, table_keys.PARTIAL_UPDATE_MODE.name)
    kept = {key: value for key, value in known.items() if key not in gone}
    named = {_MODE: _CUSTOM, _STRATEGY: BY_PAYLOAD, _CLASS: f"{_PACKAGE}{payload}"}
    return {
        **kept,
        **(named if payload in _NAMED_IN_8 else _describe_mode(config.merge_mode)),
        **({table_keys.PRECOMBINE_FIELD_LEGACY_NAME: column} if column else {}),
        table_keys.TABLE_VERSION.name: "8",
    }


def _from_8_to_6(known: _Properties, options: Options) -> _Properties:
    del options
    config = TableConfig.from_properties(known)
    payload = known.get(_CLASS) or f"{_PACKAGE}{MERGERS.get(config.merge_mode, ('', ''))[1]}"
    gone = (
        _MODE, _STRATEGY, _TYPE, table_keys.INITIAL_VERSION.name, table_keys.TIMELINE_PATH.name,
        table_keys.TIMELINE_HISTORY_PATH.name,
    )  # fmt: skip
    kept = {key: value for key, value in known.items() if key not in gone}
    fields = ",".join(config.partition_fields)
    return {
        **kept,
        _CLASS: payload,
        _GENERATOR: known.get(_GENERATOR) or name_class(config.key_generator),
        **({table_keys.PARTITION_FIELDS.name: fields} if fields else {}),
        table_keys.TABLE_VERSION.name: "6",
        table_keys.TIMELINE_LAYOUT_VERSION.name: "1",
        table_keys.ARCHIVELOG_FOLDER.name: "archived",
    }


_STEPS: Final[Mapping[tuple[int, int], Callable[[_Properties, Options], _Properties]]] = {
    (6, 8): _from_6_to_8,
    (8, 9): _from_8_to_9,
    (9, 8): _from_9_to_8,
    (8, 6): _from_8_to_6,
}


def _refuse_open_keys(known: _Properties, version: int) -> None:
    """Writers of both versions make other keys of the same row, unless the table says which; JVM Hudi refuses too."""
    if TableConfig.from_properties(known).prefixes_keys is None:
        key = table_keys.COMPLEX_KEY_ENCODING.name
        message = (
            f"{PROPERTIES_PATH} does not say whether keys of its one record key column are written with its name, and"
            f" writers of version {version} may write others: add {key}=VALUE_ONLY or FIELD_PREFIXED, as the column"
            " _hoodie_record_key shows them"
        )
        raise UnsupportedTable(message, path=PROPERTIES_PATH, key=key)


def _refuse(known: _Properties, key: str, why: str) -> UnsupportedTable:
    value = known.get(key, "")
    return UnsupportedTable(f"{PROPERTIES_PATH} says {key}={value}: {why}", path=PROPERTIES_PATH, key=key, value=value)
