"""`ui`: tables live in a browser."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Final

import typer

from hudi_locks.cli.ending import told_to_end
from hudi_locks.cli.options import ConfigFile, Provider, Settings, gather, open_provider, read_options
from hudi_locks.cli.services import Zone
from hudi_locks.cli.ui.looker import Looker
from hudi_locks.cli.ui.panels import WatchedTable
from hudi_locks.clock import SystemClock
from hudi_locks.config import Options, lock_keys
from hudi_locks.errors import ConfigError
from hudi_locks.storage import open_storage
from hudi_locks.table import Table

__all__ = ["run_ui"]

_PORT: Final = 26755
_Paths = Annotated[list[str], typer.Argument(metavar="PATH", help="Base paths of tables.")]
_Host = Annotated[str, typer.Option("--host", help="Where to listen; browsers reach it there.")]
_Port = Annotated[int, typer.Option("--port", help="0 for any that is free.")]
_Interval = Annotated[
    float, typer.Option("--interval", metavar="SECONDS", help="Between two looks at the tables.", min=0.1)
]
_Last = Annotated[int, typer.Option("--last", "-n", metavar="NUMBER", help="So many of the newest instants.", min=1)]


def run_ui(
    paths: _Paths,
    host: _Host = "127.0.0.1",
    port: _Port = _PORT,
    interval: _Interval = 2.0,
    last: _Last = 50,
    provider: Provider = None,
    option: Settings = None,
    config: ConfigFile = None,
    zone: Zone = None,
) -> None:
    """Show tables live in a browser: writers, locks, heartbeats, conflicts and files, until SIGTERM or SIGINT.

    Prints the address to open. It has a token, which the browser keeps as a cookie; only this machine reaches it unless
    --host says otherwise. Changes nothing, takes no lock, and looks at the tables only while a page is open. With the
    lock provider and its options, as the writers have them, it shows who holds which lock.

    Example: hudi-locks ui /data/trips --props writer.properties
    """
    try:
        from hudi_locks.cli.ui.app import make_ui  # an extra
        from hudi_locks.timeline_server.server import TimelineServer
    except ImportError as error:
        raise ConfigError(f"the live page needs hudi-locks[server]: {error}") from error
    with ExitStack() as open_until_end:
        tables = [_watch(path, provider, option, config, zone=zone, last=last, stack=open_until_end) for path in paths]
        looker = Looker(tables, SystemClock(), interval_s=interval)
        looker.look()
        server = TimelineServer(lambda token: make_ui(looker, token, hosts=(host,)), host=host, port=port)
        stopped = open_until_end.enter_context(told_to_end())
        open_until_end.enter_context(server)
        open_until_end.enter_context(looker)
        typer.echo(f"open {server.url}/?token={server.token}")
        SystemClock().wait(stopped, None)
    typer.echo("stopped")


def _watch(
    path: str,
    provider: str | None,
    option: list[str] | None,
    config: Path | None,
    *,
    zone: str | None,
    last: int,
    stack: ExitStack,
) -> WatchedTable:
    options = read_options(option, config)
    table = Table.load(open_storage(path, options), zone=zone)
    lock = None
    if provider or Options(options).find(lock_keys.PROVIDER):
        lock = stack.enter_context(open_provider(gather(path, provider, settings=option, config=config)))
    return WatchedTable(table, options, lock, last=last)
