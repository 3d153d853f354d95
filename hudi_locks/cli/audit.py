"""`audit`: under which locks the decisions about a table were made, and whether two grants overlapped."""

from __future__ import annotations

from typing import Annotated, Final

import typer
from rich.table import Table as Columns

from hudi_locks.cli.options import ConfigFile, Json, Settings, read_options
from hudi_locks.cli.output import open_console, print_json, prints, tell
from hudi_locks.cli.services import BasePath, Zone
from hudi_locks.storage import open_storage
from hudi_locks.table import Table
from hudi_locks.verification import Grant, GrantAudit, Overlap, audit_grants, list_grants

__all__ = ["command"]

_OVERLAPPED: Final = 1
_Last = Annotated[int, typer.Option("--last", "-n", metavar="NUMBER", help="So many of the newest entries.", min=1)]

command: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)


@command.command("ls")
@prints(list[Grant])
def run_ls(
    path: BasePath,
    last: _Last = 20,
    option: Settings = None,
    config: ConfigFile = None,
    as_json: Json = False,  # noqa: FBT002  # typer's way of a flag
) -> None:
    """List the newest entries of a table's claim log: what was decided, by whom, and under which lock.

    What JVM writers do is not in it.

    Example: hudi-locks audit ls /data/trips -n 50
    """
    found = list_grants(open_storage(path, read_options(option, config)), last=last)
    if as_json:
        print_json(found)
        return
    columns = Columns("entry", "decision", "instant", "action", "lock", "token", "by", box=None)
    for one in found:
        token = "" if one.fencing_token is None else str(one.fencing_token)
        columns.add_row(str(one.number), one.decision, one.instant, one.action, one.provider, token, one.owner)
    if found:
        open_console().print(columns)


@command.command("verify")
@prints(GrantAudit)
def run_verify(
    path: BasePath,
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Prove from a table's claim log that no two grants of its lock overlapped, and say who wrote each instant.

    Each entry holds the digest of the one before, so that none can be changed unseen, and the fencing token of the
    lock under which it was made. An older token after a newer one means that a lock was lost while its holder went on.
    The table lost nothing by it, since the log itself has one order; the lock service, or a lease that is too short,
    deserves a look. Changes nothing.

    Exit status: 0 no two grants overlapped; 1 some did, or an entry was changed; 2 the command line is wrong.

    Example: hudi-locks audit verify /data/trips
    """
    audit = audit_grants(Table.load(open_storage(path, read_options(option, config)), zone=zone))
    tell(audit, "\n".join(_describe(path, audit)), as_json=as_json)
    if not audit.is_proof:
        raise typer.Exit(_OVERLAPPED)


def _describe(path: str, audit: GrantAudit) -> list[str]:
    lines = [f"entry {number} does not follow the bytes of the one before: one was changed" for number in audit.changed]
    lines += [_say(overlap) for overlap in audit.overlaps]
    lines += [f"{requested} was published by no entry: a JVM writer made it" for requested in audit.unclaimed]
    verdict = "no two grants overlapped" if audit.is_proof else "NOT PROVED"
    compared = f"compared the tokens of {audit.ordered} of {audit.entries} entries"
    found = f"found {audit.instants} of {audit.instants + len(audit.unclaimed)} writes of the timeline in them"
    return [*lines, f"{path}: {verdict}; {compared}, and {found}"]


def _say(overlap: Overlap) -> str:
    reason = "the lock was lost in between, or the lock service was set up anew"
    return f"{_name(overlap.later)} was made after {_name(overlap.earlier)}: {reason}"


def _name(grant: Grant) -> str:
    lock = f" of {grant.provider}" if grant.provider else ""
    return f"entry {grant.number} by {grant.owner} with token {grant.fencing_token}{lock}"
