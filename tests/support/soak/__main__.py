"""`python -m soak`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from other_readers import Jvm

from hudi_locks.cli.ending import unwind_at_sigterm
from soak.duels import SERVICES, play_all, render_table
from soak.fleet import FleetPlan
from soak.judgement import Readers
from soak.plan import OPTIONS
from soak.readers import ON_DISK, OURS, open_readers
from soak.running import SoakPlan
from soak.services import LOCKS, LockService, describe_service, run_service
from soak.soaking import Outcome, render_outcome, soak, soak_fleet
from soak.stores import STORES, Store, on_disk, run_store
from soak.streams import StreamsPlan, render_streams, soak_streams

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
Commits = Annotated[int, typer.Option(help="The run ends after so many.")]
Seed = Annotated[int, typer.Option(help="Of all that is drawn.")]
Folder = Annotated[Path | None, typer.Option(help="For the table and the log; it is kept. A temporary one if absent.")]
Bundle = Annotated[str, typer.Option(help="Version of the JVM bundle that reads the table; empty for none.")]


@app.command()
def writers(
    lock: Annotated[str, typer.Option(help=f"One of {', '.join(LOCKS)}.")] = "filesystem",
    store: Annotated[str, typer.Option(help=f"Where the table lies, one of {', '.join(STORES)}.")] = "disk",
    processes: Annotated[int, typer.Option(help="Writers at a time.")] = 8,
    commits: Commits = 500,
    seed: Seed = 1,
    folder: Folder = None,
    bundle: Bundle = "1.2.0",
) -> None:
    """Writers of this package with skewed clocks, killed and stopped at random, against a serial replay."""
    _refuse_strangers(lock, store)
    with _place(folder) as place, ExitStack() as stack:
        where = stack.enter_context(run_store(store, place, seed=seed))
        service = stack.enter_context(_run_lock(lock, store, where))
        readers = stack.enter_context(open_readers(store, where, bundle))
        options = {**OPTIONS, **service.options, **where.options}
        plan = SoakPlan(where, place / "events.jsonl", options, service.lease_s, processes, commits, seed)
        outcome = soak(plan, readers, typer.echo)
        _finish(outcome, place, keep=folder is not None)


@app.command()
def mixed(
    commits: Annotated[int, typer.Option(help="Of each of the four writers.")] = 50,
    seed: Seed = 1,
    folder: Folder = None,
    bundle: Annotated[list[str] | None, typer.Option(help="Of the JVM writers; 1.2.0 twice if absent.")] = None,
    metadata: Annotated[bool, typer.Option(help="With a metadata table, which the JVM makes.")] = False,
) -> None:
    """Two writers of this package and two of JVM Hudi, with one ZooKeeper lock, against a serial replay."""
    with _place(folder) as place, ExitStack() as stack:
        path = str(place / "table")
        jvms = [stack.enter_context(closing(Jvm(version, 9))) for version in bundle or ["1.2.0", "1.2.0"]]
        asked = {"hoodie.metadata.enable": str(metadata).lower()}
        theirs: Readers = {f"JVM {jvm.version}": partial(jvm.read_path, options=asked) for jvm in jvms}
        with run_service("zookeeper", path) as service:
            plan = FleetPlan(path, place / "events.jsonl", service, commits, seed, keeps_metadata=metadata)
            outcome = soak_fleet(plan, jvms, {**ON_DISK, **theirs}, typer.echo)
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
    with _place(folder) as place, ExitStack() as stack:
        path = str(place / "table")
        service = stack.enter_context(run_service(lock, path))
        readers = stack.enter_context(open_readers("disk", on_disk(path), bundle))
        plan = StreamsPlan(place, service.options, writers, minutes, rate, seed=seed)
        outcome = soak_streams(plan, {name: readers[name] for name in readers if name != OURS}, typer.echo)
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


def _refuse_strangers(lock: str, store: str) -> None:
    if lock not in LOCKS:
        raise typer.BadParameter(f"{lock} is none of {', '.join(LOCKS)}")
    if store not in STORES:
        raise typer.BadParameter(f"{store} is none of {', '.join(STORES)}")
    if lock == "filesystem" and store != "disk":
        raise typer.BadParameter("the filesystem lock lies beside a table on the disk")


@contextmanager
def _run_lock(lock: str, store: str, where: Store) -> Iterator[LockService]:
    """The lock service; the storage lock of a table on S3 lies beside it, in the same bucket."""
    if lock == "versitygw" and store == "s3":
        yield describe_service(lock, where.options)
        return
    with run_service(lock, where.path) as service:
        yield service


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
