"""`run` and `wait`: a command that runs while a lock is held, and a wait for the lock of somebody else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from hudi_locks.cli.options import ConfigFile, FileGroup, Key, Provider, Settings, gather, make_provider, parse_scope
from hudi_locks.cli.tables import refuse_no_table
from hudi_locks.clock import SystemClock
from hudi_locks.errors import AcquireTimeout, ConfigError, NotATable
from hudi_locks.lock import Held, Holder, HoldState, LockManager

__all__ = ["add_running_commands"]

_COMMAND: Final = "hudi_locks.command"
_GRACE_S: Final = 10.0
_LOOK_S: Final = 0.2
_POLL_S: Final = 0.5
_NOT_GOT, _LOST, _SIGNALLED, _INTERRUPTED = 1, 75, 128, 130
_BOUND: Final = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
if os.getppid() != int(sys.argv[1]):
    os._exit(137)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    print(f"error: {sys.argv[2]} cannot be run: {error.strerror}", file=sys.stderr, flush=True)
    os._exit(127 if isinstance(error, FileNotFoundError) else 126)
"""
"""Becomes the command, which the kernel then kills with us: nobody would renew its lock any more."""


class _CommandAfterDashes(TyperCommand):
    """Takes what follows `--` as the command that is to run, whatever it looks like."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See `click.Command.parse_args`."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_COMMAND] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """See `click.Command.collect_usage_pieces`."""
        return [*super().collect_usage_pieces(ctx), "-- COMMAND [ARGUMENTS]..."]


def add_running_commands(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command(cls=_CommandAfterDashes)(run)
    app.command()(wait)


def run(
    context: typer.Context,
    key: Key = None,
    provider: Provider = None,
    option: Settings = None,
    config: ConfigFile = None,
    file_group: FileGroup = None,
    nonblock: Annotated[bool, typer.Option("--nonblock", "-n", help="Do not wait for the lock.")] = False,  # noqa: FBT002  # typer's way of a flag
    wait_s: Annotated[
        float | None, typer.Option("--wait", "-w", metavar="SECONDS", help="Wait for the lock no longer than this.")
    ] = None,
    conflict_status: Annotated[
        int, typer.Option("--conflict-exit-code", "-E", metavar="CODE", help="Status if the lock is not got.")
    ] = _NOT_GOT,
    grace_s: Annotated[
        float, typer.Option("--grace", metavar="SECONDS", help="Between SIGTERM and SIGKILL, if the lock is lost.")
    ] = _GRACE_S,
    application: Annotated[
        str, typer.Option("--application", metavar="NAME", help="What `show` says of the holder; the command's name.")
    ] = "",
) -> None:
    """Hold the lock of a table while a command runs.

    The command is stopped when the lock is lost, and on Linux ends with this process. Its environment has
    HUDI_LOCKS_KEY, HUDI_LOCKS_TOKEN and, where the provider has one, HUDI_LOCKS_FENCING_TOKEN.

    Exit status: that of the command, 128 and the signal's number if one ended it; 1, or CODE, the lock was not got;
    75 it was lost; 126 and 127 the command cannot be run; 130 Ctrl-C.

    Example: hudi-locks run /data/trips -p filesystem -- backup.sh
    """
    command = context.meta[_COMMAND]
    if not command:
        raise ConfigError("which command is to run? it follows two dashes: hudi-locks run /data/trips … -- backup.sh")
    given = gather(key, provider, settings=option, config=config)
    _warn_of_no_table(key)
    scope, timeout_s = parse_scope(file_group), 0.0 if nonblock else wait_s
    with LockManager(given.provider, given.options, application=application or os.path.basename(command[0])) as manager:  # noqa: PTH119  # a text
        try:
            held = manager.lock(scope, timeout_s)
        except AcquireTimeout as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(conflict_status) from None
        try:
            status = _run_guarded(command, held, _describe(manager, held), grace_s=grace_s)
        finally:
            held.release()
    raise typer.Exit(status)


def _warn_of_no_table(key: str | None) -> None:
    try:
        if key:
            refuse_no_table(key, advice="the lock keeps out only those who name the same path")
    except NotATable as error:
        typer.echo(f"warning: {error}", err=True)


def _describe(manager: LockManager, held: Held) -> dict[str, str]:
    """What the command's environment says of its lock."""
    holder = manager.holder(held.scope)
    told = {} if holder is None else {"HUDI_LOCKS_KEY": holder.key, "HUDI_LOCKS_TOKEN": holder.token}
    return told | ({} if held.token is None else {"HUDI_LOCKS_FENCING_TOKEN": str(held.token)})


def _run_guarded(command: Sequence[str], held: Held, told: Mapping[str, str], *, grace_s: float) -> int:
    """The status of the command, which runs no longer than the hold."""
    bound = [sys.executable, "-I", "-S", "-c", _BOUND, str(os.getpid())] if sys.platform == "linux" else []
    words = [*bound, *command]
    with subprocess.Popen(words, env={**os.environ, **told}) as process:  # noqa: S603  # what the user asks for
        try:
            status = _await_end(process, held)
        except KeyboardInterrupt:
            _stop(process, grace_s, is_told=True)  # the terminal told both
            return _INTERRUPTED
        finally:
            _stop(process, grace_s)
    if status is None or held.state is HoldState.LOST:
        typer.echo(f"error: {_say_loss(held, command)}", err=True)
        return _LOST
    return status if status >= 0 else _SIGNALLED - status


def _await_end(process: subprocess.Popen[bytes], held: Held) -> int | None:
    """Its status; None if the hold ends, or its last renewal is so long ago that it will."""
    while (status := _wait(process, _LOOK_S)) is None:
        if held.state is HoldState.LOST or (held.state is HoldState.UNSURE and held.lease.deadline_s is not None):
            return None
    return status


def _stop(process: subprocess.Popen[bytes], grace_s: float, *, is_told: bool = False) -> None:
    """Have it end, if it has not; one that was told to end gets its time before it is asked."""
    if is_told:
        _wait(process, grace_s)
    for end in (process.terminate, process.kill):
        if process.poll() is None:
            end()
            _wait(process, grace_s)


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return None


def _say_loss(held: Held, command: Sequence[str]) -> str:
    why = f": {held.reason.value}" if held.reason else ""
    return (
        f"the lock on {held.scope} was lost while {command[0]} ran{why}; it was stopped, and what it did last may have"
        " met the work of another holder: look at that before it runs again"
    )


def wait(
    key: Key = None,
    provider: Provider = None,
    option: Settings = None,
    config: ConfigFile = None,
    file_group: FileGroup = None,
    wait_s: Annotated[
        float | None, typer.Option("--wait", "-w", metavar="SECONDS", help="No longer than this; for ever by default.")
    ] = None,
) -> None:
    """Wait until nobody holds the lock of a table, and take nothing; a hold that ran out counts as none.

    Exit status: 0 it is free, 1 it is not.

    Example: hudi-locks wait /data/trips -p filesystem -w 60
    """
    scope, clock = parse_scope(file_group), SystemClock()
    ends_s = float("inf") if wait_s is None else clock.monotonic() + wait_s
    with make_provider(key, provider, settings=option, config=config) as asked:
        while (said := _name_holder(asked.holder(scope))) and clock.monotonic() < ends_s:
            clock.sleep(min(_POLL_S, max(0.0, ends_s - clock.monotonic())))
    if key and not said:
        refuse_no_table(key, advice="and nobody holds a lock there")
    if said:
        typer.echo(f"the lock on {scope} is held by {said}", err=True)
        raise typer.Exit(_NOT_GOT)


def _name_holder(holder: Holder | None) -> str:
    is_over = holder is None or (holder.expires_in_ms is not None and holder.expires_in_ms < 0)
    return "" if holder is None or is_over else str(holder.owner)
