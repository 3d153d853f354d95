"""`compact`: compaction as a job of its own, beside the writers of a merge-on-read table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from hudi_locks.cli.options import ConfigFile, Json, Settings, read_options
from hudi_locks.cli.output import prints, tell
from hudi_locks.cli.spark_jobs import open_session
from hudi_locks.config import check_options
from hudi_locks.errors import ConfigError
from hudi_locks.services import TableWriter
from hudi_locks.storage import open_storage
from hudi_locks.table import Table

if TYPE_CHECKING:
    from hudi_locks.spark import WriteResult

__all__ = ["command"]

BasePath = Annotated[str, typer.Argument(metavar="PATH", help="Base path of the table.")]
Schedule = Annotated[bool, typer.Option("--schedule", help="Only put a plan on the timeline.")]
Run = Annotated[str | None, typer.Option("--run", metavar="INSTANT", help="Only run this plan.")]
Abort = Annotated[str | None, typer.Option("--abort", metavar="INSTANT", help="Only take this plan back.")]
Logs = Annotated[bool, typer.Option("--logs", help="Merge logs into larger logs; base files stay.")]
Zone = Annotated[str | None, typer.Option("--zone", help="Time zone of a table whose timeline is in LOCAL time.")]

command: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class CompactionStep(TypedDict, total=False):
    """What became of one plan; what is not known of it is left out.

    Attributes:
        instant: Requested time of the compaction.
        state: scheduled or done; of a plan that was taken back what came of that.
        completion_time: When it became visible, if it was carried out.
        file_groups: How many it wrote.
        rows: How many it wrote.
    """

    instant: str
    state: str
    completion_time: str
    file_groups: int
    rows: int


@command.command()
@prints(list[CompactionStep])
def compact(
    path: BasePath,
    schedule: Schedule = False,  # noqa: FBT002  # typer's way of a flag
    run: Run = None,
    abort: Abort = None,
    logs: Logs = False,  # noqa: FBT002
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Merge the logs of a merge-on-read table into base files, while others write.

    Runs the plan that waits, or makes one and runs it. Give the options that the table's writers have, above all the
    same lock provider. The Spark session is that of spark-submit, else a local one. With --logs only logs are merged,
    of file slices that have many, and only while no write is under way.

    Example: hudi-locks compact /data/trips --props writer.properties
    """
    if sum([schedule, bool(run), bool(abort)]) > 1:
        raise ConfigError("--schedule, --run and --abort exclude each other: give one of them")
    options = read_options(option, config)
    if schedule or abort:
        said = _decide(path, options, abort=abort, logs=logs, zone=zone)
    else:
        said = _describe(_run_job(path, options, run=run, logs=logs, zone=zone))
    name = "log compaction" if logs else "compaction"
    tell(said, "\n".join(_phrase(name, one) for one in said) or "there is nothing to do", as_json=as_json)


def _decide(
    path: str, options: Mapping[str, str], *, abort: str | None, logs: bool, zone: str | None
) -> list[CompactionStep]:
    """What needs no executors needs no Spark."""
    with TableWriter.open(path, options, zone=zone) as writer:
        compaction = writer.log_compaction if logs else writer.compaction
        if abort:
            return [{"instant": abort, "state": compaction.abort(abort).value.lower()}]
        planned = compaction.schedule()
    return [] if planned is None else [{"instant": planned, "state": "scheduled"}]


def _run_job(
    path: str, options: Mapping[str, str], *, run: str | None, logs: bool, zone: str | None
) -> WriteResult | None:
    check_options({**options, "hoodie.base.path": path})
    Table.load(open_storage(path), zone=zone)  # before a JVM is started for nothing
    spark = open_session(f"hudi-locks compact {path}")
    from hudi_locks.spark import HoodieTable

    with HoodieTable.load(spark, path, options=options, zone=zone) as table:
        service = table.log_compaction if logs else table.compaction
        return service.execute(run) if run else service.run()


def _describe(result: WriteResult | None) -> list[CompactionStep]:
    if result is None:
        return []
    made = CompactionStep(instant=result.instant, state="done", completion_time=result.completion_time)
    return [{**made, "file_groups": result.file_groups, "rows": result.rows_written}]


def _phrase(name: str, said: CompactionStep) -> str:
    facts = ", ".join(f"{fact.replace('_', ' ')} {value}" for fact, value in said.items() if fact != "instant")
    return f"{name} {said['instant']}: {facts}"
