"""Runs the checks of storages, and says how each ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Final, TypedDict

from hudi_locks.clock import SystemClock
from hudi_locks.errors import HudiLocksError
from hudi_locks.storage import Storage, StorageCapabilities
from hudi_locks_conformance.check import NotRun, Violation
from hudi_locks_conformance.limits import Hung, Limit, call_within
from hudi_locks_conformance.runner import Status
from hudi_locks_conformance.storages import file_checks, ticket_checks  # noqa: F401  # declare their checks
from hudi_locks_conformance.storages.check import STORAGE_CHECKS, StorageBench, StorageCheck

__all__ = ["StorageOutcome", "judge_storage", "render_storage", "run_storage_check", "to_storage_values"]

_LIMIT: Final = Limit(300.0)
_Bench = Callable[[Storage], StorageBench]


@dataclass(frozen=True)
class StorageOutcome:
    """How one check of a storage ended.

    Attributes:
        check: Which.
        status: How.
        message: What was found, or what is missing.
        duration_s: Real seconds.
    """

    check: StorageCheck
    status: Status
    message: str = ""
    duration_s: float = 0.0


def judge_storage(
    storage: Storage,
    checks: Iterable[StorageCheck] = tuple(STORAGE_CHECKS.values()),
    *,
    limit: Limit = _LIMIT,
    bench: _Bench = StorageBench,
) -> list[StorageOutcome]:
    """Run checks in folders of their own below the storage's base path, and take away what they made."""
    return [run_storage_check(check, storage, limit=limit, bench=bench) for check in checks]


def run_storage_check(
    check: StorageCheck, storage: Storage, *, limit: Limit = _LIMIT, bench: _Bench = StorageBench
) -> StorageOutcome:
    """Run one check."""
    if check.needs and not getattr(storage.capabilities, check.needs):
        return StorageOutcome(check, Status.UNSUPPORTED, f"the storage does not promise {check.needs}")
    began_s = SystemClock().monotonic()
    try:
        status, message = call_within(limit, lambda: _judge(check, bench(storage)))
    except Hung as endless:
        status, message = Status.FAIL, str(endless)
    return StorageOutcome(check, status, message, SystemClock().monotonic() - began_s)


def _judge(check: StorageCheck, bench: StorageBench) -> tuple[Status, str]:
    try:
        check.run(bench)
        bench.clear()
    except NotRun as missing:
        return Status.NOT_RUN, str(missing)
    except Violation as violation:
        return Status.FAIL, str(violation)
    except Exception as error:  # noqa: BLE001  # whatever a store raises where the contract has none is its outcome
        return Status.FAIL, f"{type(error).__name__}: {error}" if isinstance(error, HudiLocksError) else repr(error)
    return Status.PASS, ""


def render_storage(storage: Storage, outcomes: Sequence[StorageOutcome], *, verbose: bool) -> str:
    """How a run ended, for people."""
    kept = [field.name for field in fields(StorageCapabilities) if getattr(storage.capabilities, field.name)]
    count = Counter(outcome.status for outcome in outcomes)
    lines = [f"storage    {storage.base} ({type(storage).__qualname__})", f"promises   {' '.join(kept) or 'nothing'}"]
    for outcome in outcomes:
        lines += _explain(outcome, verbose=verbose)
    words = "   ".join(f"{count[status]} {status.value}" for status in Status if count[status])
    lines.append(f"checks     {words}   ({sum(outcome.duration_s for outcome in outcomes):.1f} s)")
    return "\n".join([*lines, f"verdict    {'NOT CONFORMANT' if count[Status.FAIL] else 'CONFORMANT'}"])


def _explain(outcome: StorageOutcome, *, verbose: bool) -> list[str]:
    check, title = outcome.check, f"{outcome.check.id} {outcome.check.name}"
    if outcome.status is Status.FAIL:
        return [
            f"FAIL  {title}      {outcome.message}",
            f"      demanded        {check.demand}",
            f"      why it matters  {check.why}",
        ]
    if verbose or outcome.status is not Status.PASS:
        return [f"{outcome.status.value:11} {title}" + (f": {outcome.message}" if outcome.message else "")]
    return []


class StorageCheckValues(TypedDict):
    """How one check of a storage ended.

    Attributes:
        id: Such as SF6.
        name: In words joined by hyphens.
        status: pass, fail, unsupported or not-run.
        message: Why it did not pass; "" if it did.
        seconds: How long it took.
    """

    id: str
    name: str
    status: str
    message: str
    seconds: float


StorageValues = TypedDict(
    "StorageValues", {"storage": str, "class": str, "conformant": bool, "checks": list[StorageCheckValues]}
)
StorageValues.__doc__ = """How the store of a table was judged, with --storage.

    Attributes:
        storage: Where it is.
        class: Of the storage, with its module.
        conformant: Whether no check failed.
        checks: How each check ended.
    """


def to_storage_values(storage: Storage, outcomes: Sequence[StorageOutcome]) -> StorageValues:
    """How a run ended, for programs."""
    return {
        "storage": storage.base,
        "class": f"{type(storage).__module__}:{type(storage).__qualname__}",
        "conformant": not any(outcome.status is Status.FAIL for outcome in outcomes),
        "checks": [
            {
                "id": outcome.check.id,
                "name": outcome.check.name,
                "status": outcome.status.value,
                "message": outcome.message,
                "seconds": round(outcome.duration_s, 3),
            }
            for outcome in outcomes
        ],
    }
