"""`table`: what a table is, and how it does, on one screen."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import typer
from rich.table import Table as Columns

from hudi_locks.cli.options import ConfigFile, Json, Settings, read_options
from hudi_locks.cli.output import open_console, print_json, prints
from hudi_locks.cli.services import BasePath, Zone
from hudi_locks.display import say_time
from hudi_locks.services.overview import PendingInstant, TableOverview, look_over
from hudi_locks.storage import open_storage
from hudi_locks.table import Table

__all__ = ["command"]

command: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@command.command()
@prints(TableOverview)
def run_table(
    path: BasePath,
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002  # typer's way of a flag
) -> None:
    """Show what a table is, how many files it has, and what is under way. Changes nothing, and takes no lock.

    Example: hudi-locks table /data/trips
    """
    options = read_options(option, config)
    found = look_over(Table.load(open_storage(path, options), zone=zone), options)
    if as_json:
        print_json(found)
        return
    columns = Columns(show_header=False, box=None)
    for name, value in (*_describe(found), *_describe_activity(found)):
        columns.add_row(name, value or "none")
    open_console().print(columns)


def _describe(found: TableOverview) -> Iterator[tuple[str, str]]:
    settings, files = found.settings, found.files
    yield "table", f"{settings.name} at {found.path}"
    yield "type", f"{settings.table_type}, version {settings.version}"
    yield "columns", ", ".join(found.columns)
    yield "record key", ", ".join(settings.record_key)
    yield "partitions", f"{', '.join(settings.partitioned_by) or 'none'} ({settings.key_generator})"
    yield "rows of one key", ", ".join((settings.merge_mode, *settings.ordering))
    yield "index", settings.index or "as its writers say"
    yield "metadata table", ", ".join(settings.metadata_parts)
    yield "change logs", settings.change_logs
    yield "files", f"{files.file_groups} file groups in {files.partitions} partitions, {_say_size(files.base_bytes)}"
    yield "small files", str(files.small_files)
    yield "logs", f"{files.logs}, {_say_size(files.log_bytes)}" if files.logs else ""


def _describe_activity(found: TableOverview) -> Iterator[tuple[str, str]]:
    yield "last write", say_time(found.last_completed_ms)
    yield "instants", f"{found.instants} active, {len(found.pending)} pending"
    for instant in found.pending:
        yield "", _say_pending(instant)
    yield "savepoints", ", ".join(found.savepoints)
    yield "left behind", f"markers of {found.marker_folders} instants" if found.marker_folders else ""
    yield "claim log", f"{found.claims} entries" if found.claims else "none: only JVM writers wrote"


def _say_pending(instant: PendingInstant) -> str:
    age, beat_ms = timedelta(seconds=instant.age_ms // 1000), instant.heartbeat_age_ms
    alive = "no sign of life" if beat_ms is None else f"alive {timedelta(seconds=beat_ms // 1000)} ago"
    by = f" by {instant.writer}" if instant.writer else ""
    return f"{instant.requested} {instant.action}, {instant.state.lower()}, begun {age} ago{by}, {alive}"


def _say_size(number: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"
