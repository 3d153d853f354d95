"""A table as JVM Hudi's sync tools describe it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from hudi_locks.catalog.columns import Column, read_columns
from hudi_locks.catalog.settings import GLUE, SyncSettings, read_properties
from hudi_locks.config import catalog_keys
from hudi_locks.format import META_COLUMNS
from hudi_locks.table import Table, read_commit
from hudi_locks.timeline import Timeline

__all__ = ["OUTPUT_FORMAT", "SERDE", "SERDE_FORMAT", "CatalogTable", "describe_table"]

OUTPUT_FORMAT: Final = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
SERDE: Final = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
SERDE_FORMAT: Final = {"serialization.format": "1"}
"""By which Hive writes and reads the rows of each table."""
_PLAIN: Final = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
_MERGED: Final = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
_ATHENA_LISTING: Final = "hudi.metadata-listing-enabled"
_PROVIDER: Final = "spark.sql.sources.provider"
_SCHEMA: Final = "spark.sql.sources.schema."


@dataclass(frozen=True)
class CatalogTable:
    """What a catalog is told of a table.

    Attributes:
        database: Its database there.
        name: Its name there.
        location: Base path of the table.
        columns: Those of its files.
        partition_columns: Those that folders tell.
        input_format: Java class by which Hive reads it.
        properties: Its properties, without those that tell how far it was synced.
        serde: Properties of its serde.
    """

    database: str
    name: str
    location: str
    columns: tuple[Column, ...]
    partition_columns: tuple[Column, ...]
    input_format: str
    properties: Mapping[str, str]
    serde: Mapping[str, str]

    def merge_properties(self, known: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
        """Its properties and more over those that a catalog has, of which Spark's columns go: others may be longer."""
        kept = {name: text for name, text in known.items() if not name.startswith(_SCHEMA)}
        return {**kept, **self.properties, **more}


def describe_table(table: Table, timeline: Timeline, settings: SyncSettings) -> tuple[CatalogTable, ...]:
    """The tables that a catalog is to have of this one: one, or for merge-on-read up to three. None without commits.

    Raises:
        DamagedTable: The last commit cannot be read.
        UnsupportedTable: A column has a type that catalogs have no name for.
    """
    columns = _read_columns(table, timeline, settings)
    if not columns:
        return ()
    names = _name_all(settings) if table.is_merge_on_read else [(settings.name, False, False)]
    return tuple(
        _describe(table, settings, columns, name=name, is_merged=is_merged, is_optimized=is_optimized)
        for name, is_merged, is_optimized in names
    )


def _read_columns(table: Table, timeline: Timeline, settings: SyncSettings) -> tuple[Column, ...]:
    with_timestamps = settings.options.get_value(catalog_keys.SUPPORT_TIMESTAMP)
    for instant in reversed(timeline.completed_between("")):
        recorded = read_commit(table.storage, timeline, requested=instant.requested).schema
        if recorded:
            found = read_columns(recorded, timeline.paths[instant], with_timestamps=with_timestamps)
            return tuple(column for column in found if column.name not in META_COLUMNS)
    return ()


def _name_all(settings: SyncSettings) -> list[tuple[str, bool, bool]]:
    """Name, whether logs are merged, and whether it is a read-optimized view, in the order in which they are made."""
    options, name = settings.options, settings.name
    strategy = options.get_value(catalog_keys.STRATEGY).upper()
    if strategy != catalog_keys.ALL:
        return [(name, strategy == catalog_keys.REAL_TIME, strategy == catalog_keys.READ_OPTIMIZED)]
    plain = name if options.get_value(catalog_keys.SKIP_RO_SUFFIX) else f"{name}_ro"
    both = [(plain, False, True), (f"{name}_rt", True, False)]
    return [*both, (name, True, False)] if options.get_value(catalog_keys.WITH_SNAPSHOT) else both


def _describe(
    table: Table,
    settings: SyncSettings,
    columns: tuple[Column, ...],
    *,
    name: str,
    is_merged: bool,
    is_optimized: bool,
) -> CatalogTable:
    options = settings.options
    meta = () if options.get_value(catalog_keys.OMIT_META_COLUMNS) else tuple(map(_make_text_column, META_COLUMNS))
    by_name = {column.name: column for column in columns}
    partitions = tuple(by_name.get(one) or _make_text_column(one) for one in settings.partition_columns)
    kept = (*meta, *(column for column in columns if column.name not in settings.partition_columns))
    for_spark = options.get_value(catalog_keys.AS_DATASOURCE)
    spark = _tell_spark(kept, partitions, options.get_value(catalog_keys.SCHEMA_LETTERS)) if for_spark else {}
    path = table.storage.base
    serde = {"path": path, **({"hoodie.query.as.ro.table": str(is_optimized).lower()} if for_spark else {})}
    return CatalogTable(
        settings.database,
        name,
        path,
        kept,
        partitions,
        _MERGED if is_merged else _PLAIN,
        {**read_properties(options.get_value(catalog_keys.TABLE_PROPERTIES)), **spark, **_tell_athena(settings)},
        {**read_properties(options.get_value(catalog_keys.SERDE_PROPERTIES)), **serde},
    )


def _tell_athena(settings: SyncSettings) -> dict[str, str]:
    if settings.kind != GLUE:
        return {}
    return {_ATHENA_LISTING: str(settings.options.get_value(catalog_keys.GLUE_METADATA_LISTING)).upper()}


def _make_text_column(name: str) -> Column:
    return Column(name, "string")


def _tell_spark(columns: tuple[Column, ...], partitions: tuple[Column, ...], letters: int) -> dict[str, str]:
    """How Spark keeps a table's columns in a Hive Metastore: JSON in pieces."""
    fields = [column.to_spark() for column in (*columns, *partitions)]
    text = json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"), ensure_ascii=False)
    pieces = [text[begin : begin + letters] for begin in range(0, len(text), letters)]
    told = {_PROVIDER: "hudi", f"{_SCHEMA}numParts": str(len(pieces)), **dict(_find_version())}
    told |= {f"{_SCHEMA}part.{number}": piece for number, piece in enumerate(pieces)}
    if partitions:
        told[f"{_SCHEMA}numPartCols"] = str(len(partitions))
    return told | {f"{_SCHEMA}partCol.{n}": column.name for n, column in enumerate(partitions)}


def _find_version() -> Iterator[tuple[str, str]]:
    """Of the Spark that is installed, by which Spark knows what a table made by an older one may mean."""
    try:
        yield "spark.sql.create.version", version("pyspark")
    except PackageNotFoundError:
        return
