"""A new table's settings, from arguments and from Hudi's option keys."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final

from hudi_locks.config import (
    Key,
    Options,
    datasource_keys,
    find_key,
    index_keys,
    table_keys,
    time_partition_keys,
    write_keys,
)
from hudi_locks.errors import BadInput, ConfigError, NoEffectWarning
from hudi_locks.spark.operation import Operation
from hudi_locks.table import (
    COMPLEX,
    CUSTOM,
    FIELD_PREFIXED,
    KEY_GENERATORS,
    NON_PARTITION,
    PREFIXED_SINCE,
    SIMPLE,
    TIMESTAMP,
    VALUE_ONLY,
    TableConfig,
    describe_payload,
    find_key_generator,
    join_partition_fields,
    name_key_generator,
    read_delete_marker,
    read_payload,
    split_partition_fields,
)

__all__ = ["LAYOUT_KEYS", "describe_from_options", "describe_table", "refuse_other_table"]

LAYOUT_KEYS: Final[tuple[Key[Any], ...]] = (
    index_keys.INDEX_TYPE,
    index_keys.BUCKET_INDEX_ENGINE,
    index_keys.BUCKET_INDEX_NUM_BUCKETS,
    index_keys.BUCKET_INDEX_HASH_FIELD,
    index_keys.BUCKET_INDEX_PARTITION_EXPRESSIONS,
)
"""Options that decide where a key lies. A table remembers those that it was made with, since a writer that is given
others would look for its rows in the wrong place and double them."""
_COMPARED: Final[tuple[Key[Any], ...]] = (
    *LAYOUT_KEYS,
    write_keys.FOREIGN_WRITERS,
    table_keys.METADATA_ENABLE,
    table_keys.PAYLOAD_CLASS,
    table_keys.RECORD_MERGE_MODE,
    table_keys.DELETE_FIELD,
    table_keys.DELETE_MARKER,
)
"""Keys whose options are compared with the table in a way of their own, or are a writer's choice."""
_INSERTS: Final = (
    Operation.INSERT,
    Operation.BULK_INSERT,
    Operation.INSERT_OVERWRITE,
    Operation.INSERT_OVERWRITE_TABLE,
)
_KEPT: Final[tuple[Key[Any], ...]] = (
    write_keys.FOREIGN_WRITERS,
    table_keys.PARTIAL_UPDATE_MODE,
    table_keys.UNAVAILABLE_VALUE,
    table_keys.CDC_ENABLED,
    table_keys.CDC_MODE,
    table_keys.DROP_PARTITION_COLUMNS,
    table_keys.POPULATE_META_FIELDS,
    datasource_keys.SLASH_SEPARATED_DATES,
    *LAYOUT_KEYS,
    *time_partition_keys.TIME_PARTITION_KEYS,
)


def describe_table(
    options: Options,
    *,
    name: str,
    record_key: str | Sequence[str],
    partition_by: str | Sequence[str] = (),
    ordering: str | Sequence[str] | None = None,
    table_type: str = "COPY_ON_WRITE",
) -> TableConfig:
    """The settings of a table that is to be made.

    Raises:
        ConfigError: The key generator that the options name is not offered, or not for these columns.
    """
    keys, said = _split(record_key), _split(partition_by)
    version = options.get_value(datasource_keys.WRITE_TABLE_VERSION)
    ordered = describe_payload(options, version, ordering=_split(ordering or ()))
    merging = {**_describe_merging(options, version), **ordered}
    generator = _choose_generator(options, keys, said)
    partitions, kinds = _split_partitions(said, generator)
    return TableConfig(
        name=name,
        record_key_fields=keys,
        partition_fields=() if generator == NON_PARTITION else partitions,
        partition_kinds=kinds,
        ordering_fields=_split(ordering or ()),
        version=version,
        table_type=table_type.upper(),
        hive_style=options.get_value(datasource_keys.HIVE_STYLE_PARTITIONING),
        url_encode=options.get_value(datasource_keys.PARTITIONPATH_URLENCODE),
        database=options.find(table_keys.DATABASE_NAME) or "",
        declared_merge_mode=merging.pop(table_keys.RECORD_MERGE_MODE.name, "").upper(),
        extra={**_keep(options), **merging, **_describe_keys(options, generator, keys)},
    )


def _describe_merging(options: Options, version: int) -> dict[str, str]:
    """How the table merges rows, as the options say it without a payload class."""
    mode = options.find(table_keys.RECORD_MERGE_MODE)
    said = {table_keys.RECORD_MERGE_MODE.name: mode} if mode else {}
    marker = read_delete_marker(options)
    if marker is not None and marker.value is not None and version >= PREFIXED_SINCE:
        said |= {table_keys.DELETE_FIELD.name: marker.column, table_keys.DELETE_MARKER.name: marker.value}
    return said


def _choose_generator(options: Options, keys: Sequence[str], partitions: Sequence[str]) -> str:
    """The key generator that the options name, else that for these columns."""
    kind = options.find(datasource_keys.WRITE_KEYGENERATOR_TYPE)
    java_class = options.find(datasource_keys.WRITE_KEYGENERATOR_CLASS)
    named = name_key_generator(kind, java_class)
    if named is None:
        return find_key_generator({}, keys, partitions)
    key = datasource_keys.WRITE_KEYGENERATOR_TYPE.name if kind else datasource_keys.WRITE_KEYGENERATOR_CLASS.name
    asked = f"{key}={kind or java_class}"
    if named not in KEY_GENERATORS:
        offered = ", ".join(KEY_GENERATORS)
        raise ConfigError(f"{asked} is not offered; leave it out, or use one of {offered}", key=key, value=named)
    if named in (SIMPLE, TIMESTAMP) and (len(keys) > 1 or len(partitions) != 1):
        message = (
            f"{asked} is for one record key column and one partition column, and {len(keys)} and {len(partitions)} are"
            " given; leave it out, and the right one is chosen"
        )
        raise ConfigError(message, key=key, value=named)
    if named == NON_PARTITION and partitions:
        told = f"{asked} makes an unpartitioned table: {datasource_keys.PARTITIONPATH_FIELD.name} has no effect"
        warnings.warn(told, UserWarning, stacklevel=4)
    return named


def _split_partitions(said: Sequence[str], generator: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    columns, kinds = split_partition_fields(said, {table_keys.KEY_GENERATOR_TYPE.name: generator})
    if generator == CUSTOM and columns and not kinds:
        key = datasource_keys.PARTITIONPATH_FIELD.name
        message = f"{key}={','.join(said)}: a custom key generator wants column:SIMPLE or column:TIMESTAMP of each"
        raise ConfigError(message, key=key)
    return columns, kinds


def _describe_keys(options: Options, generator: str, keys: Sequence[str]) -> dict[str, str]:
    """What the table remembers of its keys. Of one key column releases of the JVM make this or that: so it is said."""
    said = {table_keys.KEY_GENERATOR_TYPE.name: generator}
    if generator != COMPLEX or len(keys) != 1:
        return said
    value_only = options.get_value(datasource_keys.WRITE_TABLE_VERSION) < PREFIXED_SINCE
    key = datasource_keys.COMPLEX_KEY_VALUE_ONLY
    if value_only and options.has(key):
        value_only = options.get_value(key)
    return {**said, table_keys.COMPLEX_KEY_ENCODING.name: VALUE_ONLY if value_only else FIELD_PREFIXED}


def _keep(options: Options) -> dict[str, str]:
    given = {key.name: options.name_used(key) for key in _KEPT}
    kept = {key: options[name] for key, name in given.items() if name is not None}
    if options.get_value(table_keys.CDC_ENABLED):
        kept[table_keys.CDC_MODE.name] = options.get_value(table_keys.CDC_MODE).upper()
    return kept


def describe_from_options(options: Options) -> TableConfig:
    """The settings of a table as the datasource options of a Hudi job give them.

    Raises:
        ConfigError: Name or record key are missing.
    """
    return describe_table(
        options,
        name=options.get_value(table_keys.TABLE_NAME),
        record_key=_find_record_key(options),
        partition_by=options.find(datasource_keys.PARTITIONPATH_FIELD) or (),
        ordering=options.find(datasource_keys.PRECOMBINE_FIELD),
        table_type=options.get_value(datasource_keys.WRITE_TABLE_TYPE),
    )


def _find_record_key(options: Options) -> str:
    """The record key columns; none where rows are only inserted, so that each may get a key of its own."""
    if options.get_value(datasource_keys.OPERATION).lower() in (operation.value for operation in _INSERTS):
        return options.find(datasource_keys.RECORDKEY_FIELD) or ""
    return options.get_value(datasource_keys.RECORDKEY_FIELD)


def refuse_other_table(options: Options, config: TableConfig, path: str) -> None:
    """Refuse options that mean another table than the one that is there: rows would be doubled, or lie elsewhere.

    A database name that the table lacks is no other table, as in JVM Hudi, but a warning: no write adds it. Nor does
    one change whether the table expects JVM writers.

    Raises:
        BadInput: Naming the option and what the table was made with.
    """
    for key, present in _describe(config).items():
        asked = options.name_used(key)
        if asked is not None and _normalize(key, options) != present:
            raise _other(asked, options[asked], present, path)
    _refuse_other_properties(options, config, path)
    for name, value in {**read_payload(options), **_describe_merging(options, config.version)}.items():
        present = _present_merging(config)[name]
        if value.upper() != present.upper():
            given = options.name_used(table_keys.PAYLOAD_CLASS) or name
            raise _other(given, options.get(given, value), present, path)
    _warn_of_database(options, config, path)
    _warn_of_foreign_writers(options, config, path)


def _warn_of_foreign_writers(options: Options, config: TableConfig, path: str) -> None:
    key = write_keys.FOREIGN_WRITERS
    kept = Options(config.extra).get_value(key)
    if options.has(key) and options.get_value(key) is not kept:
        message = (
            f"{key.name}={str(not kept).lower()} has no effect on the table at {path}, which was made with"
            f" {str(kept).lower()}: all of its writers go by what it says; leave the option out"
        )
        warnings.warn(message, NoEffectWarning, stacklevel=5)


def _warn_of_database(options: Options, config: TableConfig, path: str) -> None:
    database = options.find(table_keys.DATABASE_NAME)
    if database and not config.database:
        message = (
            f"{table_keys.DATABASE_NAME.name}={database} has no effect on the table at {path}: it was made without a"
            " database name, and no write adds one; leave the option out"
        )
        warnings.warn(message, NoEffectWarning, stacklevel=5)


def _refuse_other_properties(options: Options, config: TableConfig, path: str) -> None:
    """What a table says of itself for good, as its timeline."""
    properties = {table_keys.RECORD_MERGE_STRATEGY_ID.name: config.merge_strategy_id, **config.to_properties()}
    for name, value in options.items():
        key = find_key(name)
        if key is None or key in _COMPARED or key.name not in properties:
            continue
        present = properties[key.name]
        if "".join(value.lower().split()) != "".join(present.lower().split()):
            raise _other(name, value, present, path)


def _other(asked: str, value: str, present: str, path: str) -> BadInput:
    message = (
        f"{asked}={value}, but the table at {path} was made with {present or 'none'}; leave the option out or write to"
        " another path"
    )
    return BadInput(message, key=asked, asked=value, present=present)


def _present_merging(config: TableConfig) -> dict[str, str]:
    kept = (
        table_keys.PARTIAL_UPDATE_MODE,
        table_keys.UNAVAILABLE_VALUE,
        table_keys.DELETE_FIELD,
        table_keys.DELETE_MARKER,
    )
    return {
        table_keys.RECORD_MERGE_MODE.name: config.merge_mode,
        **{key.name: config.extra.get(key.name, "") for key in kept},
        **config.payload_meaning,
    }


def _describe(config: TableConfig) -> dict[Key[Any], str]:
    """What a table says of itself, by the options of a writer that say the same."""
    fields = join_partition_fields(config.partition_fields, config.partition_kinds)
    partitions = {datasource_keys.PARTITIONPATH_FIELD: fields}
    return {
        table_keys.TABLE_NAME: config.name,
        datasource_keys.WRITE_TABLE_TYPE: config.table_type,
        datasource_keys.RECORDKEY_FIELD: ",".join(config.record_key_fields),
        datasource_keys.PRECOMBINE_FIELD: ",".join(config.ordering_fields),
        datasource_keys.WRITE_KEYGENERATOR_TYPE: config.key_generator,
        datasource_keys.WRITE_KEYGENERATOR_CLASS: config.key_generator,
        datasource_keys.SLASH_SEPARATED_DATES: str(config.splits_dates).lower(),
        datasource_keys.HIVE_STYLE_PARTITIONING: str(config.hive_style).lower(),
        datasource_keys.PARTITIONPATH_URLENCODE: str(config.url_encode).lower(),
        **({} if config.key_generator == NON_PARTITION else partitions),
    }


def _normalize(key: Key[Any], options: Options) -> str:
    value = options.get_value(key)
    if key is datasource_keys.WRITE_KEYGENERATOR_TYPE:
        return name_key_generator(value, None) or ""
    if key is datasource_keys.WRITE_KEYGENERATOR_CLASS:
        return name_key_generator(None, value) or ""
    if key is datasource_keys.WRITE_TABLE_TYPE:
        return str(value).upper()
    return str(value).lower() if isinstance(value, bool) else ",".join(_split(str(value)))


def _split(names: str | Sequence[str]) -> tuple[str, ...]:
    listed = names.split(",") if isinstance(names, str) else names
    return tuple(name.strip() for name in listed if name.strip())
