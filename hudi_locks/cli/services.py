"""`clean`, `savepoint` and `restore`: table services as jobs of their own, without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypedDict

import typer

from hudi_locks.cli.options import ConfigFile, Json, Settings, read_options
from hudi_locks.cli.output import print_json, prints, tell
from hudi_locks.config import service_keys
from hudi_locks.errors import ConfigError
from hudi_locks.services import (
    ArchiveResult,
    CleanResult,
    MetadataUpkeep,
    RestoreResult,
    Savepoint,
    Savepoints,
    SweepResult,
    TableWriter,
)

__all__ = ["accept_times", "clean", "restore", "savepoint"]

BasePath = Annotated[str, typer.Argument(metavar="PATH", help="Base path of the table.")]
Zone = Annotated[str | None, typer.Option("--zone", help="Time zone of a table whose timeline is in LOCAL time.")]


clean: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class CleanDone:
    """What `clean` did.

    Attributes:
        swept: Failed writes that were rolled back, and what they left.
        cleaned: Old versions of files that were removed.
        archived: Instants that left the active timeline.
        metadata_table: What was done for the metadata table.
    """

    swept: SweepResult
    cleaned: CleanResult
    archived: ArchiveResult
    metadata_table: MetadataUpkeep


@clean.command()
@prints(CleanDone)
def run_clean(
    path: BasePath,
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002  # typer's way of a flag
) -> None:
    """Roll back failed writes of a table, sweep what they left, remove old versions of files, and archive instants.

    A metadata table is compacted, cleaned and archived too, if that is due.

    Give the options that the table's writers have: the same lock provider, and what to keep.

    Example: hudi-locks clean /data/trips --props writer.properties
    """
    with TableWriter.open(path, read_options(option, config), zone=zone) as writer:
        swept = writer.services.sweep()
        cleaned = writer.services.clean()
        served = writer.services.serve_metadata_table()
        archived = writer.services.archive()
    if as_json:
        print_json(CleanDone(swept, cleaned, archived, served))
        return
    typer.echo(
        f"{path}: rolled back {len(swept.rolled_back)} failed writes, swept {len(swept.data_files)} stray data files"
        f" and {swept.leftovers} leftovers, removed {cleaned.deleted} old files, archived {archived.archived} instants"
        + (", compacted the metadata table" if served.compactions else "")
    )


savepoint: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class DeletedSavepoint(TypedDict):
    """With --delete.

    Attributes:
        instant: Requested time of the write whose savepoint is gone.
    """

    instant: str


@savepoint.command()
@prints(Savepoint | list[Savepoint] | DeletedSavepoint)
def run_savepoint(
    path: BasePath,
    instant: Annotated[
        str | None, typer.Option("--instant", help="Requested time of a write; the last if absent.")
    ] = None,
    user: Annotated[str, typer.Option("--user", help="Who makes it.")] = "",
    comments: Annotated[str, typer.Option("--comments", help="What it is for.")] = "",
    delete: Annotated[bool, typer.Option("--delete", help="Let go of the savepoint of --instant.")] = False,  # noqa: FBT002
    list_all: Annotated[bool, typer.Option("--list", help="List savepoints, and make none.")] = False,  # noqa: FBT002
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Keep what a write of a table shows, until it is deleted: no clean removes its files.

    Example: hudi-locks savepoint /data/trips --comments month-end --props writer.properties
    """
    record: Savepoint | list[Savepoint] | DeletedSavepoint
    with TableWriter.open(path, read_options(option, config), zone=zone) as writer:
        savepoints = writer.services.savepoints
        if list_all:
            found = savepoints.list()
            said, record = [_describe(one) for one in found], found
        elif delete:
            gone = _delete_savepoint(savepoints, instant)
            said, record = [f"deleted the savepoint of {gone}"], DeletedSavepoint(instant=gone)
        else:
            made = savepoints.create(instant, user=user, comments=comments)
            said = [f"the savepoint of {made.instant} keeps {made.files} files"]
            record = made
    tell(record, "\n".join(said) or "there are no savepoints", as_json=as_json)


def _describe(found: Savepoint) -> str:
    return f"{found.instant}: {found.files} files, by {found.user or 'nobody named'}: {found.comments}"


def _delete_savepoint(savepoints: Savepoints, instant: str | None) -> str:
    if instant is None:
        raise ConfigError("which savepoint? give --instant; --list shows them")
    if not savepoints.delete(instant):
        typer.echo(f"there is no savepoint of {instant}", err=True)
        raise typer.Exit(1)
    return instant


restore: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@restore.command()
@prints(RestoreResult)
def run_restore(
    path: BasePath,
    instant: Annotated[str, typer.Option("--instant", help="Requested time of the write to go back to.")],
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Take a table back to what a write showed. Every later write is undone, for good; repeat it if it dies.

    A record index is deleted first, and made anew at last.

    Example: hudi-locks restore /data/trips --instant 20261127112309302 --props writer.properties
    """
    with TableWriter.open(path, read_options(option, config), zone=zone) as writer:
        done = writer.services.restore(instant)
    said = f"{path} is back at {done.savepoint}: undid {len(done.undone)} writes, removed {done.deleted} files"
    tell(done, f"{said}{_tell_index(path, done)}", as_json=as_json)


def _tell_index(path: str, done: RestoreResult) -> str:
    if not done.dropped:
        return ""
    if done.indexed_keys is None:
        return (
            f"; {', '.join(done.dropped)} of the metadata table is deleted: make it anew with"
            f" hudi-locks metadata rebuild {path} -o {service_keys.RECORD_INDEX_ENABLE.name}=true, or with"
            f" {service_keys.PARTITION_INDEX_ENABLE.name}=true where it was one by partition"
        )
    return f"; its record index was made anew, of {done.indexed_keys} keys"


accept_times: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class AcceptedTimes(TypedDict):
    """What writers go on after.

    Attributes:
        newest: The newest time that was accepted; null if none is far ahead of the clock.
    """

    newest: str | None


@accept_times.command()
@prints(AcceptedTimes)
def run_accept_times(
    path: BasePath,
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Let writers go on after a time that is far ahead of the store's clock; their times are later from then on.

    The write that brought it is kept. To undo it, restore the table instead.

    Example: hudi-locks accept-times /data/trips --props writer.properties
    """
    with TableWriter.open(path, read_options(option, config), zone=zone) as writer:
        newest = writer.transactions.accept_times()
    said = f"{path}: writers go on after {newest}" if newest else f"{path}: no time is far ahead of the clock"
    tell(AcceptedTimes(newest=newest), said, as_json=as_json)
