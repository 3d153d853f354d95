"""Runs checks and takes down how each ended."""

from __future__ import annotations

import enum
import logging
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from hudi_locks import BackendUnavailable, Capability, LockLost, LockScope, LossReason, SystemClock
from hudi_locks_conformance.bench import Bench, close_bench
from hudi_locks_conformance.check import Check, Inapplicable, Late, Mode, NotRun, Stuck, Violation
from hudi_locks_conformance.harness import Harness
from hudi_locks_conformance.history import History
from hudi_locks_conformance.limits import Hung, Limit, StallWatch, call_within
from hudi_locks_conformance.secrets import hide_secrets

__all__ = ["LIMIT", "Outcome", "Status", "is_reachable", "run_check", "run_checks", "say_unsupported"]

LIMIT: Final = Limit(300.0)
"""For one check: several times what the slowest one takes on a starved machine."""
_REACH: Final = Limit(60.0)
_MOST_HUNG: Final = 3
_logger = logging.getLogger(__name__)
_OWN_FOLDER = Path(__file__).parent


class Status(enum.Enum):
    """How a check ended. Only PASS and UNSUPPORTED let a provider reach a level."""

    PASS = "pass"  # noqa: S105  # no secret
    FAIL = "fail"
    ERROR = "error"
    UNSUPPORTED = "unsupported"
    NOT_RUN = "not-run"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Outcome:
    """How one check ended.

    Attributes:
        check: Which.
        status: How.
        message: What was found, or what is missing.
        duration_s: Real seconds.
        virtual: Whether the kit moved the time.
        notes: What else a person should know.
        history: What happened, if the check recorded it.
        hung: Whether it did not come back, and goes on on a thread that nobody can end.
    """

    check: Check
    status: Status
    message: str = ""
    duration_s: float = 0.0
    virtual: bool = False
    notes: tuple[str, ...] = ()
    history: History = field(default_factory=History, compare=False)
    hung: bool = False


def is_reachable(harness: Harness) -> str | None:
    """None if the lock service answers, else what it said; silence for a minute is an answer too."""
    try:
        return call_within(_REACH, lambda: _ask_service(harness))
    except Hung as hung:
        return f"holder() {hung}"


def _ask_service(harness: Harness) -> str | None:
    provider = harness.kind(harness.options, clock=SystemClock(), on_lost=lambda *_: None)
    try:
        provider.holder(LockScope.table())
    except BackendUnavailable as error:
        return str(error)
    finally:
        provider.close()
    return None


def run_checks(
    checks: Iterable[Check],
    harness: Harness,
    on_outcome: Callable[[Outcome], None] = lambda _: None,
    *,
    limit: Callable[[Check], Limit] = lambda _: LIMIT,
    skips: Mapping[str, str] = MappingProxyType({}),
) -> list[Outcome]:
    """Run all, in order; none is left out because another failed, but because three did not come back.

    Those whose id `skips` names are not run; its reason is told.
    """
    outcomes: list[Outcome] = []
    for check in checks:
        hung = [outcome.check.id for outcome in outcomes if outcome.hung]
        if len(hung) < _MOST_HUNG:
            outcomes.append(run_check(check, harness, limit=limit(check), skip=skips.get(check.id, "")))
        else:
            outcomes.append(Outcome(check, Status.NOT_RUN, f"left out, since {', '.join(hung)} did not come back"))
        on_outcome(outcomes[-1])
    return outcomes


def run_check(check: Check, harness: Harness, *, limit: Limit = LIMIT, skip: str = "") -> Outcome:
    """Run one check on a bench of its own, and on a thread of its own, which is left alone after the limit.

    With `skip`, the reason why not, it is not run, and not passed.

    A check that ends because the lock service did not answer, or took too long, is run once more, and so is one that
    fails while this process stood still, since the kit may have lost what it held: a busy machine is no fault of the
    provider. A note tells of it. What it says shows no secret option.
    """
    outcome = Outcome(check, Status.SKIPPED, skip) if skip else _run_patiently(check, harness, limit)
    secrets = harness.secrets
    notes = tuple(hide_secrets(note, secrets) for note in outcome.notes)
    return replace(outcome, message=hide_secrets(outcome.message, secrets), notes=notes)


def _run_patiently(check: Check, harness: Harness, limit: Limit) -> Outcome:
    reason = say_unsupported(check, harness.claims)
    if reason:
        return Outcome(check, Status.UNSUPPORTED, reason)
    try:
        return _run_once(check, harness, limit)
    except (BackendUnavailable, Late, LockLost) as error:
        note = f"run once more, since a busy machine may be the reason of what came first: {error}"
    try:
        outcome = _run_once(check, harness, limit)
    except (BackendUnavailable, Late, LockLost) as error:
        return Outcome(check, *_explain(error), notes=(note,), hung=isinstance(error, Stuck))
    return replace(outcome, notes=(*outcome.notes, note))


def _run_once(check: Check, harness: Harness, limit: Limit) -> Outcome:
    """How it ended.

    Raises:
        BackendUnavailable: Where the check did not expect it.
        LockLost: Likewise, since the lock service did not answer.
        Late: Something took too long, of real time.
    """
    benches, began_s, hung = list[Bench](), SystemClock().monotonic(), False

    def judge() -> tuple[Status, str]:
        benches.append(Bench(harness, check.id, real_time=check.mode is Mode.REAL))
        return _judge(check, benches[0])

    try:
        status, message = call_within(limit, judge)
    except Hung as endless:
        status, message, hung = Status.FAIL, str(endless), True
    took_s, bench = SystemClock().monotonic() - began_s, benches[0]
    return Outcome(check, status, message, took_s, bench.is_virtual, tuple(bench.notes), bench.history, hung)


def say_unsupported(check: Check, claims: frozenset[Capability]) -> str:
    """Why a class with these claims is not asked for `check`; empty if it is."""
    missing = sorted(claim.name for claim in check.needs - claims)
    if missing:
        return f"{', '.join(missing)} is not claimed"
    wider = {Capability.SCOPE_PROCESSES, Capability.SCOPE_HOSTS}
    if check.beyond_process and Capability.SCOPE_THREADS in claims and not wider & claims:
        return "only exclusion among threads is claimed"
    return ""


def _judge(check: Check, bench: Bench) -> tuple[Status, str]:
    try:
        _run_watched(check, bench)
    except Inapplicable as reason:
        return Status.UNSUPPORTED, str(reason)
    except NotRun as missing:
        return Status.NOT_RUN, str(missing)
    except Exception as error:  # becomes the outcome, with the place where it was raised
        if _may_pass(error):
            raise
        return _explain(error)
    return Status.PASS, ""


def _may_pass(error: Exception) -> bool:
    """Whether a busy machine may be the reason: something came too late, or not at all."""
    silent = isinstance(error, LockLost) and error.facts.get("reason") is LossReason.UNREACHABLE
    return silent or isinstance(error, BackendUnavailable | Late)


def _explain(error: Exception) -> tuple[Status, str]:
    if isinstance(error, Violation):
        return Status.FAIL, str(error)
    return (Status.ERROR if _is_own(error) else Status.FAIL), _say_unexpected(error)


def _run_watched(check: Check, bench: Bench) -> None:
    """Sessions and leases of the kit may run out while it does not run; on virtual time those that a server keeps."""
    with StallWatch() as watch:
        try:
            _run_and_close(check, bench)
        except (LockLost, Violation) as error:
            if isinstance(error, Late) or not watch.has_stalled:
                raise
            raise Late(f"{error}; the machine stood still for {watch.longest_s:.1f} s meanwhile") from error


def _run_and_close(check: Check, bench: Bench) -> None:
    try:
        check.run(bench)
    except Exception:
        try:
            close_bench(bench)
        except Exception:  # what the check found says more than what is left of it
            _logger.warning("%s failed, and so did its clean-up", check.id, exc_info=True)
        raise
    close_bench(bench)


def _is_own(error: Exception) -> bool:
    """Whether the kit itself broke: no frame outside it, its example providers being outside."""
    files = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    return all(file.is_relative_to(_OWN_FOLDER) and not _is_example(file) for file in files)


def _is_example(file: Path) -> bool:
    return file.name == "sample.py" or file.parent.name == "broken"


def _say_unexpected(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"unexpected {type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
