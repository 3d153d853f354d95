"""`migrate`: where the writers of a table stand between an old lock and a new one, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

import typer
from rich.table import Table as Columns

from hudi_locks.cli.options import ConfigFile, Json, Settings, read_options
from hudi_locks.cli.output import open_console, print_json, prints
from hudi_locks.cli.services import BasePath, Zone
from hudi_locks.storage import open_storage
from hudi_locks.table import Table
from hudi_locks.verification import LockMigration, follow_migration

__all__ = ["command"]

_UNSAFE: Final = 1
_NEXT: Final = {
    "nobody wrote": "No job has written. Give every job {both}.",
    "old lock alone": "Every job holds {old} alone. Next: give them {both}, one after the other.",
    "moving to both": "Next: give {lagging} {both} too. Until then no job may hold {new} alone.",
    "both locks": (
        "Every job holds both. Next: give them hoodie.write.lock.provider={new} alone, one after the other; first set"
        " hudi_locks.chain.token=second if fencing tokens are compared anywhere."
    ),
    "moving to the new lock": "Next: give {lagging} hoodie.write.lock.provider={new} alone too.",
    "new lock alone": "Every job holds {new} alone: the migration is done. What served {old} alone may go.",
}
_From = Annotated[str, typer.Option("--from", metavar="PROVIDER", help="The lock provider that writers leave.")]
_To = Annotated[str, typer.Option("--to", metavar="PROVIDER", help="The one that they move to.")]
_Last = Annotated[
    int, typer.Option("--last", "-n", metavar="NUMBER", help="So many of the newest entries of the claim log.", min=1)
]

command: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@command.command()
@prints(LockMigration)
def run_migrate(
    path: BasePath,
    old: _From,
    new: _To,
    last: _Last = 1000,
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
    as_json: Json = False,  # noqa: FBT002  # typer's way of a flag
) -> None:
    """Say how far a table's jobs have moved from one lock provider to another, and what to do next. Changes nothing.

    The way is the provider `chain`, which holds both locks: first every job goes from the old lock to both, then from
    both to the new one. A job counts by the lock under which it wrote last.

    Exit status: 0 the jobs keep each other out; 1 some do not; 2 the command line is wrong.

    Example: hudi-locks migrate /data/trips --from zookeeper --to storage
    """
    table = Table.load(open_storage(path, read_options(option, config)), zone=zone)
    found = follow_migration(table, old=old, new=new, last=last)
    if as_json:
        print_json(found)
    else:
        _show(found)
    if not found.is_safe:
        raise typer.Exit(_UNSAFE)


def _show(found: LockMigration) -> None:
    columns = Columns("job", "lock", "holds", "entries", "last", box=None)
    for one in found.jobs:
        columns.add_row(one.job, one.provider or "none", one.holds, str(one.entries), one.time)
    if found.jobs:
        open_console().print(columns)
    for line in (_say_next(found) if found.is_safe else _say_danger(found), *_say_unclaimed(found)):
        typer.echo(line)


def _say_next(found: LockMigration) -> str:
    lagging = ", ".join(found.list_jobs("old") or found.list_jobs("both"))
    return _NEXT[found.stage].format(old=found.old, new=found.new, both=_name_both(found), lagging=lagging)


def _name_both(found: LockMigration) -> str:
    return f"hoodie.write.lock.provider=chain and hudi_locks.chain.providers={found.old},{found.new}"


def _say_danger(found: LockMigration) -> str:
    apart = [f"{', '.join(jobs)} by {lock}" for lock, jobs in _list_apart(found)]
    return (
        f"These jobs do not keep each other out: {'; '.join(apart)}. The claim log keeps their updates, at the price of"
        f" more conflicts; JVM writers are kept out by a lock alone. Give all of them {_name_both(found)}."
    )


def _list_apart(found: LockMigration) -> Iterator[tuple[str, tuple[str, ...]]]:
    for lock, holds in ((found.old, "old"), (found.new, "new"), ("another lock, or none", "other")):
        if jobs := found.list_jobs(holds):
            yield lock, jobs


def _say_unclaimed(found: LockMigration) -> Iterator[str]:
    if found.unclaimed:
        yield (
            f"{len(found.unclaimed)} writes have no entry, the last of {found.unclaimed[-1]}: JVM writers, which hold"
            " one lock alone. Move them while none of them writes, once every job holds both and before one holds"
            f" {found.new} alone."
        )
