"""What a provider has earned: the highest level whose checks, and those of all levels below it, are in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from hudi_locks_conformance.check import CHECKS, LADDER, Level
from hudi_locks_conformance.runner import Outcome, Status

__all__ = ["Badge", "find_badge", "find_version"]

_IN_ORDER: Final = frozenset({Status.PASS, Status.UNSUPPORTED})
_MOST_NAMED: Final = 4


@dataclass(frozen=True)
class Badge:
    """A level, earned under one version of the kit.

    Attributes:
        version: Of this package.
        level: The highest that was earned; None for none.
        extra: Whether the checks beside the ladder are in order too.
        failed: How many checks failed in the whole run, those of the provider's author among them.
        lacking: What keeps it from the next level; empty at the top.
        skipped: How many checks were left out on request; a level with one of them is not earned.
    """

    version: str
    level: Level | None
    extra: bool
    failed: int
    lacking: str
    skipped: int = 0

    def __str__(self) -> str:
        level = (self.level.word if self.level else "no level") + (" + extra" if self.extra else "")
        skipped = f" · {self.skipped} skipped" if self.skipped else ""
        return f"hudi-locks {self.version} · {level} · {self.failed} failed{skipped}"


def find_badge(outcomes: Sequence[Outcome]) -> Badge:
    """The badge that a run earned.

    A level counts when all of its checks were run, none failed, none is not-run, skipped or unknown, and at least one
    passed: what a class does not claim is no fault, and no merit either. Checks of others earn and cost no level.
    """
    by_id = {outcome.check.id: outcome for outcome in outcomes}
    earned, lacking = None, ""
    for level in LADDER:
        lacking = _say_lacking(level, by_id)
        if lacking:
            break
        earned = level
    failed = sum(outcome.status in (Status.FAIL, Status.ERROR) for outcome in outcomes)
    extra = earned is not None and not _say_lacking(Level.EXTRA, by_id)
    skipped = sum(outcome.status is Status.SKIPPED for outcome in outcomes)
    return Badge(find_version(), earned, extra, failed, lacking, skipped)


def _say_lacking(level: Level, by_id: Mapping[str, Outcome]) -> str:
    """Why a level is not earned; empty if it is."""
    wanted = [check.id for check in CHECKS.values() if check.level is level]
    mine = [by_id[name] for name in wanted if name in by_id]
    wrong = [f"{one.check.id} {one.status.value}" for one in mine if one.status not in _IN_ORDER]
    if not mine:
        return f"{level.word}: not asked for"
    if wrong:
        more = f" and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
        return f"{level.word}: {', '.join(wrong[:_MOST_NAMED])}{more}"
    if len(mine) < len(wanted):
        return f"{level.word}: only {len(mine)} of its {len(wanted)} checks were asked for"
    return "" if any(one.status is Status.PASS for one in mine) else f"{level.word}: not claimed"


def find_version() -> str:
    """This package's version, or that it runs from source."""
    try:
        return version("hudi-locks")
    except PackageNotFoundError:
        return "from source"
