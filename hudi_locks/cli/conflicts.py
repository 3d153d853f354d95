"""`conflicts`: which jobs met on a table, how often, and what it cost them."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table as Columns

from hudi_locks.cli.options import ConfigFile, Json, Settings, read_options
from hudi_locks.cli.output import open_console, print_json, prints
from hudi_locks.cli.services import BasePath, Zone
from hudi_locks.services.met_conflicts import ConflictSummary, list_conflicts
from hudi_locks.storage import open_storage
from hudi_locks.table import Table

__all__ = ["command"]

_Last = Annotated[int, typer.Option("--last", "-n", metavar="NUMBER", help="So many of the newest commits.", min=1)]
_Each = Annotated[bool, typer.Option("--each", help="List each conflict, not only the jobs that met.")]

command: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@command.command()
@prints(ConflictSummary)
def run_conflicts(
    path: BasePath,
    last: _Last = 1000,
    each: _Each = False,  # noqa: FBT002  # typer's way of a flag
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """List which jobs met in conflicts on a table, how often, and how much time it cost. Changes nothing.

    A commit keeps the conflicts that its write met before it was published. A write or table service that gave up
    leaves a record of them, of which a table keeps the newest 200. Writes of JVM writers keep none. Archived commits
    are not looked at.

    Example: hudi-locks conflicts /data/trips -n 200 --each
    """
    found = list_conflicts(Table.load(open_storage(path, read_options(option, config)), zone=zone), last=last)
    if as_json:
        print_json(found)
        return
    if found.jobs:
        open_console().print(_list_each(found) if each else _list_jobs(found))
    typer.echo(f"{found.met} of the newest {found.commits} commits met a conflict{_say_given_up(found)}")


def _say_given_up(found: ConflictSummary) -> str:
    services = len({one.instant for one in found.conflicts if one.service})
    counts = {"write": found.given_up - services, "table service": services}
    named = " and ".join(f"{count} {what}{'s' * (count > 1)}" for what, count in counts.items() if count)
    return f", and {named} met one and gave up" if named else ""


def _list_jobs(found: ConflictSummary) -> Columns:
    names = ("job", "gave way to", "conflicts", "early", "rewritten", "gave up", "lost", "last")
    columns = Columns(*names, box=None)
    for one in found.jobs:
        counts = map(str, (one.conflicts, one.early, one.rewritten, one.given_up))
        columns.add_row(one.job, one.other_job, *counts, _say_s(one.lost_ms), one.last)
    return columns


def _list_each(found: ConflictSummary) -> Columns:
    columns = Columns("write", "by", "gave way to", "by", "partition", "found", "lost", "", box=None)
    for one in found.conflicts:
        other = f"{one.other_action} {one.other}"
        where = "" if one.partition is None else one.partition
        lost = _say_s(one.lost_ms)
        columns.add_row(one.instant, one.writer, other, one.other_writer, where, one.found, lost, one.ending)
    return columns


def _say_s(lost_ms: int) -> str:
    return f"{lost_ms / 1000:.1f} s"
