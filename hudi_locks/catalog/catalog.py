"""The contract of a catalog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol, TypeVar

from hudi_locks.catalog.description import CatalogTable
from hudi_locks.config import Options
from hudi_locks.errors import ProviderLoadError

__all__ = ["ENTRY_POINT_GROUP", "Catalog", "CatalogEntry", "cut", "open_catalog"]

_Item = TypeVar("_Item")

ENTRY_POINT_GROUP: Final = "hudi_locks.catalogs"


@dataclass(frozen=True)
class CatalogEntry:
    """A table as a catalog has it.

    Attributes:
        location: Where its files are, as the catalog says it.
        columns: Name and Hive type of each column, without those of partitions.
        properties: Its properties.
    """

    location: str
    columns: tuple[tuple[str, str], ...]
    properties: Mapping[str, str]


class Catalog(Protocol):
    """Tables and partitions of one catalog service. Databases and tables are named in small letters.

    Each method raises `BackendUnavailable` where the service cannot be reached, and `BackendRefused` where it refuses.
    """

    def create_database(self, name: str) -> None:
        """Make a database if it is not there."""

    def find(self, database: str, name: str) -> CatalogEntry | None:
        """The table, or None if there is none."""

    def create(self, table: CatalogTable) -> None:
        """Make the table, or alter the one that another writer made at the same time."""

    def alter(self, table: CatalogTable, properties: Mapping[str, str]) -> None:
        """Give the table these columns, and set its properties and these; what others set stays."""

    def list_partitions(self, table: CatalogTable) -> Mapping[tuple[str, ...], str]:
        """Location of each partition by its values."""

    def add_partitions(self, table: CatalogTable, folders: Mapping[tuple[str, ...], str]) -> None:
        """Add partitions, with the location of each; those that are there stay."""

    def drop_partitions(self, table: CatalogTable, values: Iterable[tuple[str, ...]]) -> None:
        """Take partitions out, and leave their files alone."""

    def close(self) -> None:
        """Let go of the connection."""


def open_catalog(kind: str, options: Options) -> Catalog:
    """The catalog of this kind that the options name.

    Raises:
        ProviderLoadError: No installed package offers it.
    """
    from importlib.metadata import entry_points

    point = next(iter(entry_points(group=ENTRY_POINT_GROUP, name=kind)), None)
    if point is None:
        message = f"no installed package offers the catalog {kind!r} under the entry points {ENTRY_POINT_GROUP!r}"
        raise ProviderLoadError(message, catalog=kind)
    opened: Catalog = point.load()(options)
    return opened


def cut(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """The items in lists of at most so many."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
