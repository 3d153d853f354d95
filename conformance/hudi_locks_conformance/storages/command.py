"""`hudi-locks conformance --storage PATH`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import typer

from hudi_locks.cli.options import read_options
from hudi_locks.errors import StorageError
from hudi_locks.storage import Storage, open_storage
from hudi_locks_conformance._output import EXIT_UNJUDGED, EXIT_UNREACHABLE, EXIT_USAGE, EXIT_VIOLATION
from hudi_locks_conformance.limits import Limit
from hudi_locks_conformance.runner import Status
from hudi_locks_conformance.storages.check import STORAGE_CHECKS, StorageCheck
from hudi_locks_conformance.storages.judging import judge_storage, render_storage, to_storage_values

__all__ = ["StorageRun"]


@dataclass(frozen=True)
class StorageRun:
    """One run, as its command line asks for it.

    Attributes:
        path: Base path of the storage.
        only: Ids of checks, or the letters before their numbers, separated by commas; "" for all.
        limit_s: For each check, in real seconds.
        as_json: Whether to print for programs.
        verbose: Whether to name every check.
    """

    path: str
    only: str
    limit_s: float
    as_json: bool
    verbose: bool

    def show_checks(self) -> int:
        """Print the checks; the exit status."""
        for check in self._select():
            typer.echo(f"{check.id:5} {check.needs or '-':20} {check.name}: {check.demand}")
        return 0

    def run(self, settings: list[str], config: Path | None) -> int:
        """Judge, and print how it ended; the exit status.

        Raises:
            ConfigError: The path is served by no storage, or an option is wrong.
        """
        checks, storage = self._select(), open_storage(self.path, read_options(settings, config))
        _expect_reachable(storage)
        outcomes = judge_storage(storage, checks, limit=Limit(self.limit_s))
        values = to_storage_values(storage, outcomes)
        said = json.dumps(values, indent=1) if self.as_json else render_storage(storage, outcomes, verbose=self.verbose)
        typer.echo(said)
        found = {outcome.status for outcome in outcomes}
        return EXIT_VIOLATION if Status.FAIL in found else EXIT_UNJUDGED if Status.NOT_RUN in found else 0

    def _select(self) -> list[StorageCheck]:
        words = [word.strip() for word in self.only.split(",") if word.strip()]
        chosen = {word: [check for check in STORAGE_CHECKS.values() if word in _words_of(check)] for word in words}
        if unknown := [word for word, found in chosen.items() if not found]:
            typer.echo(f"error: --only names no check of storages: {', '.join(unknown)}; see --list", err=True)
            raise typer.Exit(EXIT_USAGE)
        wanted = {check.id for found in chosen.values() for check in found}
        return [check for check in STORAGE_CHECKS.values() if not words or check.id in wanted]


def _words_of(check: StorageCheck) -> tuple[str, str]:
    return check.id, check.id.rstrip("0123456789")


def _expect_reachable(storage: Storage) -> None:
    try:
        storage.list("")
    except StorageError as error:
        typer.echo(f"error: the store cannot be reached: {error}", err=True)
        raise typer.Exit(EXIT_UNREACHABLE) from error
