"""`sync`: a catalog is brought up to date with a table, as a job of its own, without Spark."""

from __future__ import annotations

import typer

from hudi_locks.catalog import CatalogSync, SyncResult, SyncSettings, choose_tools
from hudi_locks.cli.options import ConfigFile, Json, Settings, read_options
from hudi_locks.cli.output import prints, tell
from hudi_locks.cli.services import BasePath, Zone
from hudi_locks.config import Options, catalog_keys
from hudi_locks.errors import ConfigError
from hudi_locks.storage import open_storage
from hudi_locks.table import Table

__all__ = ["command"]

command: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@command.command()
@prints(list[SyncResult])
def run_sync(
    path: BasePath,
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002  # typer's way of a flag
) -> None:
    """Tell a Hive Metastore, or AWS Glue, of a table's columns and partitions, as a write with the same options does.

    For what such writes did not tell: those of before, a restore, or a catalog that was made anew. Takes no lock, and
    changes nothing in the table. The metastore is that of hive-site.xml unless an option names one. For AWS Glue name
    its tool: -o hoodie.meta.sync.client.tool.class=org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool

    Exit status: 0 the catalog is up to date; 1 it could not be reached, or refused; 2 the command line is wrong.

    Example: hudi-locks sync /data/trips -o hoodie.datasource.hive_sync.metastore.uris=thrift://metastore:9083
    """
    given = Options(read_options(option, config))
    tools = given.find(catalog_keys.SYNC_TOOLS)
    wanted = catalog_keys.META_SYNC_ENABLE if tools else catalog_keys.HIVE_SYNC_ENABLE
    asked = Options({catalog_keys.MODE.name: catalog_keys.HMS, **given, wanted.name: "true"})
    kinds, refused = choose_tools(asked)
    if refused:
        raise ConfigError("; ".join(refused), tools=tools)
    table = Table.load(open_storage(path, given), zone=zone)
    results = [CatalogSync(table, SyncSettings.of(asked, table.config, kind=kind)).run() for kind in kinds]
    tell(results, "\n".join(map(_describe, results)), as_json=as_json)


def _describe(result: SyncResult) -> str:
    if not result.tables:
        return "nothing was written to the table yet, so that there are no columns to tell of"
    partitions = f"{result.partitions_told} partitions told, {result.partitions_dropped} dropped"
    return f"{', '.join(result.tables)}: up to date; {partitions}"
