"""The Hive Metastore as a catalog of tables, asked over Thrift."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from hudi_locks.catalog import OUTPUT_FORMAT, SERDE, SERDE_FORMAT, CatalogEntry, CatalogTable, Column
from hudi_locks.config import Options, catalog_keys
from hudi_locks.errors import BackendRefused
from hudi_locks_providers._hive.connections import MetastoreConnections, find_user

__all__ = ["HiveCatalog"]

_EXTERNAL: Final = "EXTERNAL_TABLE"
_CASCADE: Final = {"CASCADE": "true"}
_ALL: Final = -1


class _Missing(Exception):  # an answer of the metastore, never seen outside
    """There is no such database, table or partition."""


class _Present(Exception):  # an answer of the metastore, never seen outside
    """It is there already."""


class _Connections(MetastoreConnections):
    def _translate(self, method: str, error: Exception) -> Exception:
        name = type(error).__name__
        if name == "NoSuchObjectException":
            return _Missing(method)
        return _Present(method) if name == "AlreadyExistsException" else super()._translate(method, error)


class HiveCatalog:
    """Tables of a Hive Metastore, as JVM Hudi makes them there with `hoodie.datasource.hive_sync.mode=hms`.

    Needs the packages of `hudi-locks[hive]`, for a login by Kerberos also those of `hudi-locks[kerberos]`.

    Args:
        options: For the addresses: `hoodie.datasource.hive_sync.metastore.uris`, else those of hive-site.xml.
    """

    def __init__(self, options: Options) -> None:
        self._calls = _Connections(options, catalog_keys.URIS)

    def create_database(self, name: str) -> None:
        """See `Catalog.create_database`."""
        if not self._has_database(name):
            made = self._calls.types().Database(name=name, description="made by hudi-locks", parameters={})
            with suppress(_Present):
                self._calls.call("create_database", made)

    def _has_database(self, name: str) -> bool:
        try:
            self._calls.call("get_database", name)
        except _Missing:
            return False
        return True

    def find(self, database: str, name: str) -> CatalogEntry | None:
        """See `Catalog.find`."""
        try:
            found = self._calls.call("get_table", database, name)
        except _Missing:
            return None
        columns = tuple((column.name, column.type) for column in found.sd.cols)
        return CatalogEntry(found.sd.location, columns, dict(found.parameters))

    def create(self, table: CatalogTable) -> None:
        """See `Catalog.create`."""
        made = self._calls.types().Table(
            tableName=table.name,
            dbName=table.database,
            owner=find_user(),
            sd=self._store(table),
            partitionKeys=self._list_columns(table.partition_columns),
            parameters={"EXTERNAL": "TRUE", **table.properties},
            tableType=_EXTERNAL,
            retention=0,
        )
        try:
            self._calls.call("create_table", made)
        except _Present:
            self.alter(table, {})
        except (BackendRefused, _Missing) as error:
            if self._has_database(table.database):
                raise
            key = catalog_keys.CREATE_DATABASE.name
            message = f"there is no database {table.database}: make it, or leave {key} at true"
            raise BackendRefused(message, database=table.database) from error

    def alter(self, table: CatalogTable, properties: Mapping[str, str]) -> None:
        """See `Catalog.alter`. Partitions get the columns too."""
        found = self._ask(table, "get_table", table.database, table.name)
        store = self._store(table)
        found.sd.cols, found.sd.inputFormat, found.sd.outputFormat = store.cols, store.inputFormat, store.outputFormat
        found.sd.serdeInfo.serializationLib = SERDE
        found.sd.serdeInfo.parameters = {**found.sd.serdeInfo.parameters, **store.serdeInfo.parameters}
        found.parameters = table.merge_properties(found.parameters, properties)
        context = self._calls.types().EnvironmentContext(properties=dict(_CASCADE))
        self._ask(table, "alter_table_with_environment_context", table.database, table.name, found, context)

    def list_partitions(self, table: CatalogTable) -> Mapping[tuple[str, ...], str]:
        """See `Catalog.list_partitions`."""
        found = self._ask(table, "get_partitions", table.database, table.name, _ALL)
        return {tuple(one.values): one.sd.location for one in found}

    def add_partitions(self, table: CatalogTable, folders: Mapping[tuple[str, ...], str]) -> None:
        """See `Catalog.add_partitions`."""
        types = self._calls.types()
        made = [
            types.Partition(
                values=list(values),
                dbName=table.database,
                tableName=table.name,
                sd=self._store(table, location),
                parameters={},
            )
            for values, location in folders.items()
        ]
        request = types.AddPartitionsRequest(
            dbName=table.database, tblName=table.name, parts=made, ifNotExists=True, needResult=False
        )
        self._ask(table, "add_partitions_req", request)

    def drop_partitions(self, table: CatalogTable, values: Iterable[tuple[str, ...]]) -> None:
        """See `Catalog.drop_partitions`."""
        for one in values:
            with suppress(_Missing):
                self._calls.call("drop_partition", table.database, table.name, list(one), False)

    def close(self) -> None:
        """See `Catalog.close`."""
        self._calls.close()

    def _ask(self, table: CatalogTable, method: str, *arguments: Any) -> Any:
        """A call about a table that was there a moment ago."""
        try:
            return self._calls.call(method, *arguments)
        except _Missing as error:
            name = f"{table.database}.{table.name}"
            message = f"the metastore ({self._calls.place}) has no table {name} any more: somebody dropped it meanwhile"
            raise BackendRefused(message, table=name, method=method) from error

    def _store(self, table: CatalogTable, location: str = "") -> Any:
        types = self._calls.types()
        serde = types.SerDeInfo(serializationLib=SERDE, parameters={**table.serde, **SERDE_FORMAT})
        return types.StorageDescriptor(
            cols=self._list_columns(table.columns),
            location=location or table.location,
            inputFormat=table.input_format,
            outputFormat=OUTPUT_FORMAT,
            compressed=False,
            numBuckets=0,
            serdeInfo=serde,
            bucketCols=[],
            sortCols=[],
            parameters={},
            skewedInfo=types.SkewedInfo([], [], {}),
            storedAsSubDirectories=False,
        )

    def _list_columns(self, columns: Iterable[Column]) -> list[Any]:
        field = self._calls.types().FieldSchema
        return [field(name=column.name, type=column.hive_type, comment="") for column in columns]
