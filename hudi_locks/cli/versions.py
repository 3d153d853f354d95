"""`upgrade` and `downgrade`: a table becomes one of another table version, as a job of its own, without Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from hudi_locks.cli.options import ConfigFile, Json, Settings, read_options
from hudi_locks.cli.output import prints, tell
from hudi_locks.cli.services import BasePath, Zone
from hudi_locks.services import VersionChange, downgrade_table, upgrade_table

__all__ = ["downgrade", "upgrade"]

upgrade: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
downgrade: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@upgrade.command()
@prints(VersionChange)
def run_upgrade(
    path: BasePath,
    to: Annotated[int, typer.Option("--to", help="Table version: 8 is Hudi 1.0, 9 is Hudi 1.1 and later.")] = 9,
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002  # typer's way of a flag
) -> None:
    """Make of a table one of a later table version, under its lock. No row, commit or time changes.

    Give the options of the table's writers, their lock's among them. Stop its writers before, and start them anew
    after, so that none goes on as before: while a write is under way nothing is done. Queries that have begun go on. A
    metadata table is made anew. If it dies, repeat it.

    Example: hudi-locks upgrade /data/trips --to 9 --props writer.properties
    """
    done = upgrade_table(path, read_options(option, config), to=to, zone=zone)
    tell(done, _describe(path, done), as_json=as_json)


@downgrade.command()
@prints(VersionChange)
def run_downgrade(
    path: BasePath,
    to: Annotated[int, typer.Option("--to", help="Table version: 8 is Hudi 1.0, 6 is Hudi 0.14 and 0.15.")],
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Make of a table one of an earlier table version, under its lock. No row or commit changes.

    For what it takes and does see `upgrade`. A merge-on-read table that goes to version 6 is to be compacted before.
    There an instant was completed when its file was written: on an object store, at the time of the downgrade.

    Example: hudi-locks downgrade /data/trips --to 6 --props writer.properties
    """
    done = downgrade_table(path, read_options(option, config), to=to, zone=zone)
    tell(done, _describe(path, done), as_json=as_json)


def _describe(path: str, done: VersionChange) -> str:
    if done.before == done.after:
        return f"{path}: it is of version {done.after} already"
    said = [f"{path}: version {done.before} became {done.after}; rows are merged by {done.merge_mode}"]
    if done.instants or done.archived:
        said.append(f"{done.instants} instants of its timeline and {done.archived} archived ones were brought over")
    if done.dropped:
        made = f"made anew with {', '.join(done.made)}" if done.made else "JVM writers make it anew if asked for it"
        said.append(f"its metadata table ({', '.join(done.dropped)}) was deleted; {made}")
    said += [f"warning: {warning}" for warning in done.warnings]
    said.append("start its writers anew, and open it anew where it is read")
    return "\n".join(said)
