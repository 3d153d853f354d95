"""`metadata`: makes the metadata table of a table, tells whether it is right, and gets rid of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final, TypedDict

import typer

from hudi_locks.cli.options import ConfigFile, Json, Settings, read_options
from hudi_locks.cli.output import print_json, prints, tell
from hudi_locks.cli.services import BasePath, Zone
from hudi_locks.services import MetadataMade, TableWriter, drop_metadata_table
from hudi_locks.storage import open_storage
from hudi_locks.verification import VerificationRecord, verify_table

__all__ = ["command"]

_KIND: Final = "metadata-table"
_DAMAGED: Final = 1

_Parts = Annotated[
    list[str] | None, typer.Option("--part", metavar="NAME", help="Only this part, such as record_index; repeatable.")
]

command: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)


@command.command("verify")
@prints(VerificationRecord)
def run_verify(
    path: BasePath,
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002  # typer's way of a flag
) -> None:
    """Compare the metadata table with the data files: their names, and the ranges of their columns. Changes nothing.

    Exit status: 0 it is right, or there is none; 1 it misses files or rows; 2 the command line is wrong.

    Example: hudi-locks metadata verify /data/trips
    """
    report = verify_table(open_storage(path, read_options(option, config)), zone=zone, reads_keys=True)
    found = tuple(finding for finding in report.damages if finding.kind == _KIND)
    looked = {what: number for what, number in report.checked.items() if what.endswith("in the metadata table")}
    if as_json:
        print_json(replace(report, findings=found).to_record())
    else:
        told = ", ".join(f"{number} {what}" for what, number in sorted(looked.items())) or "no metadata table"
        typer.echo("\n".join([*map(str, found), f"{path}: {len(found)} wrong; looked at {told}"]))
    if found:
        raise typer.Exit(_DAMAGED)


@command.command("init")
@prints(MetadataMade | None)
def run_init(
    path: BasePath,
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Make a metadata table: readers find files by it without listings, and filters pass over files by it.

    Give the lock options of the table's writers. With hoodie.metadata.record.index.enable=true it tells where the row
    of each key is, too. JVM Hudi and this package keep it up to date from then on.

    Example: hudi-locks metadata init /data/trips --props writer.properties
    """
    with TableWriter.open(path, read_options(option, config), zone=zone) as writer:
        _tell(path, writer.services.make_metadata_table(), as_json=as_json)


@command.command("rebuild")
@prints(MetadataMade)
def run_rebuild(
    path: BasePath,
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Delete the metadata table and make it once more of the data files, under the table's lock. No row changes.

    Give the lock options of the table's writers. It is the way out where `verify` finds it wrong. A record index is
    made anew with it, and made if hoodie.metadata.record.index.enable=true.

    Example: hudi-locks metadata rebuild /data/trips --props writer.properties
    """
    with TableWriter.open(path, read_options(option, config), zone=zone) as writer:
        _tell(path, writer.services.make_metadata_table(anew=True), as_json=as_json)


def _tell(path: str, made: MetadataMade | None, *, as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    if made is None:
        typer.echo(f"{path}: it has a metadata table already; hudi-locks metadata rebuild makes it anew")
        return
    keys = "" if made.keys is None else f", {made.keys} keys"
    typer.echo(f"{path}: made {', '.join(made.parts)} for {made.files} files, {len(made.columns)} columns{keys}")
    if made.left_out:
        typer.echo(f"no statistics of {', '.join(made.left_out)}: some files have values of another type")
    if made.lost:
        typer.echo(f"not made anew: {', '.join(made.lost)}; JVM Hudi makes it at the next write that asks for it")


class DroppedParts(TypedDict):
    """What `metadata drop` deleted.

    Attributes:
        dropped: Names of the parts that the metadata table had; none if there was none.
    """

    dropped: list[str]


@command.command("drop")
@prints(DroppedParts)
def run_drop(
    path: BasePath,
    part: _Parts = None,
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Turn the metadata table off and delete it, or one of its parts, under the table's lock. No row changes.

    Give the lock options of the table's writers. Without a metadata table readers list folders. A JVM writer makes it
    anew unless it has hoodie.metadata.enable=false, and a part if its options ask for that.

    Example: hudi-locks metadata drop /data/trips --part record_index --props writer.properties
    """
    names = drop_metadata_table(path, read_options(option, config), parts=part or (), zone=zone)
    what = "of the metadata table" if part else "the metadata table"
    said = f"{path}: dropped {what} ({', '.join(names)})" if names else f"{path}: no metadata table"
    tell(DroppedParts(dropped=list(names)), said, as_json=as_json)
