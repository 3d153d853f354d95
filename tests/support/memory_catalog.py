"""A catalog that remembers what it is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hudi_locks.catalog import CatalogEntry, CatalogTable

__all__ = ["MemoryCatalog"]


@dataclass
class MemoryCatalog:
    """Remembers what it is told."""

    tables: dict[str, CatalogEntry] = field(default_factory=dict)
    partitions: dict[str, dict[tuple[str, ...], str]] = field(default_factory=dict)
    databases: list[str] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)

    def create_database(self, name: str) -> None:
        self.databases.append(name)

    def find(self, database: str, name: str) -> CatalogEntry | None:
        return self.tables.get(f"{database}.{name}")

    def create(self, table: CatalogTable) -> None:
        self.alter(table, {})

    def alter(self, table: CatalogTable, properties: Mapping[str, str]) -> None:
        columns = tuple((column.name, column.hive_type) for column in table.columns)
        entry = CatalogEntry(table.location, columns, {**table.properties, **properties})
        self.tables[f"{table.database}.{table.name}"] = entry

    def list_partitions(self, table: CatalogTable) -> Mapping[tuple[str, ...], str]:
        return self.partitions.get(table.name, {})

    def add_partitions(self, table: CatalogTable, folders: Mapping[tuple[str, ...], str]) -> None:
        self.batches.append(len(folders))
        self.partitions.setdefault(table.name, {}).update(folders)

    def drop_partitions(self, table: CatalogTable, values: Iterable[tuple[str, ...]]) -> None:
        for one in values:
            del self.partitions[table.name][one]

    def close(self) -> None:
        self.batches.append(0)
