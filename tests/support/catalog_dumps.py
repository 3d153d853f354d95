"""What a Hive Metastore has of a table, in a form that two of them can be compared by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hudi_locks_providers._hive.connections import MetastoreConnections

from hudi_locks.config import Options, catalog_keys

__all__ = ["Metastore"]

_BY_THE_SERVICE = ("transient_lastDdlTime", "totalSize", "numFiles")
"""What the metastore adds by itself."""
_OF_THE_JVM = ("hudi_writer_version",)
_SCHEMA = "spark.sql.sources.schema.part."


class Metastore:
    """A client that only looks."""

    def __init__(self, uris: str) -> None:
        self._calls = MetastoreConnections(Options({catalog_keys.URIS.name: uris}), catalog_keys.URIS)

    def list_tables(self, database: str) -> list[str]:
        return sorted(self._calls.call("get_all_tables", database))

    def rename_partition(self, database: str, name: str, values: tuple[str, ...], to: tuple[str, ...]) -> None:
        """As somebody else might."""
        found = self._calls.call("get_partition", database, name, list(values))
        found.values = list(to)
        self._calls.call("rename_partition", database, name, list(values), found)

    def dump(self, database: str, name: str) -> dict[str, Any]:
        """The table, its columns as Spark reads them, and its partitions."""
        found = self._calls.call("get_table", database, name)
        kept = {key: text for key, text in found.parameters.items() if key not in (*_BY_THE_SERVICE, *_OF_THE_JVM)}
        pieces = sorted((key for key in kept if key.startswith(_SCHEMA)), key=lambda key: int(key.rpartition(".")[2]))
        schema = "".join(kept.pop(key) for key in pieces)
        partitions = self._calls.call("get_partitions", database, name, -1)
        return {
            "kind": (found.tableType, found.owner, found.retention),
            "properties": kept,
            "pieces": len(pieces),
            "schema": json.loads(schema) if schema else None,
            "partition columns": [(one.name, one.type, one.comment) for one in found.partitionKeys],
            "store": _describe_store(found.sd),
            "partitions": {tuple(one.values): _describe_store(one.sd) for one in partitions},
        }


def _describe_store(store: Any) -> Mapping[str, Any]:
    serde = store.serdeInfo
    plain = {name: value for name, value in vars(store).items() if name not in ("cols", "serdeInfo", "skewedInfo")}
    columns = [(column.name, column.type, column.comment) for column in store.cols]
    return {**plain, "columns": columns, "serde": (serde.serializationLib, dict(serde.parameters))}
