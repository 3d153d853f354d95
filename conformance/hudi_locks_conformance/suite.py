"""The checks as a pytest class: subclass it, and give one fixture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hudi_locks import Capability
from hudi_locks_conformance.catalogue import load_checks, read_skips, select_checks
from hudi_locks_conformance.check import Check, Level
from hudi_locks_conformance.harness import Harness
from hudi_locks_conformance.pytest_plugin import add_markers
from hudi_locks_conformance.runner import Outcome, Status, run_check, say_unsupported

__all__ = ["Level", "LockProviderSuite"]


class LockProviderSuite:
    """One test for each check, with the check's id as its id.

    Example::

        class TestMine(LockProviderSuite):
            provider = "my.package:MyProvider"
            options = {"my.folder": "{tmp_path}/locks"}

    Where that is not enough, override the fixture `harness`.

    A check that is unsupported, or that lacks a hook, is skipped with its reason; with `claims` given, unsupported
    ones are not collected at all.

    Attributes:
        provider: As in `hoodie.write.lock.provider`.
        options: The keys that it needs; `{tmp_path}` stands for pytest's folder of that name.
        level: Up to which level to ask.
        only: Ids or groups to choose instead.
        claims: The provider's capabilities, where they are at hand before a harness is made.
        checks: Modules with checks of your own.
        skips: Why a check is left out, by its id; it is reported as skipped.
    """

    provider: ClassVar[str] = ""
    options: ClassVar[Mapping[str, str]] = {}
    level: ClassVar[Level] = Level.CORE
    only: ClassVar[tuple[str, ...]] = ()
    claims: ClassVar[frozenset[Capability] | None] = None
    checks: ClassVar[tuple[str, ...]] = ()
    skips: ClassVar[Mapping[str, str]] = {}
    _shared: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        cls._shared = {}

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Harness:
        """The provider to judge."""
        if not self.provider:
            pytest.fail("name a 'provider' in the class, or override the fixture 'harness'")
        options = {name: value.replace("{tmp_path}", str(tmp_path)) for name, value in self.options.items()}
        return Harness(self.provider, options)

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Give `test_conforms` one parameter for each check."""
        if "check" in metafunc.fixturenames:
            add_markers(metafunc.config)  # where plugins are not loaded by themselves
            own = load_checks(self.checks)
            read_skips([f"{name}={reason}" for name, reason in self.skips.items()], own)
            selected = select_checks(self.level, self.only, own=own)
            checks = [one for one in selected if self.claims is None or not say_unsupported(one, self.claims)]
            marked = [pytest.param(check, id=check.id, marks=pytest.mark.conformance(check.id)) for check in checks]
            metafunc.parametrize("check", marked)

    def test_conforms(self, harness: Harness, check: Check) -> None:
        """The provider does what the check demands."""
        harness.shared = self._shared  # what several checks judge is made once for the class
        report_outcome(run_check(check, harness, skip=self.skips.get(check.id, "")))


def report_outcome(outcome: Outcome) -> None:
    """Tell pytest how a check ended."""
    if outcome.status in (Status.UNSUPPORTED, Status.NOT_RUN, Status.SKIPPED):
        pytest.skip(f"{outcome.status.value}: {outcome.message}")
    if outcome.status is not Status.PASS:
        check = outcome.check
        pytest.fail(f"{check.id} {check.name}: {outcome.message}\n{check.demand}\n{check.why}", pytrace=False)
