"""Finds the command that was typed, and loads no other: `hudi-locks --help` must not import Spark."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from importlib.metadata import EntryPoint, entry_points, version
from importlib.util import find_spec
from typing import Annotated, Any, Final

import typer

from hudi_locks.cli.ending import unwind_at_sigterm
from hudi_locks.cli.locks import add_lock_commands
from hudi_locks.errors import ConfigError, HudiLocksError, ProviderLoadError

__all__ = ["COMMAND_GROUP", "load_commands", "main"]

COMMAND_GROUP: Final = "hudi_locks.commands"
"""Entry points of further commands; each names a `typer.Typer` or a click command."""
_OWN_LATE_COMMANDS: Final = (
    EntryPoint("accept-times", "hudi_locks.cli.services:accept_times", COMMAND_GROUP),
    EntryPoint("audit", "hudi_locks.cli.audit:command", COMMAND_GROUP),
    EntryPoint("clean", "hudi_locks.cli.services:clean", COMMAND_GROUP),
    EntryPoint("cluster", "hudi_locks.cli.cluster:command", COMMAND_GROUP),
    EntryPoint("compact", "hudi_locks.cli.compact:command", COMMAND_GROUP),
    EntryPoint("conflicts", "hudi_locks.cli.conflicts:command", COMMAND_GROUP),
    EntryPoint("demo", "hudi_locks.cli.demo:command", COMMAND_GROUP),
    EntryPoint("downgrade", "hudi_locks.cli.versions:downgrade", COMMAND_GROUP),
    EntryPoint("explain", "hudi_locks.cli.explain:command", COMMAND_GROUP),
    EntryPoint("ingest", "hudi_locks.cli.ingest:command", COMMAND_GROUP),
    EntryPoint("metadata", "hudi_locks.cli.metadata:command", COMMAND_GROUP),
    EntryPoint("migrate", "hudi_locks.cli.migrate:command", COMMAND_GROUP),
    EntryPoint("restore", "hudi_locks.cli.services:restore", COMMAND_GROUP),
    EntryPoint("savepoint", "hudi_locks.cli.services:savepoint", COMMAND_GROUP),
    EntryPoint("serve", "hudi_locks.cli.serve:command", COMMAND_GROUP),
    EntryPoint("sync", "hudi_locks.cli.sync:command", COMMAND_GROUP),
    EntryPoint("table", "hudi_locks.cli.table:command", COMMAND_GROUP),
    EntryPoint("timeline", "hudi_locks.cli.timeline:command", COMMAND_GROUP),
    EntryPoint("ui", "hudi_locks.cli.ui:command", COMMAND_GROUP),
    EntryPoint("upgrade", "hudi_locks.cli.versions:upgrade", COMMAND_GROUP),
    EntryPoint("verify", "hudi_locks.cli.verify:command", COMMAND_GROUP),
)
_SUMMARIES: Final = {
    "accept-times": "Let writers go on after a time that is far ahead of the clock.",
    "audit": "Prove from a table's claim log that no two grants of its lock overlapped.",
    "clean": "Roll back failed writes of a table and remove what nobody can read any more.",
    "cluster": "Join the small files of a table into large, sorted ones, as a job of its own.",
    "compact": "Merge the logs of a merge-on-read table into base files, while others write, as a job of its own.",
    "conflicts": "List which jobs met in conflicts on a table, how often, and what it cost.",
    "demo": "Let Spark writers share one table, and compare every row of it afterwards.",
    "downgrade": "Make of a table one of an earlier table version, for releases that know no later one.",
    "explain": "Explain the configuration that a writer of a table goes by, and where each value comes from.",
    "ingest": "Bring files or messages into a table, each batch exactly once, beside other writers.",
    "metadata": "Compare the metadata table of a table with its files, or drop it.",
    "migrate": "Say how far a table's jobs have moved from one lock provider to another, and what to do next.",
    "restore": "Take a table back to a savepoint, or to a write that is still whole.",
    "savepoint": "Keep what a write of a table shows; list savepoints, or let go of one.",
    "sync": "Tell a Hive Metastore, or AWS Glue, of a table's columns and partitions.",
    "table": "Show what a table is, how many files it has, and what is under way.",
    "timeline": "List what happened to a table lately, and who did it.",
    "ui": "Show tables live in a browser: writers, locks, heartbeats, conflicts and files.",
    "upgrade": "Make of a table one of a later table version, with the same rows.",
    "verify": "Look at every file of a table, and name what is damaged; changes nothing.",
    "serve": "Keep the markers of a table's writers: a timeline server that runs by itself.",
}
_FAILURE, _USAGE = 1, 2
_COMPLETES: Final = "_HUDI_LOCKS_COMPLETE"
_TYPED: Final = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
"""Where Bash, and where other shells have the words that were typed so far."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; always raises `SystemExit`.

    The status is 0 for success, 1 for failure and 2 for a wrong command line or configuration; a command may have
    others. An error of this package is one line on standard error. SIGTERM ends a command as an exception does, with
    status 143: locks are released, and processes that it started end with it.

    Args:
        arguments: What follows the program's name; `sys.argv` when None.
    """
    words = sys.argv[1:] if arguments is None else arguments
    warnings.formatwarning = _format_warning
    try:
        with unwind_at_sigterm():
            _run(words)
    except (ConfigError, ProviderLoadError) as error:
        _stop(error, _USAGE)
    except HudiLocksError as error:
        _stop(error, _FAILURE)


def load_commands() -> dict[str, Any]:
    """Every command that is installed here, by the words that call it, as click has it. Imports what they need."""
    app = typer.Typer()
    add_lock_commands(app)
    group: Any = typer.main.get_command(app)
    found = dict(group.commands)
    for point in _late_commands():
        loaded = _load_command(point)
        members = getattr(loaded, "commands", None)
        found |= {f"{point.name} {word}": one for word, one in members.items()} if members else {point.name: loaded}
    return dict(sorted(found.items()))


def _run(words: list[str]) -> None:
    late = next((point for point in _late_commands() if words[:1] == [point.name]), None)
    if late is None:
        _own_command()(args=words, prog_name="hudi-locks")
    else:
        late.load()(args=words[1:], prog_name=f"hudi-locks {late.name}")


def _late_commands() -> list[EntryPoint]:
    own = [point for point in _OWN_LATE_COMMANDS if find_spec(point.module)]
    return sorted([*own, *entry_points(group=COMMAND_GROUP)], key=lambda point: point.name)


def _own_command() -> Any:
    """All commands; those that are loaded late with their options only where a shell completes them."""
    app = typer.Typer(
        help="Locks of Apache Hudi tables: who holds them, and how to get at them.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(_take_options)
    add_lock_commands(app)
    for point in _late_commands():
        app.command(point.name, help=_summary(point))(_never_run)
    group: Any = typer.main.get_command(app)
    for point in _late_commands():
        if point.name in _typed():
            group.add_command(_load_command(point), point.name)
    return group


def _print_version(is_wanted: bool) -> None:  # noqa: FBT001  # typer's way of a callback
    if is_wanted:
        typer.echo(f"hudi-locks {version('hudi-locks')}")
        raise typer.Exit


def _take_options(
    _: Annotated[  # noqa: FBT002  # typer's way of a flag
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Locks of Apache Hudi tables: who holds them, and how to get at them."""


def _typed() -> list[str]:
    """The words that a shell asks to complete; none in a command that is run."""
    return " ".join(os.environ.get(name, "") for name in _TYPED if _COMPLETES in os.environ).split()


def _load_command(point: EntryPoint) -> Any:
    loaded = point.load()
    return typer.main.get_command(loaded) if isinstance(loaded, typer.Typer) else loaded


def _never_run() -> None:
    """Stands in the list of commands for one that `_run` loads."""


def _summary(point: EntryPoint) -> str:
    if point.name in _SUMMARIES:
        return _SUMMARIES[point.name]
    try:
        module = importlib.import_module(point.module)
    except ImportError as error:
        return f"Cannot be loaded: {error}"
    return (module.__doc__ or point.value).partition("\n")[0]


def _format_warning(message: Warning | str, *_: object, **__: object) -> str:
    return f"warning: {message}\n"


def _stop(error: HudiLocksError, status: int) -> None:
    typer.echo(f"error: {error}", err=True)
    raise SystemExit(status)
