"""What a sync is told to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hudi_locks.config import Options, catalog_keys, table_keys
from hudi_locks.errors import ConfigError
from hudi_locks.table import DEFAULT_PARTITION, TableConfig, parse_partition_path

__all__ = ["GLUE", "HIVE", "SyncSettings", "choose_tools", "read_properties"]

HIVE, GLUE = "hive", "glue"
"""Kinds of catalogs."""
_KINDS: Final = {catalog_keys.HIVE_SYNC_TOOL: HIVE, catalog_keys.GLUE_SYNC_TOOL: GLUE}
_SLASHED_DAY: Final = "SlashEncodedDayPartitionValueExtractor"
_NONE: Final = "NonPartitionedExtractor"
_BY_FOLDER: Final = (
    "SinglePartPartitionValueExtractor",
    "MultiPartKeysValueExtractor",
    "HiveStylePartitionValueExtractor",
)
_DAY_PARTS: Final = 3
_ADVICE: Final = "no catalog is written to, so that what it tells of the table stays as it is; set"


@dataclass(frozen=True)
class SyncSettings:
    """How the catalog describes a table.

    Attributes:
        kind: Of the catalog.
        database: Its database there.
        name: Its name there.
        partition_columns: Names of its partition columns there.
        extractor: Class by which values are told from folders, without its package; "" as the table makes them.
        options: The options themselves, for what is a plain switch.
    """

    kind: str
    database: str
    name: str
    partition_columns: tuple[str, ...]
    extractor: str
    options: Options = field(repr=False)

    @classmethod
    def of(cls, options: Options, config: TableConfig, *, kind: str = HIVE) -> SyncSettings:
        """What the options of a writer ask of this kind of catalog.

        Raises:
            ConfigError: Values of partition columns cannot be told as they ask.
        """
        named = _split(options.find(catalog_keys.PARTITION_FIELDS)) or config.partition_fields
        given = (options.find(catalog_keys.EXTRACTOR) or "").rpartition(".")[2]
        extractor = given or _find_extractor(config)
        if extractor not in ("", *_BY_FOLDER, _SLASHED_DAY, _NONE):
            key = catalog_keys.EXTRACTOR.name
            message = f"{key}={given} is not offered; use one of {', '.join((*_BY_FOLDER, _SLASHED_DAY, _NONE))}"
            raise ConfigError(message, key=key, value=given)
        database, name = _name_table(options, config, kind)
        return cls(kind, database.lower(), name.lower(), () if extractor == _NONE else tuple(named), extractor, options)

    def read_values(self, folder: str, config: TableConfig) -> tuple[str, ...]:
        """The values of the partition columns that a folder of the table stands for.

        Raises:
            DamagedTable: The folder does not belong to these columns.
            ConfigError: There are more or fewer values than columns.
        """
        if self.extractor == _SLASHED_DAY:
            values: Sequence[str | None] = _join_day(folder)
        else:
            style = {"hive_style": config.hive_style, "url_encode": config.url_encode}
            values = parse_partition_path(folder, config.partition_fields, **style)
        if len(values) != len(self.partition_columns):
            key = catalog_keys.PARTITION_FIELDS.name
            message = f"{key} names {len(self.partition_columns)} columns, and the folder {folder!r} has {len(values)}"
            raise ConfigError(message, key=key, folder=folder)
        return tuple(DEFAULT_PARTITION if value is None else value for value in values)


def choose_tools(options: Options) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The kinds of catalogs that the options ask for and that can be had, and what to warn of otherwise."""
    tools = [catalog_keys.HIVE_SYNC_TOOL] if options.get_value(catalog_keys.HIVE_SYNC_ENABLE) else []
    if options.get_value(catalog_keys.META_SYNC_ENABLE):
        tools += _split(options.get_value(catalog_keys.SYNC_TOOLS))
    key = catalog_keys.SYNC_TOOLS.name
    strange = [tool for tool in dict.fromkeys(tools) if tool not in _KINDS]
    warnings = [f"{key}={tool} is not offered: run that tool of JVM Hudi after the job" for tool in strange]
    kinds = [_KINDS[tool] for tool in dict.fromkeys(tools) if tool in _KINDS]
    mode = options.find(catalog_keys.MODE) or ""
    if HIVE in kinds and mode.lower() != catalog_keys.HMS:
        kinds.remove(HIVE)
        asked = (
            f"{catalog_keys.MODE.name}={mode}" if mode else f"without {catalog_keys.MODE.name} Hudi asks by JDBC, which"
        )
        advice = f"{_ADVICE} {catalog_keys.MODE.name}={catalog_keys.HMS} and {catalog_keys.URIS.name}"
        warnings.append(f"{asked} is not offered: {advice}")
    return tuple(kinds), tuple(warnings)


def _name_table(options: Options, config: TableConfig, kind: str) -> tuple[str, str]:
    """Its database and its name there."""
    own = (catalog_keys.GLUE_DATABASE, catalog_keys.GLUE_TABLE) if kind == GLUE else ()
    database, name = (options.find(key) for key in own) if own else (None, None)
    database = database or options.find(catalog_keys.DATABASE) or config.extra.get(table_keys.DATABASE_NAME.name)
    return database or "default", name or options.find(catalog_keys.TABLE) or config.name


def _find_extractor(config: TableConfig) -> str:
    if not config.partition_fields:
        return _NONE
    return _SLASHED_DAY if config.splits_dates else ""


def _join_day(folder: str) -> tuple[str, ...]:
    parts = [part.rpartition("=")[2] for part in folder.split("/")]
    return ("-".join(parts),) if len(parts) == _DAY_PARTS else tuple(parts)


def _split(text: str | None) -> list[str]:
    return [part for part in (part.strip() for part in (text or "").split(",")) if part]


def read_properties(text: str) -> Mapping[str, str]:
    """Properties of a text with `name=value` on each line, as Hudi's keys take them."""
    pairs = (line.partition("=") for line in text.splitlines() if line.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}
