"""Let Spark writers share one table of real flights, and compare every row of it afterwards."""

import typer

from hudi_locks.cli.demo.play import demo

__all__ = ["command"]

command: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
command.command()(demo)
