"""`timeline`: what happened to a table lately, and who did it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table as Columns

from hudi_locks.cli.options import ConfigFile, Json, Settings, read_options
from hudi_locks.cli.output import open_console, print_json, prints
from hudi_locks.cli.picture import draw_timeline
from hudi_locks.cli.services import BasePath, Zone
from hudi_locks.clock import SystemClock
from hudi_locks.display import say_time
from hudi_locks.errors import ConfigError
from hudi_locks.services.activity import Activity, list_activity
from hudi_locks.storage import open_storage
from hudi_locks.table import Table

__all__ = ["command"]

_LOOK_S: Final = 1.0
_COLUMNS: Final = ("instant", "begun", "action", "operation", "rows", "file groups", "took", "lock", "writer")
_Last = Annotated[int, typer.Option("--last", "-n", metavar="NUMBER", help="So many of the newest instants.", min=1)]
_Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on with what happens from now on, until Ctrl-C.")]
_Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write them to this file as a page with a picture, a bar for each."),
]

command: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@command.command()
@prints(Activity)
def run_timeline(
    path: BasePath,
    last: _Last = 20,
    follow: _Follow = False,  # noqa: FBT002  # typer's way of a flag
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002
    html: _Html = None,
) -> None:
    """List the newest instants of a table: what they did, how long they took, and who made them. Changes nothing.

    Times are in UTC. Who made an instant is known of writers of this package, and so is how long they waited for the
    lock of the table and held it, to begin and to publish. With --json each instant is an object
    on a line of its own; with --follow one more each time that its state changes. With --html a browser shows them,
    a line for each writer; the page loads nothing and runs nothing.

    Example: hudi-locks timeline /data/trips -n 20 --follow
    """
    if html is not None and (follow or as_json):
        raise ConfigError("--html writes one page: leave --follow and --json out")
    table = Table.load(open_storage(path, read_options(option, config)), zone=zone)
    if html is not None:
        _write_page(table, html, last=last)
        return
    known: set[tuple[str, str, str]] = set()
    with suppress(KeyboardInterrupt):
        while True:
            news = list_activity(table, last=last, known=known)
            known.update(one.identity for one in news)
            _print(news, as_json=as_json)
            if not follow:
                return
            SystemClock().sleep(_LOOK_S)


def _write_page(table: Table, file: Path, *, last: int) -> None:
    page = draw_timeline(table.storage.base, list_activity(table, last=last), now_ms=SystemClock().wall_ms())
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        message = f"--html={file} cannot be written ({error.strerror}); name a file in a folder that you may write to"
        raise ConfigError(message, path=str(file)) from error
    typer.echo(f"The picture is in {file.resolve()}")


def _print(found: Iterable[Activity], *, as_json: bool) -> None:
    if as_json:
        for one in found:
            print_json(one)
        return
    rows = [_describe(one) for one in found]
    if rows:
        columns = Columns(
            "instant", "begun", "action", "operation", "rows", "file groups", "took", "lock", "writer", box=None
        )
        for row in rows:
            columns.add_row(*row)
        open_console().print(columns)


def _describe(one: Activity) -> tuple[str, ...]:
    begun = say_time(one.began_ms).removesuffix("+00:00")
    took = "" if one.completed_ms is None else f"{max(0, one.completed_ms - one.began_ms) / 1000:.1f} s"
    counts = (("+", one.rows_inserted), ("~", one.rows_updated), ("-", one.rows_deleted))
    rows = " ".join(f"{sign}{number}" for sign, number in counts if number)
    state = one.action if one.state == "COMPLETED" else f"{one.action}, {one.state.lower()}"
    groups = str(one.file_groups) if one.file_groups else ""
    token = "" if one.fencing_token is None else f", token {one.fencing_token}"
    return one.requested, begun, state, one.operation, rows, groups, took, _say_lock(one), one.writer + token


def _say_lock(one: Activity) -> str:
    if one.lock_wait_ms is None or one.lock_held_ms is None:
        return ""
    return f"waited {one.lock_wait_ms / 1000:.2f} s, held {one.lock_held_ms / 1000:.2f} s"
