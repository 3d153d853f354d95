"""AWS Glue's data catalog, asked by boto3."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from hudi_locks.catalog import OUTPUT_FORMAT, SERDE, SERDE_FORMAT, CatalogEntry, CatalogTable, Column, cut
from hudi_locks.config import Options, catalog_keys
from hudi_locks.errors import BackendRefused, BackendUnavailable
from hudi_locks.lock import import_extra
from hudi_locks_providers._aws import drop_user, open_session

__all__ = ["GlueCatalog"]

_PROVIDER: Final = "glue"
_MOST_ADDED: Final = 100
_MOST_DROPPED: Final = 25
"""Partitions that one request of Glue takes."""
_KEPT: Final = ("Description", "Owner", "Retention", "PartitionKeys", "TableType")
"""What Glue tells of a table and takes back as it is."""


class GlueCatalog:
    """Tables of AWS Glue, as JVM Hudi's `AwsGlueCatalogSyncTool` makes them there.

    Needs the packages of `hudi-locks[glue]`. Tried against moto alone, not against AWS.

    Args:
        options: For credentials and role (`hoodie.aws.*`), region, endpoint and account.
    """

    def __init__(self, options: Options) -> None:
        session = open_session(options, provider=_PROVIDER, region=options.find(catalog_keys.GLUE_REGION))
        self._errors = import_extra("botocore.exceptions", provider=_PROVIDER)
        try:
            endpoint = options.find(catalog_keys.GLUE_ENDPOINT)
            self._client = session.client("glue", endpoint_url=endpoint and drop_user(endpoint))
        except self._errors.NoRegionError as error:
            key = catalog_keys.GLUE_REGION.name
            raise BackendRefused(f"no region of AWS Glue is named: give {key}, or AWS_REGION") from error
        account = options.find(catalog_keys.GLUE_CATALOG)
        self._account = {"CatalogId": account} if account else {}
        self._skips_archive = options.get_value(catalog_keys.GLUE_SKIP_ARCHIVE)

    def create_database(self, name: str) -> None:
        """See `Catalog.create_database`."""
        if self._ask("get_database", Name=name) is None:
            self._ask("create_database", DatabaseInput={"Name": name, "Description": "made by hudi-locks"})

    def find(self, database: str, name: str) -> CatalogEntry | None:
        """See `Catalog.find`."""
        found = self._ask("get_table", DatabaseName=database, Name=name)
        if found is None:
            return None
        store = found["Table"]["StorageDescriptor"]
        columns = tuple((column["Name"], column["Type"]) for column in store["Columns"])
        return CatalogEntry(store["Location"], columns, dict(found["Table"].get("Parameters", {})))

    def create(self, table: CatalogTable) -> None:
        """See `Catalog.create`."""
        made = {
            "Name": table.name,
            "TableType": "EXTERNAL_TABLE",
            "StorageDescriptor": self._describe_store(table, table.location),
            "PartitionKeys": _list_columns(table.partition_columns),
            "Parameters": {"EXTERNAL": "TRUE", **table.properties},
        }
        if self._ask("create_table", DatabaseName=table.database, TableInput=made) is None:
            self._refuse_missing(table)

    def _refuse_missing(self, table: CatalogTable) -> None:
        key = catalog_keys.CREATE_DATABASE.name
        message = f"there is no database {table.database}: make it, or leave {key} at true"
        raise BackendRefused(message, database=table.database)

    def alter(self, table: CatalogTable, properties: Mapping[str, str]) -> None:
        """See `Catalog.alter`. Partitions keep the columns that they had; readers of Hudi do not ask them."""
        found = self._ask("get_table", DatabaseName=table.database, Name=table.name)
        if found is None:
            self._refuse_missing(table)
        known: Mapping[str, Any] = (found or {})["Table"]
        changed = {
            **{name: known[name] for name in _KEPT if name in known},
            "Name": table.name,
            "StorageDescriptor": {**known["StorageDescriptor"], **self._describe_store(table, table.location)},
            "Parameters": table.merge_properties(known["Parameters"], properties),
        }
        self._ask("update_table", DatabaseName=table.database, TableInput=changed, SkipArchive=self._skips_archive)

    def list_partitions(self, table: CatalogTable) -> Mapping[tuple[str, ...], str]:
        """See `Catalog.list_partitions`."""
        named: dict[str, Any] = {"DatabaseName": table.database, "TableName": table.name, "ExcludeColumnSchema": True}
        found: dict[tuple[str, ...], str] = {}
        following: dict[str, str] = {}
        while True:
            answer = self._ask("get_partitions", **named, **following) or {}
            pages = answer.get("Partitions", [])
            found |= {tuple(one["Values"]): one["StorageDescriptor"]["Location"] for one in pages}
            if not (token := answer.get("NextToken")):
                return found
            following = {"NextToken": token}

    def add_partitions(self, table: CatalogTable, folders: Mapping[tuple[str, ...], str]) -> None:
        """See `Catalog.add_partitions`."""
        made = [
            {"Values": list(values), "StorageDescriptor": self._describe_store(table, location)}
            for values, location in folders.items()
        ]
        for batch in cut(made, _MOST_ADDED):
            self._ask_for_partitions("batch_create_partition", table, PartitionInputList=batch)

    def drop_partitions(self, table: CatalogTable, values: Iterable[tuple[str, ...]]) -> None:
        """See `Catalog.drop_partitions`."""
        for batch in cut([{"Values": list(one)} for one in values], _MOST_DROPPED):
            self._ask_for_partitions("batch_delete_partition", table, PartitionsToDelete=batch)

    def close(self) -> None:
        """See `Catalog.close`."""
        self._client.close()

    def _ask_for_partitions(self, operation: str, table: CatalogTable, **words: Any) -> None:
        answer = self._ask(operation, DatabaseName=table.database, TableName=table.name, **words)
        if answer is None:
            message = f"AWS Glue has no table {table.database}.{table.name} any more: somebody dropped it meanwhile"
            raise BackendRefused(message, table=f"{table.database}.{table.name}")
        failed = [one for one in answer.get("Errors", []) if _name_error(one) not in _AS_WANTED]
        if failed:
            detail = failed[0]["ErrorDetail"]
            raise BackendRefused(
                f"AWS Glue does not do {operation} for the partition {failed[0]['PartitionValues']}:"
                f" {detail.get('ErrorCode')}: {detail.get('ErrorMessage')}",
                operation=operation,
                partitions=len(failed),
            )

    def _ask(self, operation: str, **words: Any) -> Mapping[str, Any] | None:
        """One request; None where what it names is not there, and an empty answer where it is there already."""
        try:
            answer: Mapping[str, Any] = getattr(self._client, operation)(**self._account, **words)
        except self._errors.ClientError as error:
            return self._read_refusal(operation, error)
        except self._errors.BotoCoreError as error:
            raise BackendUnavailable(f"AWS Glue did not answer {operation}: {error}", operation=operation) from error
        return answer

    def _read_refusal(self, operation: str, error: Any) -> Mapping[str, Any] | None:
        told = error.response["Error"]
        if told["Code"] == "EntityNotFoundException":
            return None
        if told["Code"] == "AlreadyExistsException":
            return {}
        message = f"AWS Glue refuses {operation}: {told['Code']}: {told.get('Message', '')}"
        raise BackendRefused(message, operation=operation, code=told["Code"]) from error

    @staticmethod
    def _describe_store(table: CatalogTable, location: str) -> dict[str, Any]:
        serde = {"SerializationLibrary": SERDE, "Parameters": {**table.serde, **SERDE_FORMAT}}
        return {
            "Columns": _list_columns(table.columns),
            "Location": location,
            "InputFormat": table.input_format,
            "OutputFormat": OUTPUT_FORMAT,
            "SerdeInfo": serde,
        }


_AS_WANTED: Final = ("AlreadyExistsException", "EntityNotFoundException")
"""Answers for single partitions that say that they are as they were to be."""


def _name_error(failed: Mapping[str, Any]) -> str:
    return str(failed["ErrorDetail"].get("ErrorCode"))


def _list_columns(columns: Sequence[Column]) -> list[dict[str, str]]:
    return [{"Name": column.name, "Type": column.hive_type, "Comment": ""} for column in columns]
