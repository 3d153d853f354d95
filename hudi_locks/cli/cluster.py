"""`cluster`: clustering as a job of its own, beside the writers of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from hudi_locks.cli.options import ConfigFile, Json, Settings, read_options
from hudi_locks.cli.output import prints, tell
from hudi_locks.cli.spark_jobs import open_session
from hudi_locks.config import check_options
from hudi_locks.errors import ConfigError
from hudi_locks.services import Clustering, TableWriter
from hudi_locks.storage import open_storage
from hudi_locks.table import Table

if TYPE_CHECKING:
    from hudi_locks.spark import WriteResult

__all__ = ["command"]

BasePath = Annotated[str, typer.Argument(metavar="PATH", help="Base path of the table.")]
SortBy = Annotated[str | None, typer.Option("--sort-by", metavar="A,B", help="Columns to sort by.")]
Schedule = Annotated[bool, typer.Option("--schedule", help="Only put a plan on the timeline.")]
Run = Annotated[str | None, typer.Option("--run", metavar="INSTANT", help="Only run this plan.")]
Abort = Annotated[str | None, typer.Option("--abort", metavar="INSTANT", help="Only take this plan back.")]
List = Annotated[bool, typer.Option("--list", help="Only show the plans that wait or are under way.")]
Zone = Annotated[str | None, typer.Option("--zone", help="Time zone of a table whose timeline is in LOCAL time.")]

command: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class ClusteringStep(TypedDict, total=False):
    """What became of one plan, or how it stands; what is not known of it is left out.

    Attributes:
        instant: Requested time of the clustering.
        state: scheduled, waits, runs, died or done; of a plan that was taken back what came of that.
        completion_time: When it became visible, if it was carried out.
        file_groups: How many it wrote; of a plan that waits or is under way, how many it takes.
        file_groups_replaced: How many they replace.
        rows: How many it wrote.
        lock_held_ms: How long the table's lock was held for it, in milliseconds.
        planned_by: Of a plan that waits or is under way: hudi-locks, or a JVM writer.
    """

    instant: str
    state: str
    completion_time: str
    file_groups: int
    file_groups_replaced: int
    rows: int
    lock_held_ms: float
    planned_by: str


@command.command()
@prints(list[ClusteringStep])
def cluster(
    path: BasePath,
    sort_by: SortBy = None,
    schedule: Schedule = False,  # noqa: FBT002  # typer's way of a flag
    run: Run = None,
    abort: Abort = None,
    show: List = False,  # noqa: FBT002
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Join the small files of a table into large, sorted ones.

    Runs the plan that waits, or makes one and runs it. Give the options that the table's writers have, above all the
    same lock provider. The Spark session is that of spark-submit, else a local one.

    Example: hudi-locks cluster /data/trips --props writer.properties --sort-by city,ts
    """
    if sum([schedule, bool(run), bool(abort), show]) > 1:
        raise ConfigError("--schedule, --run, --abort and --list exclude each other: give one of them")
    options = read_options(option, config)
    columns = None if sort_by is None else [name.strip() for name in sort_by.split(",") if name.strip()]
    if schedule or abort or show:
        with TableWriter.open(path, options, zone=zone) as writer:
            said = _decide(writer.clustering(sort_by=columns), schedule=schedule, abort=abort)
    else:
        said = _describe(_run_job(path, options, run=run, columns=columns, zone=zone))
    tell(said, "\n".join(map(_phrase, said)) or "there is nothing to do", as_json=as_json)


def _decide(clustering: Clustering, *, schedule: bool, abort: str | None) -> list[ClusteringStep]:
    if schedule:
        planned = clustering.schedule()
        return [] if planned is None else [{"instant": planned, "state": "scheduled"}]
    if abort:
        return [{"instant": abort, "state": clustering.abort(abort).value.lower()}]
    pending = clustering.list_pending(clustering.table.timeline())
    states = {one.instant: "waits" if not one.is_begun else "runs" if one.is_alive else "died" for one in pending}
    return [
        {
            "instant": one.instant,
            "state": states[one.instant],
            "file_groups": len(one.plan.file_groups),
            "planned_by": "hudi-locks" if one.is_ours else "a JVM writer",
        }
        for one in pending
    ]


def _run_job(
    path: str, options: Mapping[str, str], *, run: str | None, columns: list[str] | None, zone: str | None
) -> WriteResult | None:
    check_options({**options, "hoodie.base.path": path})
    Table.load(open_storage(path), zone=zone)  # before a JVM is started for nothing
    spark = open_session(f"hudi-locks cluster {path}")
    from hudi_locks.spark import HoodieTable

    with HoodieTable.load(spark, path, options=options, zone=zone) as table:
        return table.clustering.execute(run) if run else table.clustering.run(sort_by=columns)


def _describe(result: WriteResult | None) -> list[ClusteringStep]:
    if result is None:
        return []
    return [
        {
            "instant": result.instant,
            "state": "done",
            "completion_time": result.completion_time,
            "file_groups": result.file_groups,
            "file_groups_replaced": result.file_groups_replaced,
            "rows": result.rows_written,
            "lock_held_ms": result.lock_held_ms,
        }
    ]


def _phrase(said: ClusteringStep) -> str:
    facts = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in said.items() if name != "instant")
    return f"clustering {said['instant']}: {facts}"
