"""Judge a lock provider: `hudi-locks conformance`."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from hudi_locks import Capability
from hudi_locks.cli.options import ConfigFile, Provider, Settings, gather
from hudi_locks.cli.output import prints
from hudi_locks_conformance._output import (
    EXIT_UNJUDGED,
    EXIT_UNREACHABLE,
    EXIT_USAGE,
    EXIT_VIOLATION,
    Report,
    describe_check,
    render_junit,
    render_page,
    render_text,
    save_evidence,
    save_history,
    to_values,
)
from hudi_locks_conformance._output.values import ReportValues
from hudi_locks_conformance.catalogue import load_checks, read_skips, select_checks
from hudi_locks_conformance.check import Check, Level, NotRun, Violation
from hudi_locks_conformance.harness import Harness
from hudi_locks_conformance.history import MODELS, History, Model, draw_text, find_failing_prefix, judge
from hudi_locks_conformance.limits import Limit
from hudi_locks_conformance.runner import LIMIT, is_reachable, run_checks
from hudi_locks_conformance.secrets import hide_secrets, show_options
from hudi_locks_conformance.servers import KINDS, Server, start_server
from hudi_locks_conformance.storages.command import StorageRun
from hudi_locks_conformance.storages.judging import StorageValues
from hudi_locks_conformance.stress import render_result, run_stress, stress_values
from hudi_locks_conformance.stress.result import StressValues

__all__ = ["command"]

command: typer.Typer = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


ModelName = Enum("ModelName", {name.upper(): name for name in MODELS}, type=str)  # type: ignore[misc]  # from a table


class LevelName(str, Enum):
    """What a provider can be asked for on the command line."""

    CORE = "core"
    LEASE = "lease"
    FENCING = "fencing"
    INTEROP = "interop"
    EXTRA = "extra"


@command.command()
@prints(ReportValues | StressValues | StorageValues)
def conformance(
    provider: Provider = None,
    option: Settings = None,
    config: ConfigFile = None,
    level: Annotated[
        LevelName | None, typer.Option(help="Core if absent; each contains those below it. Extra: fencing and more.")
    ] = None,
    server: Annotated[str, typer.Option(metavar="NAME", help="Start this lock service for the run.")] = "",
    storage: Annotated[
        str, typer.Option(metavar="PATH", help="Judge what the store of this base path promises, and no provider.")
    ] = "",
    only: Annotated[str, typer.Option(metavar="IDS", help="Ids or groups, separated by commas.")] = "",
    partner: Annotated[str, typer.Option(metavar="hudi-jvm|CLASS", help="JVM lock holder for group M.")] = "",
    own: Annotated[
        list[str] | None, typer.Option("--checks", metavar="MODULE", help="A module with checks of your own.")
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option("--skip", metavar="ID=REASON", help="Leave a check out, and say so.")
    ] = None,
    processes: Annotated[int, typer.Option(min=2, metavar="N", help="Contenders of a storm.")] = 4,
    stress: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Contend for so long, with pauses and kills.")
    ] = 0,
    limit: Annotated[float, typer.Option(metavar="SECONDS", min=1, help="For each check.")] = LIMIT.longest_s,
    seed: Annotated[int, typer.Option(help="For everything that is drawn at random.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,  # noqa: FBT002
    json_file: Annotated[Path | None, typer.Option(metavar="FILE", help="Write that object to a file.")] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JUnit XML.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write one page for people.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Name every check.")] = False,  # noqa: FBT002
    list_only: Annotated[bool, typer.Option("--list", help="Print the checks.")] = False,  # noqa: FBT002
    history: Annotated[Path, typer.Option(help="Folder for the histories of failed checks.")] = Path("conformance-out"),
    recheck: Annotated[Path | None, typer.Option(exists=True, help="Judge a saved history again.")] = None,
    model: Annotated[ModelName | None, typer.Option(help="For --recheck; else its tokens decide.")] = None,
) -> None:
    """Judge a lock provider, or with --storage the store of a table.

    Exit status: 0 conformant at the level; 1 a violation; 2 a wrong command line; 3 some check of the level could not
    be judged; 4 the lock service cannot be reached; 70 the kit itself broke.

    Example: hudi-locks conformance -p zookeeper --server zookeeper --level interop
    """
    if recheck is not None:
        raise typer.Exit(_recheck(recheck, MODELS[model.value] if model else None))
    if storage:
        judging = StorageRun(storage, only, limit, as_json=as_json, verbose=verbose)
        raise typer.Exit(judging.show_checks() if list_only else judging.run(option or [], config))
    more = load_checks(own or [])
    if list_only:
        checks = _select(level, only, more)
        typer.echo("\n".join(describe_check(found) for found in checks))
        return
    checks, skips = _select(level or LevelName.CORE, only, more), read_skips(skip or [], more)
    with _start(server) as running:
        settings = [f"{key}={value}" for key, value in running.options.items()] if running else []
        given = gather(None, provider or _serves(server), settings=settings + (option or []), config=config)
        harness = Harness(
            given.provider, given.without_provider, seed=seed, contenders=processes, partner=partner, server=running
        )
        _expect_reachable(harness)
        if stress:
            raise typer.Exit(_stress(harness, stress, history, as_json=as_json, json_file=json_file))
        outcomes = run_checks(checks, harness, limit=partial(_limit, limit), skips=skips)
    fenced = Capability.FENCING in harness.claims
    asked = ("--server", server, *_repeat(option, harness)) if server else ()
    report = Report(harness, tuple(outcomes), save_evidence(outcomes, history, fenced=fenced), asked)
    for path, render in {json_file: _render_json, junit: render_junit, html: render_page}.items():
        _save(path, partial(render, report))
    typer.echo(_render_json(report) if as_json else render_text(report, verbose=verbose))
    raise typer.Exit(report.status)


def _limit(longest_s: float, check: Check) -> Limit:
    """A limit, and a word on the standard error from time to time as long as the check is under way."""
    said = f"{check.id} {check.name}: %.0f s so far, at most {longest_s:g}"
    every_s = min(Limit.every_s, longest_s / 2)
    return Limit(longest_s, every_s, on_wait=lambda took_s: typer.echo(said % took_s, err=True))


def _repeat(settings: list[str] | None, harness: Harness) -> list[str]:
    """What was typed as --option, secrets hidden."""
    pairs = dict(setting.partition("=")[::2] for setting in settings or [])
    short, secret = harness.kind.short_options, harness.kind.secret_options
    shown = show_options(pairs, {*secret, *(word for word, name in short.items() if name in secret)})
    return [word for name, value in shown.items() for word in ("--option", f"{name}={value}")]


def _render_json(report: Report) -> str:
    return json.dumps(to_values(report), indent=1)


def _save(path: Path | None, render: Callable[[], str]) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(), encoding="utf-8")


@contextmanager
def _start(server: str) -> Iterator[Server | None]:
    """The server of that name, as long as the block runs; None without a name."""
    if not server:
        yield None
        return
    if server not in KINDS:
        typer.echo(f"error: --server {server} is none of {', '.join(sorted(KINDS))}", err=True)
        raise typer.Exit(EXIT_USAGE)
    with start_server(KINDS[server]) as running:
        yield running


def _serves(server: str) -> str | None:
    return KINDS[server].provider if server else None


def _expect_reachable(harness: Harness) -> None:
    logging.getLogger("hudi_locks").addHandler(logging.NullHandler())  # planted failures are not news
    unreachable = is_reachable(harness)
    if unreachable is not None:
        said = hide_secrets(unreachable, harness.secrets)
        typer.echo(f"error: the lock service cannot be reached: {said}", err=True)
        raise typer.Exit(EXIT_UNREACHABLE)


def _stress(harness: Harness, duration_s: float, folder: Path, *, as_json: bool, json_file: Path | None) -> int:
    try:
        result = run_stress(harness, duration_s)
    except (NotRun, Violation) as ended:
        typer.echo(f"verdict    {ended} (stress)", err=as_json)
        return EXIT_UNJUDGED if isinstance(ended, NotRun) else EXIT_VIOLATION
    values = json.dumps(stress_values(result), indent=1)
    _save(json_file, lambda: values)
    typer.echo(values if as_json else render_result(result))
    if not result.ok:
        saved = save_history(result.history, folder / "stress.history")
        typer.echo(f"evidence   {saved.path}   (hudi-locks conformance --recheck {saved.path})", err=as_json)
    return {True: 0, False: EXIT_VIOLATION, None: EXIT_UNJUDGED}[result.ok]


def _select(level: LevelName | None, only: str, own: list[Check]) -> list[Check]:
    words = [
        word.strip().upper() if len(word.strip()) == 1 else word.strip() for word in only.split(",") if word.strip()
    ]
    try:
        return select_checks(Level[level.name] if level else None, words, own=own)
    except KeyError as unknown:
        typer.echo(f"error: --only names no check: {unknown.args[0]}; see --list", err=True)
        raise typer.Exit(EXIT_USAGE) from None


def _recheck(path: Path, model: Model | None) -> int:
    try:
        history = History.load(path)
    except ValueError as error:
        typer.echo(f"error: {error}", err=True)
        return EXIT_USAGE
    judgement, prefix = judge(history, model), find_failing_prefix(history, model)
    if prefix is not None:
        typer.echo(draw_text(prefix))
    for overlap in judgement.overlaps:
        typer.echo(str(overlap))
    typer.echo(str(judgement))
    return {True: 0, False: EXIT_VIOLATION, None: EXIT_UNJUDGED}[judgement.ok]
