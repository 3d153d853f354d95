"""`init`: makes what a lock service needs before the first writer comes."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from hudi_locks.cli.options import ConfigFile, Json, Key, Provider, Settings, gather, open_provider
from hudi_locks.cli.output import open_console, print_json, prints
from hudi_locks.errors import LockError
from hudi_locks.lock import LockProvider, SetupStep, SetupTerms

__all__ = ["init"]

_FAILED, _TO_MAKE = 1, 3
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Make nothing, and say what would be made.")]
_MakeBucket = Annotated[
    bool, typer.Option("--make-bucket", help="Make the S3 bucket of the storage lock too, if there is none.")
]
_SetLifecycle = Annotated[
    bool, typer.Option("--set-lifecycle", help="Add the advised lifecycle rule to an S3 bucket that was there before.")
]


@prints(list[SetupStep])
def init(
    key: Key = None,
    provider: Provider = None,
    option: Settings = None,
    config: ConfigFile = None,
    dry_run: _DryRun = False,  # noqa: FBT002  # typer's way of a flag
    make_bucket: _MakeBucket = False,  # noqa: FBT002
    set_lifecycle: _SetLifecycle = False,  # noqa: FBT002
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Make what the lock service needs before the first writer: a DynamoDB table, ZooKeeper nodes, a folder, a bucket.

    Says of each what was there, what was made, and what cannot be made and why. May be called again, and takes no
    lock. A bucket that was there is left as it is unless --set-lifecycle is given.

    Exit status: 0 all is there, or was made; 1 something cannot be made, or the service cannot be asked; 3 with
    --dry-run: something would be made.

    Example: hudi-locks init /data/trips -p dynamodb -o table=locks --dry-run
    """
    terms = SetupTerms(dry_run=dry_run, make_bucket=make_bucket, set_lifecycle=set_lifecycle)
    with open_provider(gather(key, provider, settings=option, config=config)) as asked:
        steps = _set_up(asked, terms)
    _print(steps, as_json=as_json)
    if any(step.has_failed for step in steps):
        raise typer.Exit(_FAILED)
    if any(step.is_to_make for step in steps):
        raise typer.Exit(_TO_MAKE)


def _set_up(provider: LockProvider, terms: SetupTerms) -> list[SetupStep]:
    """All steps; that the service cannot be asked is one that failed."""
    try:
        return list(provider.set_up(terms))
    except LockError as error:
        return [SetupStep.failed("reached", error)]


def _print(steps: list[SetupStep], *, as_json: bool) -> None:
    if as_json:
        print_json(steps)
        return
    if not steps:
        typer.echo("this lock provider needs nothing to be made")
        return
    table = Table("", "needed", "found", box=None)
    for step in steps:
        advice = f"\n→ {step.advice}" if step.advice else ""
        table.add_row(step.outcome, step.name, step.found + advice)
    open_console().print(table)
