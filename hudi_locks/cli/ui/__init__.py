"""Tables live in a browser: writers, locks, heartbeats, conflicts and files on one page."""

import typer

from hudi_locks.cli.ui.command import run_ui

__all__ = ["command"]

command: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
command.command()(run_ui)
