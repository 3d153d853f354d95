"""A new table's settings, from arguments and from Hudi's option keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hudi_locks.config import Key, Options, datasource_keys, table_keys, write_keys
from hudi_locks.table import TableConfig

__all__ = ["LAYOUT_KEYS", "describe_from_options", "describe_table"]

LAYOUT_KEYS: Final[tuple[Key[Any], ...]] = (
    datasource_keys.INDEX_TYPE,
    datasource_keys.BUCKET_INDEX_NUM_BUCKETS,
    datasource_keys.BUCKET_INDEX_HASH_FIELD,
    datasource_keys.BUCKET_INDEX_PARTITION_EXPRESSIONS,
)
"""Options that decide where a key lies. A table remembers those that it was made with, since a writer that is given
others would look for its rows in the wrong place and double them."""
_KEPT: Final[tuple[Key[Any], ...]] = (write_keys.FOREIGN_WRITERS, table_keys.PARTIAL_UPDATE_MODE, *LAYOUT_KEYS)


def describe_table(
    options: Options,
    *,
    name: str,
    record_key: str | Sequence[str],
    partition_by: str | Sequence[str] = (),
    ordering: str | Sequence[str] | None = None,
    table_type: str = "COPY_ON_WRITE",
) -> TableConfig:
    """The settings of a table that is to be made."""
    return TableConfig(
        name=name,
        record_key_fields=_split(record_key),
        partition_fields=_split(partition_by),
        ordering_fields=_split(ordering or ()),
        version=options.get_value(datasource_keys.WRITE_TABLE_VERSION),
        table_type=table_type.upper(),
        hive_style=options.get_value(datasource_keys.HIVE_STYLE_PARTITIONING),
        url_encode=options.get_value(datasource_keys.PARTITIONPATH_URLENCODE),
        database=options.find(table_keys.DATABASE_NAME) or "",
        declared_merge_mode=(options.find(table_keys.RECORD_MERGE_MODE) or "").upper(),
        extra=_keep(options),
    )


def _keep(options: Options) -> dict[str, str]:
    given = {key.name: options.name_used(key) for key in _KEPT}
    return {key: options[name] for key, name in given.items() if name is not None}


def describe_from_options(options: Options) -> TableConfig:
    """The settings of a table as the datasource options of a Hudi job give them.

    Raises:
        ConfigError: Name or record key are missing.
    """
    return describe_table(
        options,
        name=options.get_value(table_keys.TABLE_NAME),
        record_key=options.get_value(datasource_keys.RECORDKEY_FIELD),
        partition_by=options.find(datasource_keys.PARTITIONPATH_FIELD) or (),
        ordering=options.find(datasource_keys.PRECOMBINE_FIELD),
        table_type=options.get_value(datasource_keys.WRITE_TABLE_TYPE),
    )


def _split(names: str | Sequence[str]) -> tuple[str, ...]:
    listed = names.split(",") if isinstance(names, str) else names
    return tuple(name.strip() for name in listed if name.strip())
