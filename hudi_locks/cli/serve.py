"""`serve`: a timeline server that runs by itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from hudi_locks.cli.ending import told_to_end
from hudi_locks.cli.options import ConfigFile, Settings, read_options
from hudi_locks.clock import SystemClock
from hudi_locks.config import check_options, index_keys
from hudi_locks.errors import ConfigError
from hudi_locks.storage import open_storage
from hudi_locks.table import Table
from hudi_locks.timeline_server import TOKEN_VARIABLE

__all__ = ["command"]

_PORT: Final = 26754

command: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@command.command()
def run_serve(
    path: Annotated[str, typer.Argument(metavar="PATH", help="Base path of the table.")],
    host: Annotated[str, typer.Option("--host", help="Where to listen; writers reach it there.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="0 for any that is free.")] = _PORT,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", help=f"Holds what callers must bring; else the variable {TOKEN_VARIABLE} does."),
    ] = None,
    without_token: Annotated[  # noqa: FBT002  # typer's way of a flag
        bool, typer.Option("--without-token", help="Let in whoever reaches the port, as JVM clients have no token.")
    ] = False,
    option: Settings = None,
    config: ConfigFile = None,
    zone: Annotated[str | None, typer.Option("--zone", help="Time zone of a table in LOCAL time.")] = None,
) -> None:
    """Keep the markers of a table's writers until SIGTERM or SIGINT; requests under way are answered first.

    Give the options that the writers have: they say whether to look for conflicts, and how to batch.

    Example: hudi-locks serve /data/trips --port 26754 --token-file token --props writer.properties
    """
    options = check_options({**read_options(option, config), "hoodie.base.path": path})
    token = "" if without_token else _read_token(token_file)
    table = Table.load(open_storage(path), zone=zone)
    try:
        from hudi_locks.timeline_server.standalone import make_standalone  # an extra
    except ImportError as error:
        raise ConfigError(f"a timeline server needs hudi-locks[server]: {error}") from error
    server = make_standalone(table.storage, table.layout, _add_index(table, options), token=token, place=(host, port))
    with told_to_end() as stopped, server:
        typer.echo(f"serving the markers of {path} at {server.url}")
        SystemClock().wait(stopped, None)
    typer.echo("stopped")


def _add_index(table: Table, options: Mapping[str, object]) -> dict[str, object]:
    """The options, with the index that the table remembers. Nothing else: its properties could name any class."""
    kept = index_keys.INDEX_TYPE.name
    return {**({kept: table.config.extra[kept]} if kept in table.config.extra else {}), **options}


def _read_token(file: Path | None) -> str:
    token = file.read_text(encoding="utf-8").strip() if file else os.environ.get(TOKEN_VARIABLE, "")
    if not token:
        raise ConfigError(
            f"callers must bring a token: give --token-file, or set {TOKEN_VARIABLE}; --without-token lets everybody in"
        )
    return token
