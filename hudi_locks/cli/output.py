"""How tables and JSON are printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from typing import Any, Final, TypeVar

import typer
from rich.console import Console

__all__ = ["open_console", "print_json", "prints", "tell"]

Command = TypeVar("Command", bound=Callable[..., None])

_WITHOUT_TERMINAL: Final = 100_000
"""Columns of a pipe or file: as many as anything printed takes, so that nothing is cut."""


def open_console() -> Console:
    """Standard output: as wide as the terminal, and without one as wide as it takes."""
    return Console(soft_wrap=True, width=None if sys.stdout.isatty() else _WITHOUT_TERMINAL)


def prints(kind: Any) -> Callable[[Command], Command]:
    """Declare what a command prints with `--json`, from which the reference of commands is made.

    Args:
        kind: A type of dataclasses, typed dictionaries, lists, mappings, texts, numbers and None.
    """

    def declare(command: Command) -> Command:
        command.json_output = kind  # type: ignore[attr-defined]
        return command

    return declare


def print_json(value: object) -> None:
    """Print a value of the type that the command declares, on one line."""
    typer.echo(json.dumps(value, default=_to_dictionary))


def tell(value: object, said: str, *, as_json: bool) -> None:
    """Print a value for programs, or what is said of it for people."""
    if as_json:
        print_json(value)
    else:
        typer.echo(said)


def _to_dictionary(value: object) -> dict[str, Any]:
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"{type(value).__name__} has no form in JSON")
    return asdict(value)
