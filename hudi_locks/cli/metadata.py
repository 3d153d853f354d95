"""`metadata`: whether the metadata table of a table is right, and how to get rid of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

import typer

from hudi_locks.cli.options import ConfigFile, Json, Settings, read_options
from hudi_locks.cli.services import BasePath, Zone
from hudi_locks.services import drop_metadata_table
from hudi_locks.storage import open_storage
from hudi_locks.verification import verify_table

__all__ = ["command"]

_KIND: Final = "metadata-table"
_DAMAGED: Final = 1

command = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)


@command.command("verify")
def run_verify(
    path: BasePath,
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002  # typer's way of a flag
) -> None:
    """Compare the metadata table with the data files: their names, and the ranges of their columns. Changes nothing.

    Exit status: 0 it is right, or there is none; 1 it misses files or rows; 2 the command line is wrong.
    """
    report = verify_table(open_storage(path, read_options(option, config)), zone=zone)
    found = tuple(finding for finding in report.damages if finding.kind == _KIND)
    looked = {what: number for what, number in report.checked.items() if what.endswith("in the metadata table")}
    if as_json:
        typer.echo(json.dumps(replace(report, findings=found).to_record()))
    else:
        told = ", ".join(f"{number} {what}" for what, number in sorted(looked.items())) or "no metadata table"
        typer.echo("\n".join([*map(str, found), f"{path}: {len(found)} wrong; looked at {told}"]))
    if found:
        raise typer.Exit(_DAMAGED)


@command.command("drop")
def run_drop(path: BasePath, option: Settings = None, config: ConfigFile = None, zone: Zone = None) -> None:
    """Turn the metadata table off and delete it, under the table's lock. No row changes; readers list folders again.

    Give the lock options of the table's writers. A JVM writer makes it anew unless it has hoodie.metadata.enable=false.
    """
    names = drop_metadata_table(path, read_options(option, config), zone=zone)
    typer.echo(f"{path}: dropped the metadata table ({', '.join(names)})" if names else f"{path}: no metadata table")
