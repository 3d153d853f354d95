"""`ls`: every lock of a table, and who holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer
from rich.table import Table

from hudi_locks.cli.options import ConfigFile, Json, Provider, Settings, make_provider
from hudi_locks.cli.output import open_console, print_json, prints
from hudi_locks.cli.tables import refuse_no_table
from hudi_locks.lock import Capability, Holder, LockProvider, LockScope

__all__ = ["find_holders", "list_locks"]

Keys = Annotated[list[str] | None, typer.Argument(metavar="KEY", help="Paths of tables (hoodie.base.path).")]
_COLUMNS: Final = ("since", "last sign of life", "others may take it", "in line", "token", "key")
_UNNAMED: Final = "a file group"


@dataclass(frozen=True)
class HeldLock(Holder):
    """A lock that is held, and whose it is.

    Attributes:
        table: The key that the command was given; "" without one.
    """

    table: str = ""


@prints(list[HeldLock])
def list_locks(
    keys: Keys = None,
    provider: Provider = None,
    option: Settings = None,
    config: ConfigFile = None,
    as_json: Json = False,  # noqa: FBT002  # typer's way of a flag
) -> None:
    """List the locks of tables that are held, those of file groups and of JVM writers too.

    Who stands in line for a lock is told by ZooKeeper, and of JVM writers by the Hive Metastore; elsewhere writers ask
    again and again.
    Object stores and the Hive Metastore keep but a digest of a file group's name: which one it is they do not tell.

    Example: hudi-locks ls /data/trips /data/cities -p filesystem
    """
    found: list[tuple[str, Holder]] = []
    wanted: list[str | None] = [*keys] if keys else [None]
    for key in wanted:
        with make_provider(key, provider, settings=option, config=config) as asked:
            held = find_holders(asked)
            if Capability.LIST not in asked.capabilities:
                typer.echo(_warn_of_others(asked), err=True)
        if key and not held:
            refuse_no_table(key, advice="and nobody holds a lock there")
        found += [(key or "", holder) for holder in held]
    if as_json:
        print_json([HeldLock(**vars(holder), table=key) for key, holder in found])
    elif found:
        open_console().print(_draw(found))
    else:
        typer.echo("nobody holds a lock")


def find_holders(provider: LockProvider) -> list[Holder]:
    """Every hold; of a provider that cannot tell, that of the table's lock."""
    if Capability.LIST in provider.capabilities:
        return provider.list_holders()
    table = provider.holder(LockScope.table())
    return [] if table is None else [table]


def _warn_of_others(provider: LockProvider) -> str:
    return f"warning: {type(provider).__name__} lists no locks: those of file groups are not looked for"


def _draw(found: list[tuple[str, Holder]]) -> Table:
    many = len({key for key, _ in found}) > 1
    table = Table(*(["table"] if many else []), "lock", "holder", *_COLUMNS, box=None)
    for key, holder in found:
        told = dict(holder.describe())
        cells = [holder.scope or _UNNAMED, str(holder.owner), *(told.get(name, "") for name in _COLUMNS)]
        table.add_row(*([key] if many else []), *cells)
    return table
