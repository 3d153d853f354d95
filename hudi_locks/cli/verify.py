"""`verify`: whether a table is whole, without Spark and beside its writers."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from hudi_locks.cli.options import ConfigFile, Json, Settings, read_options
from hudi_locks.cli.output import prints, tell
from hudi_locks.cli.services import BasePath, Zone
from hudi_locks.errors import NotATable
from hudi_locks.storage import open_storage
from hudi_locks.verification import VerificationRecord, VerificationReport, verify_table

__all__ = ["command"]

_DAMAGED, _USAGE = 1, 2
_Values = Annotated[bool, typer.Option("--values", help="Decode all values of base files too; slow.")]
_NOTES: Final = "notes"

command: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@command.command()
@prints(VerificationRecord)
def run_verify(
    path: BasePath,
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    values: _Values = False,  # noqa: FBT002  # typer's way of a flag
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Look at every file of a table, and name what is damaged. Changes nothing, and takes no lock.

    Options say how a store is reached, such as hudi_locks.storage.endpoint_url.

    Exit status: 0 the table is sound; 1 something is damaged; 2 there is no table, or the command line is wrong.

    Example: hudi-locks verify /data/trips --values
    """
    try:
        report = verify_table(open_storage(path, read_options(option, config)), zone=zone, reads_values=values)
    except NotATable as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(_USAGE) from error
    tell(report.to_record(), _describe(report), as_json=as_json)
    if not report.is_sound:
        raise typer.Exit(_DAMAGED)


def _describe(report: VerificationReport) -> str:
    lines = [str(finding) for finding in report.findings]
    lines += [f"not checked: {what}" for what in report.not_checked]
    looked = ", ".join(f"{number} {what}" for what, number in sorted(report.checked.items()) if number)
    damages = len(report.damages)
    verdict = f"{damages} damaged" if damages else "sound"
    notes = f", {len(report.findings) - damages} {_NOTES}" if len(report.findings) > damages else ""
    return "\n".join([*lines, f"{report.table}: {verdict}{notes}; looked at {looked or 'nothing'}"])
