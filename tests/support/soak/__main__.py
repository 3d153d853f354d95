"""`python -m soak`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Annotated

import typer
from other_readers import Jvm, read_rust

from hudi_locks.cli.ending import unwind_at_sigterm
from soak.duels import SERVICES, play_all, render_table
from soak.fleet import FleetPlan
from soak.judgement import Readers, read_ours
from soak.plan import OPTIONS
from soak.running import SoakPlan
from soak.services import LOCKS, run_service
from soak.soaking import Outcome, render_outcome, soak, soak_fleet
from soak.streams import StreamsPlan, render_streams, soak_streams

OTHERS: Readers = {"this package": read_ours, "hudi-rs": read_rust}
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
Commits = Annotated[int, typer.Option(help="The run ends after so many.")]
Seed = Annotated[int, typer.Option(help="Of all that is drawn.")]
Folder = Annotated[Path | None, typer.Option(help="For the table and the log; it is kept. A temporary one if absent.")]
Bundle = Annotated[str, typer.Option(help="Version of the JVM bundle that reads the table; empty for none.")]


@app.command()
def writers(
    lock: Annotated[str, typer.Option(help=f"One of {', '.join(LOCKS)}.")] = "filesystem",
    processes: Annotated[int, typer.Option(help="Writers at a time.")] = 8,
    commits: Commits = 500,
    seed: Seed = 1,
    folder: Folder = None,
    bundle: Bundle = "1.2.0",
) -> None:
    """Writers of this package with skewed clocks, killed and stopped at random, against a serial replay."""
    if lock not in LOCKS:
        raise typer.BadParameter(f"{lock} is none of {', '.join(LOCKS)}")
    with _place(folder) as place:
        path = str(place / "table")
        with run_service(lock, path) as service, _readers(bundle) as readers:
            options = {**OPTIONS, **service.options}
            plan = SoakPlan(path, place / "events.jsonl", options, service.lease_s, processes, commits, seed)
            outcome = soak(plan, readers, typer.echo)
        _finish(outcome, place, keep=folder is not None)


@app.command()
def mixed(
    commits: Annotated[int, typer.Option(help="Of each of the four writers.")] = 50,
    seed: Seed = 1,
    folder: Folder = None,
    bundle: Annotated[list[str] | None, typer.Option(help="Of the JVM writers; 1.2.0 twice if absent.")] = None,
) -> None:
    """Two writers of this package and two of JVM Hudi, with one ZooKeeper lock, against a serial replay."""
    with _place(folder) as place, ExitStack() as stack:
        path = str(place / "table")
        jvms = [stack.enter_context(closing(Jvm(version, 9))) for version in bundle or ["1.2.0", "1.2.0"]]
        readers = {**OTHERS, **{f"JVM {jvm.version}": jvm.read_path for jvm in jvms}}
        with run_service("zookeeper", path) as service:
            plan = FleetPlan(path, place / "events.jsonl", service, commits, seed)
            outcome = soak_fleet(plan, jvms, readers, typer.echo)
    _finish(outcome, place, keep=folder is not None)


@app.command()
def duels(
    service: Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(SERVICES)}; all if absent.")] = None,
    folder: Folder = None,
) -> None:
    """Two Spark applications that meet on a table: each strategy of early detection with each lock service."""
    with _place(folder) as place:
        verdicts = play_all(place, service or SERVICES, typer.echo)
    typer.echo(render_table(verdicts))
    if any(verdict.fault for verdict in verdicts):
        raise typer.Exit(1)
    if folder is None:
        shutil.rmtree(place)


@app.command()
def streams(
    writers: Annotated[int, typer.Option(help="Streams that write.")] = 4,
    minutes: Annotated[float, typer.Option(help="For so long events come in.")] = 30.0,
    rate: Annotated[int, typer.Option(help="Events of a stream a second.")] = 20,
    lock: Annotated[str, typer.Option(help=f"One of {', '.join(LOCKS)}.")] = "zookeeper",
    seed: Seed = 1,
    folder: Folder = None,
    bundle: Bundle = "1.2.0",
) -> None:
    """Streams of flights into one table, with a compactor and a reader that follows along, killed at random."""
    with _place(folder) as place:
        with run_service(lock, str(place / "table")) as service, _readers(bundle) as readers:
            plan = StreamsPlan(place, service.options, writers, minutes, rate, seed=seed)
            others = {name: read for name, read in readers.items() if read is not read_ours}
            outcome = soak_streams(plan, others, typer.echo)
        typer.echo(render_streams(outcome))
        if outcome.differences:
            typer.echo(f"the table is kept in {place}")
            raise typer.Exit(1)
    if folder is None:
        shutil.rmtree(place)


@contextmanager
def _place(folder: Path | None) -> Iterator[Path]:
    place = folder or Path(tempfile.mkdtemp(prefix="hudi-locks-soak-"))
    place.mkdir(parents=True, exist_ok=True)
    typer.echo(f"everything lies in {place}")
    yield place


@contextmanager
def _readers(bundle: str) -> Iterator[Readers]:
    if not bundle:
        yield OTHERS
        return
    with closing(Jvm(bundle, 9)) as jvm:
        yield {**OTHERS, f"JVM {bundle}": jvm.read_path}


def _finish(outcome: Outcome, place: Path, *, keep: bool) -> None:
    """Print the outcome; what went wrong is kept to be looked at."""
    typer.echo(render_outcome(outcome))
    if not outcome.ok:
        typer.echo(f"the table is kept in {place}")
        raise typer.Exit(1)
    if not keep:
        shutil.rmtree(place)


if __name__ == "__main__":
    with unwind_at_sigterm():
        app()
