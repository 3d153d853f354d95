"""Catalogs: what a Hive Metastore or AWS Glue is told of a table, as JVM Hudi's sync tools tell it."""

from hudi_locks.catalog.catalog import ENTRY_POINT_GROUP, Catalog, CatalogEntry, cut
from hudi_locks.catalog.columns import Column, read_columns
from hudi_locks.catalog.description import OUTPUT_FORMAT, SERDE, SERDE_FORMAT, CatalogTable, describe_table
from hudi_locks.catalog.settings import SyncSettings, choose_tools
from hudi_locks.catalog.sync import CatalogSync, SyncResult

__all__ = [
    "ENTRY_POINT_GROUP",
    "OUTPUT_FORMAT",
    "SERDE",
    "SERDE_FORMAT",
    "Catalog",
    "CatalogEntry",
    "CatalogSync",
    "CatalogTable",
    "Column",
    "SyncResult",
    "SyncSettings",
    "choose_tools",
    "cut",
    "describe_table",
    "read_columns",
]
