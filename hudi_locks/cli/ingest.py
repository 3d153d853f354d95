"""`ingest`: a job that brings files or messages into a table, each batch once, beside other writers."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hudi_locks.cli.options import Json, Settings, read_options
from hudi_locks.cli.spark_jobs import check_spark, open_session
from hudi_locks.config import Options, check_options, ingest_keys
from hudi_locks.errors import ConfigError

if TYPE_CHECKING:
    from hudi_locks.ingest import IngestSettings

__all__ = ["command"]

Source = Annotated[str, typer.Option("--source-class", help="json, csv, parquet or kafka, or Hudi's class name.")]
Target = Annotated[str, typer.Option("--target-base-path", help="Base path of the table, made if there is none.")]
Table = Annotated[str | None, typer.Option("--target-table", help="Name of the table.")]
Props = Annotated[
    Path | None, typer.Option("--props", "--config", "-c", exists=True, help="A Java properties file with Hudi keys.")
]
Ordering = Annotated[str | None, typer.Option("--source-ordering-field", help="The greater value of a key wins.")]
Identifier = Annotated[str | None, typer.Option("--identifier", help="Of this job, one for each on a table.")]

command = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@command.command()
def ingest(
    target_base_path: Target,
    source_class: Source,
    target_table: Table = None,
    props: Props = None,
    option: Settings = None,
    op: Annotated[str, typer.Option("--op", help="UPSERT, INSERT or BULK_INSERT.")] = "UPSERT",
    source_ordering_field: Ordering = None,
    identifier: Identifier = None,
    checkpoint: Annotated[str | None, typer.Option(help="Folder of what was read; beside the table if absent.")] = None,
    continuous: Annotated[bool, typer.Option("--continuous", help="Go on with what comes later.")] = False,  # noqa: FBT002
    min_sync_interval_seconds: Annotated[float, typer.Option(min=0, help="Between two batches.")] = 0,
    max_retry_count: Annotated[int, typer.Option(min=0, help="Starts again after a failure.")] = 3,
    retry_interval_seconds: Annotated[float, typer.Option(min=0, help="Pause before a start again.")] = 30,
    files_per_batch: Annotated[int | None, typer.Option(min=1, help="At most so many in a batch.")] = None,
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Bring files or messages into a table, each batch exactly once.

    The options are those of Hudi Streamer. Several jobs may share a table and a properties file: give each its own
    identifier. The Spark session is that of spark-submit, else a local one.
    """
    given = read_options(option, props)
    given |= {"hoodie.table.name": target_table} if target_table else {}
    given |= {"hoodie.datasource.write.precombine.field": source_ordering_field} if source_ordering_field else {}
    options = check_options(given)
    _check_root(options)
    check_spark()
    from hudi_locks.ingest import IngestSettings
    from hudi_locks.spark.datasource import read_operation

    settings = IngestSettings(
        operation=read_operation(options | {"hoodie.datasource.write.operation": op.lower()}),
        identifier=identifier,
        checkpoint=checkpoint,
        is_continuous=continuous,
        interval_s=min_sync_interval_seconds,
        retries=max_retry_count,
        retry_interval_s=retry_interval_seconds,
    )
    said = _run(target_base_path, source_class, dict(options), settings=settings, files_per_batch=files_per_batch)
    typer.echo(json.dumps(said) if as_json else ", ".join(f"{name.replace('_', ' ')} {said[name]}" for name in said))


def _check_root(options: Options) -> None:
    """Where the files lie on this machine; other places are asked by Spark."""
    root = options.find(ingest_keys.SOURCE_ROOT)
    if root and root.startswith("/") and not any(Path("/").glob(root.strip("/") or ".")):
        name = options.name_used(ingest_keys.SOURCE_ROOT)
        raise ConfigError(f"{name}={root}: there is no such folder; check the path", key=name, path=root)


def _run(
    path: str, source: str, options: dict[str, str], *, settings: IngestSettings, files_per_batch: int | None
) -> dict[str, object]:
    spark = open_session(f"hudi-locks ingest {path}")
    from hudi_locks.ingest import IngestJob, find_schema, open_source
    from hudi_locks.spark.datasource import open_table

    checked = Options(options)
    schema = find_schema(checked)
    rows = open_source(spark, source, checked, schema=schema, files_per_batch=files_per_batch)
    with open_table(spark, path, checked) as table:
        return asdict(IngestJob(table, rows, settings).run())
