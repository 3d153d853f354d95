"""One run as a value, from which every form of output is made."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hudi_locks_conformance._output.badge import Badge, find_badge
from hudi_locks_conformance._output.evidence import Evidence
from hudi_locks_conformance._output.exits import EXIT_CRASH, exit_status
from hudi_locks_conformance.check import CHECKS, Check, Level
from hudi_locks_conformance.harness import Harness
from hudi_locks_conformance.runner import Outcome
from hudi_locks_conformance.unclaimed import find_unclaimed

__all__ = ["Report"]


@dataclass(frozen=True)
class Report:
    """What a run came to.

    Attributes:
        harness: The provider that was judged.
        outcomes: How each check ended, in order.
        evidence: What was saved of a check, by its id.
        asked: The words that named the provider and its options on the command line; without them, all of its options.
    """

    harness: Harness
    outcomes: tuple[Outcome, ...]
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    asked: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """For the shell."""
        return exit_status(self.outcomes)

    @cached_property
    def badge(self) -> Badge:
        """What the provider earned."""
        return find_badge(self.outcomes)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Capabilities that the class could claim."""
        return tuple(find_unclaimed(self.harness))

    @property
    def levels(self) -> list[Level]:
        """The levels of which any check was run."""
        return [level for level in Level if any(one.check.level is level for one in self.outcomes)]

    @property
    def verdict(self) -> str:
        """In words."""
        said = {0: "CONFORMANT", 1: "NOT CONFORMANT", 3: "NOT JUDGED IN FULL", EXIT_CRASH: "THE KIT BROKE"}
        skipped = ", but for what was skipped" if self.status == 0 and self.badge.skipped else ""
        return f"{said[self.status]}{skipped} ({' '.join(level.word for level in self.levels)})"

    @property
    def provider(self) -> str:
        """Name and class of the provider."""
        return f"{self.harness.name} ({self.harness.kind.__module__}:{self.harness.kind.__qualname__})"

    def command(self, check: Check) -> str:
        """The command that runs one check again, without secrets."""
        harness = self.harness
        words = ["hudi-locks", "conformance", *(self.asked or _name_provider(harness))]
        words += ["--partner", harness.partner] if harness.partner else []
        words += [] if check.id in CHECKS else ["--checks", check.run.__module__]
        return shlex.join([*words, "--only", check.id, "--seed", str(harness.seed)])


def _name_provider(harness: Harness) -> tuple[str, ...]:
    """The words that name a provider and its options; secrets are hidden."""
    words = ["--provider", harness.name]
    for name, value in harness.shown_options.items():
        words += ["--option", f"{name}={value}"]
    return tuple(words)
