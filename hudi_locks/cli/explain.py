"""`explain`: the configuration that a writer of a table goes by, and what is known of the table's other writers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

import typer
from rich.table import Table as Columns

from hudi_locks.cli.effective import ExplainedKey, explain_keys
from hudi_locks.cli.options import ConfigFile, Given, Json, Key, Provider, Settings, gather_any
from hudi_locks.cli.output import open_console, print_json, prints
from hudi_locks.cli.tables import find_storage
from hudi_locks.clock import SystemClock
from hudi_locks.config import Options, list_contradictions, lock_keys, table_keys
from hudi_locks.errors import ConfigError, HudiLocksError, NotATable, ProviderLoadError, StorageError
from hudi_locks.lock import Capability, LockProvider, RetryPolicy, explain_wait, load_provider_class
from hudi_locks.spark.settings import check_pipeline
from hudi_locks.table import Table
from hudi_locks.transaction.settings import WriterSettings, refuse_unusable
from hudi_locks.verification import WriterTraces, trace_writers

__all__ = ["command"]

_REFUSED: Final = 1
_COMPARED: Final = 100
"""So many of the newest entries of the claim log."""
_NO_LOCK: Final = "No lock is taken: no lock provider is named, which is for a table with one writer."
_EACH_TIME: Final = (
    "A write waits so when it begins, when it is published, and once more for each retry after a conflict."
)
_NOT_TOLD: Final = (
    "Of its writers a table keeps the lock provider alone. Nothing tells where their lock lies, their concurrency mode"
    " and their waits: run this command with the options of each, and compare."
)

command: typer.Typer = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Explanation:
    """What a writer with these options goes by.

    Attributes:
        table: What is at the path: name, type and version; "" if nothing was looked at.
        provider: The lock provider, as the options name it; "" without one.
        keys: All keys that count, by their names.
        refusals: What a writer refuses of the options as a whole, each with the way out; one key's own is its note.
        worst_case_s: How long a writer waits for its lock at most, in seconds; null if it takes none, or the options of
            the lock are refused.
        waits: The same in words.
        writers: What the table tells of its writers, compared with these options.
    """

    table: str
    provider: str
    keys: tuple[ExplainedKey, ...]
    refusals: tuple[str, ...]
    worst_case_s: float | None
    waits: str
    writers: WriterTraces

    @property
    def is_refused(self) -> bool:
        """Whether a writer with these options does not begin."""
        return bool(self.refusals) or any(key.effect == "refused" for key in self.keys)


@command.command()
@prints(Explanation)
def run_explain(
    key: Key = None,
    provider: Provider = None,
    option: Settings = None,
    config: ConfigFile = None,
    as_json: Json = False,  # noqa: FBT002  # typer's way of a flag
) -> None:
    """Explain the configuration that a writer of a table goes by, and how long it may wait for its lock.

    Tells of each key where its value comes from, what other places said, and whether it is honoured, refused or
    without effect. Compares with what the table says of itself and keeps of its other writers. Secrets are hidden.
    Takes no lock, changes nothing, and does not ask the lock service; `hudi-locks doctor` does.

    Exit status: 0 a writer would begin with these options; 1 it refuses some of them, or the table cannot be read; 2
    the command line is wrong, or a file of options cannot be read.

    Example: hudi-locks explain /data/trips --props writer.properties
    """
    found = _explain(gather_any(key, provider, settings=option, config=config))
    if as_json:
        print_json(found)
    else:
        _show(found)
    if found.is_refused:
        raise typer.Exit(_REFUSED)


def _explain(given: Given) -> Explanation:
    options = Options(given.options)
    said, table, failure = _find_table(options)
    provider, refusal = _open_provider(options)
    with provider or nullcontext():
        keys = explain_keys(given, provider, table)
    told = {key.note for key in keys}
    whole = [failure, refusal, *list_contradictions(options), *_refuse_for_table(options, table)]
    refusals = tuple(dict.fromkeys(text for text in whole if text and text not in told))
    name = options.find(lock_keys.PROVIDER) or ""
    worst_s, waits = _say_waits(options, name, provider)
    writers = WriterTraces() if table is None else trace_writers(table, name, last=_COMPARED)
    return Explanation(said, name, keys, refusals, worst_s, waits, writers)


def _find_table(options: Options) -> tuple[str, Table | None, str]:
    """What is at the path, in words, the table if there is one within reach, and why the store does not tell."""
    path = options.find(table_keys.BASE_PATH)
    if not path:
        return "", None, ""
    storage = find_storage(path, options)
    if storage is None:
        return f"{path} is out of reach with these options", None, ""
    try:
        table = Table.load(storage).with_writer_options(options)
    except NotATable:
        return f"{path} holds no table yet", None, ""
    except (StorageError, ProviderLoadError) as error:
        return f"{path} cannot be looked at", None, str(error)
    settings = table.config
    return f"{settings.name} at {path}, {settings.table_type}, version {settings.version}", table, ""


def _open_provider(options: Options) -> tuple[LockProvider | None, str]:
    """The lock provider, which asks nobody yet, or why it refuses the options."""
    name = options.find(lock_keys.PROVIDER)
    if not name:
        return None, ""
    try:
        return load_provider_class(name)(options, clock=SystemClock(), on_lost=lambda *_: None), ""
    except ConfigError as error:
        return None, str(error)


def _refuse_for_table(options: Options, table: Table | None) -> Iterator[str]:
    """What a writer of the table refuses, beyond the options alone."""
    if table is None:
        return

    def check_settings() -> None:
        settings = WriterSettings.of(options, table.config.extra)
        refuse_unusable(table, settings, has_lock=options.has(lock_keys.PROVIDER))

    def check_rest() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of keys, which tell it themselves
            check_pipeline(options, table.config, table.storage.base, for_writing=True)

    yield from map(_say_refusal, (table.check_writable, check_settings, check_rest))


def _say_refusal(check: Callable[[], object]) -> str:
    try:
        check()
    except HudiLocksError as error:
        return str(error)
    return ""


def _say_waits(options: Options, name: str, provider: LockProvider | None) -> tuple[float | None, str]:
    if not name:
        return None, _NO_LOCK
    if provider is None:
        return None, f"{name} refuses these options, so that nothing waits."
    try:
        policy = RetryPolicy.from_options(options)
    except ConfigError as error:
        return None, str(error)
    waits_at_service = Capability.TIMED_WAIT in provider.capabilities
    worst_s = policy.longest_wait_s(waits_at_service=waits_at_service)
    return worst_s, f"{explain_wait(policy, waits_at_service=waits_at_service)} {_EACH_TIME}"


def _show(found: Explanation) -> None:
    console = open_console()
    if found.table:
        typer.echo(found.table)
    columns = Columns("key", "value", "from", "", box=None)
    for key in found.keys:
        columns.add_row(key.key, key.value, _say_origin(key), "" if key.effect == "honoured" else key.effect)
        if key.note:
            columns.add_row("", f"→ {key.note}")
    console.print(columns)
    for refusal in found.refusals:
        typer.echo(f"refused: {refusal}")
    typer.echo(found.waits)
    if found.writers != WriterTraces():
        _show_writers(found.writers)


def _say_origin(key: ExplainedKey) -> str:
    overruled = (f"{one.value} from {one.origin}" for one in reversed(key.overruled))
    return "; not ".join((key.origin, *overruled))


def _show_writers(found: WriterTraces) -> None:
    columns = Columns("writer", "lock", "last write", "", box=None)
    for one in found.jobs:
        columns.add_row(one.job, one.provider or "none", one.instant, one.difference)
    if found.unclaimed:
        columns.add_row(f"JVM writers, {len(found.unclaimed)} writes", "not told", found.unclaimed[-1], "")
    open_console().print(columns)
    for line in (*found.contradictions, _NOT_TOLD):
        typer.echo(line)
