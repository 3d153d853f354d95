"""`ingest`: a job that brings files or messages into a table, each batch once, beside other writers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypedDict

import typer

from hudi_locks.cli.options import Json, read_options
from hudi_locks.cli.output import prints, tell
from hudi_locks.cli.spark_jobs import open_session
from hudi_locks.cli.streamer_options import STREAMER_OPTIONS, StreamerCommand, check_folder, unescape
from hudi_locks.config import (
    Options,
    check_options,
    check_schema_provider,
    compaction_keys,
    datasource_keys,
    find_source,
    ingest_keys,
    local_path,
    table_keys,
)
from hudi_locks.errors import ConfigError

__all__ = ["IngestRequest", "command"]

Source = Annotated[
    str, typer.Option(help="json, csv, parquet, avro, kafka or avro_kafka, or Hudi's class, with its package or not.")
]
Target = Annotated[str, typer.Option(help="Base path of the table, made if there is none.")]
Table = Annotated[str | None, typer.Option(help="Name of the table.")]
Props = Annotated[
    str | None, typer.Option("--props", "--config", "-c", help="A properties file with Hudi keys; file:/// too.")
]
Confs = Annotated[
    list[str] | None,
    typer.Option("--hoodie-conf", "--option", "-o", metavar="KEY=VALUE", help="A Hudi key; it wins over the file."),
]
Ordering = Annotated[
    str | None,
    typer.Option("--source-ordering-field", "--source-ordering-fields", help="The greater value of a key wins."),
]
Provider = Annotated[str | None, typer.Option(help="FilebasedSchemaProvider or SchemaRegistryProvider.")]
Identifier = Annotated[str | None, typer.Option(help="Of this job, one for each on a table.")]
Dupes = Annotated[bool, typer.Option("--filter-dupes", help="With --op INSERT: leave out rows whose key is there.")]
Limit = Annotated[int | None, typer.Option(min=1, help="At most so many messages in a batch; bytes, from files.")]
Master = Annotated[str | None, typer.Option(help="Of Spark, such as local[4]; else that of the environment.")]
AppName = Annotated[str | None, typer.Option(help="Of the Spark session.")]

_OPERATIONS: Final = ("UPSERT", "INSERT", "BULK_INSERT")
_COMPACTIONS: Final = (compaction_keys.INLINE, compaction_keys.ASYNC_ENABLE, compaction_keys.SCHEDULE_INLINE)
_ALSO: Final = "Hudi Streamer's other options are taken as it takes them, refused, or warned about: "


@dataclass(frozen=True)
class IngestRequest:
    """What a command line asks for, known to be good as far as that can be told without Spark.

    Attributes:
        path: Base path of the table.
        source: As the user named it.
        options: Hudi's keys.
        job: Fields of `hudi_locks.ingest.IngestSettings`, but the operation.
        limits: How much a batch takes: `files_per_batch`, `source_limit`.
        master: Of Spark; None for that of the environment.
        app_name: Of the Spark session.
    """

    path: str
    source: str
    options: Options
    job: Mapping[str, Any]
    limits: Mapping[str, int | None]
    master: str | None
    app_name: str


class IngestDone(TypedDict):
    """What a job did; as `hudi_locks.ingest.IngestReport`, which is not to be had without Spark.

    Attributes:
        batches: Batches written.
        skipped: Batches that were in the table before.
        rows_inserted: New rows.
        rows_updated: Rows that replaced one.
        failures: How often the stream was started again.
        instant: Requested time of the last commit; None if there was none.
    """

    batches: int
    skipped: int
    rows_inserted: int
    rows_updated: int
    failures: int
    instant: str | None


command: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@command.command(cls=StreamerCommand, epilog=_ALSO + ", ".join(sorted(STREAMER_OPTIONS)) + ".")
@prints(IngestDone)
def ingest(
    target_base_path: Target,
    source_class: Source = "JsonDFSSource",
    target_table: Table = None,
    props: Props = None,
    hoodie_conf: Confs = None,
    schemaprovider_class: Provider = None,
    op: Annotated[str, typer.Option("--op", help="UPSERT, INSERT or BULK_INSERT.")] = "UPSERT",
    filter_dupes: Dupes = False,  # noqa: FBT002
    source_ordering_field: Ordering = None,
    identifier: Identifier = None,
    checkpoint: Annotated[str | None, typer.Option(help="Folder of what was read; beside the table if absent.")] = None,
    continuous: Annotated[bool, typer.Option("--continuous", help="Go on with what comes later.")] = False,  # noqa: FBT002
    min_sync_interval_seconds: Annotated[float, typer.Option(min=0, help="Between two batches.")] = 0,
    max_retry_count: Annotated[int, typer.Option(min=0, help="Starts again after a failure.")] = 3,
    retry_interval_seconds: Annotated[float, typer.Option(min=0, help="Pause before a start again.")] = 30,
    source_limit: Limit = None,
    files_per_batch: Annotated[int | None, typer.Option(min=1, help="At most so many in a batch.")] = None,
    spark_master: Master = None,
    spark_app_name: AppName = None,
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Bring files or messages into a table, each batch exactly once.

    The options are those of Hudi Streamer. Several jobs may share a table and a properties file: give each its own
    identifier. The Spark session is that of spark-submit, else a local one.

    Example: hudi-locks ingest --target-base-path /data/trips --source-class json --props job.properties
    """
    given = read_options(hoodie_conf, unescape(props) if props else None)
    given |= {table_keys.TABLE_NAME.name: target_table} if target_table else {}
    given |= {datasource_keys.PRECOMBINE_FIELD.name: source_ordering_field} if source_ordering_field else {}
    given |= _read_operation(op, filter_dupes=filter_dupes)
    options = check_options(given | _compact_as_streamer(Options(given), is_continuous=continuous))
    _check_source(source_class, options, provider=schemaprovider_class)
    if checkpoint:
        check_folder(unescape(checkpoint))
    path = unescape(target_base_path)
    job = {
        "identifier": identifier,
        "checkpoint": unescape(checkpoint) if checkpoint else None,
        "is_continuous": continuous,
        "interval_s": min_sync_interval_seconds,
        "retries": max_retry_count,
        "retry_interval_s": retry_interval_seconds,
    }
    limits = {"files_per_batch": files_per_batch, "source_limit": source_limit}
    name = spark_app_name or f"hudi-locks ingest {path}"
    said = _run(IngestRequest(path, source_class, options, job, limits, spark_master, name))
    tell(said, ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in said.items()), as_json=as_json)


def _read_operation(op: str, *, filter_dupes: bool) -> dict[str, str]:
    if op.upper() not in _OPERATIONS:
        raise ConfigError(
            f"--op {op} is none of {', '.join(_OPERATIONS)}; what ends whole partitions is a write of its own:"
            " hudi_locks.spark.datasource.write",
            value=op,
        )
    if filter_dupes and op.upper() != "INSERT":
        message = f"--filter-dupes goes with --op INSERT: with {op.upper()} updates would be lost, or nothing left out"
        raise ConfigError(message, value=op)
    dropping = {datasource_keys.INSERT_DROP_DUPLICATES.name: "true"} if filter_dupes else {}
    return {datasource_keys.OPERATION.name: op.lower(), **dropping}


def _compact_as_streamer(options: Options, *, is_continuous: bool) -> dict[str, str]:
    """Hudi Streamer compacts a merge-on-read table unless told otherwise: on a thread when it goes on, else inline."""
    is_merged = options.get_value(datasource_keys.WRITE_TABLE_TYPE).upper() == "MERGE_ON_READ"
    if not is_merged or any(options.has(key) for key in _COMPACTIONS):
        return {}
    return {(compaction_keys.ASYNC_ENABLE if is_continuous else compaction_keys.INLINE).name: "true"}


def _check_source(source: str, options: Options, *, provider: str | None) -> None:
    """What it needs, as far as it lies on this machine; other places are asked by Spark."""
    find_source(source)
    if provider is not None:
        check_schema_provider(provider, options)
    root = options.find(ingest_keys.SOURCE_ROOT)
    if not root or not root.startswith(("/", "file:")):
        return
    if not any(Path("/").glob(local_path(root).strip("/") or ".")):
        name = options.name_used(ingest_keys.SOURCE_ROOT)
        raise ConfigError(f"{name}={root}: there is no such folder; check the path", key=name, path=root)


def _run(request: IngestRequest) -> IngestDone:
    spark = open_session(request.app_name, master=request.master)
    from hudi_locks.ingest import IngestJob, IngestSettings, find_schema, open_source
    from hudi_locks.spark.datasource import open_table, read_operation

    options = request.options
    settings = IngestSettings(operation=read_operation(options), **request.job)

    def open_rows() -> Any:
        return open_source(spark, request.source, options, schema=find_schema(options), **request.limits)

    rows = open_rows()  # before a table is made
    with open_table(spark, request.path, options) as table:
        done = IngestJob(table, rows, settings, reopen=open_rows).run()
    return IngestDone(
        batches=done.batches,
        skipped=done.skipped,
        rows_inserted=done.rows_inserted,
        rows_updated=done.rows_updated,
        failures=done.failures,
        instant=done.instant,
    )
