"""`hudi-locks demo`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from hudi_locks.cli.demo.comparison import Comparison, compare
from hudi_locks.cli.demo.flights import KEY, plan_corrections
from hudi_locks.cli.demo.report import render_report
from hudi_locks.cli.demo.store import LOCAL, DemoStore, open_store
from hudi_locks.config import Options
from hudi_locks.errors import ConfigError

if TYPE_CHECKING:
    from hudi_locks.cli.demo.stage import Stage

__all__ = ["demo"]

_REPORT = Path("demo-report.html")
_WIDTH = 110
_console = Console(width=None if sys.stdout.isatty() else _WIDTH)


def demo(
    provider: Annotated[
        str,
        typer.Option(help="Lock provider: a short name, class path or Java class name; else one that suits the store."),
    ] = "",
    storage: Annotated[
        str, typer.Option(metavar="local|s3|hdfs", help="Where the table lies; s3 and hdfs start a server for it.")
    ] = LOCAL,
    option: Annotated[list[str] | None, typer.Option(help="A Hudi key for every writer, as KEY=VALUE.")] = None,
    writers: Annotated[int, typer.Option(min=2, max=15, help="How many writers, each a process.")] = 2,
    keep: Annotated[Path | None, typer.Option(help="An empty folder for the table; else it is removed.")] = None,
) -> None:
    """Let writers upsert one table of real flights at the same time, and read back with a reader that is not ours.

    Example: hudi-locks demo --writers 4
    """
    given = dict(pair.partition("=")[::2] for pair in option or ())
    with _choose_folder(keep) as folder, open_store(storage, folder) as store:
        named = provider or store.provider
        options = _writer_options(named, writers, {**store.options, **given})
        comparisons = _play(_set_stage(folder, store, options, writers), named)
    raise typer.Exit(0 if all(comparison.agrees for comparison in comparisons) else 1)


def _set_stage(folder: Path, store: DemoStore, options: dict[str, str], writers: int) -> Stage:
    try:
        from hudi_locks.cli.demo.stage import Stage
    except ImportError as error:
        message = f"the demonstration needs Spark ({error.name} is missing): pip install 'hudi-locks[demo]'"
        raise ConfigError(message, module=error.name) from error
    return Stage(folder, f"{store.base}/flights", options, plan_corrections(writers))


def _writer_options(provider: str, writers: int, given: Mapping[str, str]) -> dict[str, str]:
    chosen: dict[str, object] = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.clean.failed.writes.policy": "LAZY",
        "hoodie.write.lock.provider": provider,
        "hoodie.write.lock.client.wait_time_ms_between_retry": 200,
        "hoodie.write.num.retries.on.conflict.failures": 4 * writers,
        "hoodie.datasource.write.hive_style_partitioning": True,
        "hoodie.parquet.small.file.limit": 0,
    }
    return dict(Options({**chosen, **given}))


@contextmanager
def _choose_folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="hudi-locks-demo-") as folder:
            yield Path(folder)
        return
    keep.mkdir(parents=True, exist_ok=True)
    if any(keep.iterdir()):
        raise typer.BadParameter(f"{keep} is not empty; name a new folder")
    yield keep.resolve()


def _play(stage: Stage, provider: str) -> list[Comparison]:
    _say("Loading 336,776 flights, all that left New York City in 2013, into a Hudi table …")
    loaded = stage.load()
    _say(f"  {loaded.rows_inserted:,} rows in {loaded.file_groups} file groups, instant {loaded.instant}")
    _say(f"  at {stage.table_path}")
    names = "; ".join(correction.name for correction in stage.corrections)
    _say(f"{len(stage.corrections)} writers in {len(stage.corrections)} processes upsert at the same time: {names} …")
    writers = stage.run_writers()
    _console.print(_writers_table(writers))
    _say("Reading every row back and comparing with what plain pyarrow computes …")
    expected = stage.compute_expected()
    comparisons = [
        compare("hudi-rs", stage.read_with_hudi_rs(), expected=expected, key=KEY),
        compare("hudi-locks on Spark", stage.read_with_spark(), expected=expected, key=KEY),
    ]
    for comparison in comparisons:
        _say(_verdict(comparison))
    _REPORT.write_text(render_report(loaded.rows_inserted, writers, comparisons, provider=provider))
    _say(f"The timeline as a picture: {_REPORT.resolve()}")
    return comparisons


def _writers_table(writers: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title="What each writer did")
    for name in ("writer", "attempt", "outcome", "conflict with"):
        table.add_column(name)
    for name in ("seconds", "thrown away", "waited for lock"):
        table.add_column(name, justify="right")
    for writer in writers:
        for number, attempt in enumerate(writer["attempts"], 1):
            table.add_row(*_attempt_cells(writer, number, attempt))
        table.add_section()
    return table


def _attempt_cells(writer: Mapping[str, Any], number: int, attempt: Mapping[str, Any]) -> list[str]:
    duration = f"{(attempt['ended_ms'] - attempt['began_ms']) / 1000:.1f} s"
    is_last = attempt["outcome"] == "COMMITTED"
    wasted, waited = ("", f"{writer['lock_wait_ms']} ms") if is_last else (duration, "")
    name = writer["name"] if number == 1 else f"  retry {number - 1}"
    return [name, attempt["instant"], attempt["outcome"], attempt["with"], duration, wasted, waited]


def _verdict(comparison: Comparison) -> str:
    if comparison.agrees:
        return f"  [green]✓[/green] {comparison.reader}: {comparison.rows:,} rows, every one as expected"
    return (
        f"  [red]✗[/red] {comparison.reader}: {comparison.rows:,} rows, {comparison.missing:,} missing,"
        f" {comparison.surplus:,} that should not be there"
    )


def _say(text: str) -> None:
    _console.print(text, highlight=False)
