"""`show`, `unlock`, `providers` and `config`: first hand on a lock that somebody left behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.table import Table

from hudi_locks.cli.doctor import doctor
from hudi_locks.cli.init import init
from hudi_locks.cli.listing import list_locks
from hudi_locks.cli.options import (
    ConfigFile,
    FileGroup,
    Json,
    Key,
    Provider,
    Settings,
    gather,
    make_provider,
    open_provider,
    parse_scope,
)
from hudi_locks.cli.output import open_console, print_json, prints
from hudi_locks.cli.running import add_running_commands
from hudi_locks.cli.tables import refuse_no_table
from hudi_locks.config import Options, check_writer_options, lock_keys, own_name, redact
from hudi_locks.errors import ProviderLoadError
from hudi_locks.lock import Capability, Holder, RetryPolicy, available_providers, explain_wait, load_provider_class

__all__ = ["add_lock_commands"]

_NOT_HELD_SO = 1


def add_lock_commands(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command("ls")(list_locks)
    app.command()(show)
    app.command()(unlock)
    app.command("providers")(list_providers)
    app.command("config")(explain_config)
    app.command()(doctor)
    app.command()(init)
    add_running_commands(app)


@prints(Holder | None)
def show(
    key: Key = None,
    provider: Provider = None,
    option: Settings = None,
    config: ConfigFile = None,
    file_group: FileGroup = None,
    as_json: Json = False,  # noqa: FBT002  # typer's way of a flag
) -> None:
    """Show who holds the lock of a table.

    Example: hudi-locks show /data/trips -p filesystem
    """
    scope = parse_scope(file_group)
    with make_provider(key, provider, settings=option, config=config) as asked:
        holder = asked.holder(scope)
    if holder is None and key:
        refuse_no_table(key, advice="and nobody holds a lock there")
    if as_json:
        print_json(holder)
    elif holder is None:
        typer.echo(f"nobody holds the lock on {scope}")
    else:
        open_console().print(_holder_table(holder))


def _holder_table(holder: Holder) -> Table:
    table = Table(show_header=False, box=None)
    for name, value in holder.describe():
        table.add_row(name, value)
    return table


@dataclass(frozen=True)
class Removal:
    """What `unlock` did.

    Attributes:
        removed: Whether the hold was removed.
        holder: Who holds the lock instead; None if it was removed, or nobody does.
    """

    removed: bool
    holder: Holder | None


@prints(Removal)
def unlock(
    if_token: Annotated[str, typer.Option("--if-token", metavar="TOKEN", help="The token that `show` printed.")],
    key: Key = None,
    provider: Provider = None,
    option: Settings = None,
    config: ConfigFile = None,
    file_group: FileGroup = None,
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Remove the hold that `show` showed, and no other: check first that its holder is dead.

    Exit status: 0 it is removed; 1 it is not held under that token.

    Example: hudi-locks unlock /data/trips -p filesystem --if-token 4f1c
    """
    scope = parse_scope(file_group)
    with make_provider(key, provider, settings=option, config=config) as asked:
        broken = asked.break_if(scope, if_token)
        now = None if broken else asked.holder(scope)
    if as_json:
        print_json(Removal(broken, now))
    elif broken:
        typer.echo(f"removed the hold {if_token} on {scope}")
    if broken:
        return
    said = f"it is held under {now.token} by {now.owner}" if now else "nobody holds it"
    typer.echo(f"nothing removed: the lock on {scope} is not held under {if_token}; {said}", err=True)
    raise typer.Exit(_NOT_HELD_SO)


@prints(Mapping[str, list[str] | str])
def list_providers(as_json: Json = False) -> None:  # noqa: FBT002  # typer's way of a flag
    """List the lock providers that can be asked for by name, and what they claim.

    Example: hudi-locks providers --json
    """
    found = {name: _claims(name) for name in available_providers()}
    if as_json:
        print_json(found)
        return
    table = Table("provider", "claims", box=None)
    for name, claims in found.items():
        table.add_row(name, claims if isinstance(claims, str) else " ".join(claims))
    open_console().print(table)


def _claims(name: str) -> list[str] | str:
    try:
        claimed = load_provider_class(name).capabilities
    except ProviderLoadError as error:
        return str(error)
    return [claim.name for claim in Capability if claim in claimed]


@dataclass(frozen=True)
class EffectiveOptions:
    """What a writer with these options goes by.

    Attributes:
        options: Values by key, secrets hidden.
        origins: By key, where the value was given.
        worst_case_s: How long a writer waits for its lock at most, in seconds.
    """

    options: Mapping[str, str]
    origins: Mapping[str, str]
    worst_case_s: float


@prints(EffectiveOptions)
def explain_config(
    key: Key = None,
    provider: Provider = None,
    option: Settings = None,
    config: ConfigFile = None,
    as_json: Json = False,  # noqa: FBT002  # typer's way of a flag
) -> None:
    """Print the options in effect, without secrets, and how long a writer may wait for its lock.

    Says of each where it was given. Asks no lock service, and of a table its name alone. `hudi-locks explain` tells
    more: what was overruled, what has no effect, what the table says, and what is known of its other writers.

    Exit status: 0 the provider accepts them, and none is refused by every writer; 2 they are refused.

    Example: hudi-locks config /data/trips --option hoodie.write.lock.provider=filesystem
    """
    given = gather(key, provider, settings=option, config=config)
    with open_provider(given) as accepted:
        options = Options(accepted.options)
        waits_at_service = Capability.TIMED_WAIT in accepted.capabilities
    check_writer_options(options)
    rows = _effective(options, given.origins)
    policy = RetryPolicy.from_options(options)
    if as_json:
        values, origins = {row[0]: row[1] for row in rows}, {row[0]: row[2] for row in rows}
        print_json(EffectiveOptions(values, origins, policy.longest_wait_s(waits_at_service=waits_at_service)))
        return
    table = Table("key", "value", "from", box=None)
    for row in rows:
        table.add_row(*row)
    open_console().print(table)
    typer.echo(explain_wait(policy, waits_at_service=waits_at_service))


def _effective(options: Options, origins: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Key, value, and where it was given; under which other name too, if it was another."""
    rows = {}
    for name, value in redact(options).items():
        own = own_name(name)
        rows[own] = (value, origins[name] if name == own else f"{origins[name]}, as {name}")
    for known in lock_keys.WAIT_KEYS:
        rows.setdefault(known.name, (str(known.default), "default"))
    return [(name, *rows[name]) for name in sorted(rows)]
