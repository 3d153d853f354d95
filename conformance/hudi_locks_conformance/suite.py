"""The checks as a pytest class: subclass it, and give one fixture."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from hudi_locks import Capability
from hudi_locks_conformance.catalogue import select_checks
from hudi_locks_conformance.check import Check, Level
from hudi_locks_conformance.harness import Harness
from hudi_locks_conformance.pytest_plugin import pytest_configure
from hudi_locks_conformance.runner import Outcome, Status, run_check, say_unsupported

__all__ = ["LockProviderSuite"]


class LockProviderSuite:
    """One test for each check, with the check's id as its id.

    Example::

        class TestMine(LockProviderSuite):
            @pytest.fixture
            def harness(self, tmp_path):
                return Harness("my.package:MyProvider", {"my.folder": str(tmp_path)})

    A check that is unsupported, or that lacks a hook, is skipped with its reason; with `claims` given, unsupported
    ones are not collected at all.

    Attributes:
        level: Up to which level to ask.
        only: Ids or groups to choose instead.
        claims: The provider's capabilities, where they are at hand before a harness is made.
    """

    level: ClassVar[Level] = Level.CORE
    only: ClassVar[tuple[str, ...]] = ()
    claims: ClassVar[frozenset[Capability] | None] = None
    _shared: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        cls._shared = {}

    @pytest.fixture
    def harness(self) -> Harness:
        """The provider to judge; to be overridden."""
        pytest.fail("override the fixture 'harness': return Harness(provider, options)")

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Give `test_conforms` one parameter for each check."""
        if "check" in metafunc.fixturenames:
            pytest_configure(metafunc.config)  # where plugins are not loaded by themselves
            selected = select_checks(self.level, self.only)
            checks = [one for one in selected if self.claims is None or not say_unsupported(one, self.claims)]
            marked = [pytest.param(check, id=check.id, marks=pytest.mark.conformance(check.id)) for check in checks]
            metafunc.parametrize("check", marked)

    def test_conforms(self, harness: Harness, check: Check) -> None:
        """The provider does what the check demands."""
        harness.shared = self._shared  # what several checks judge is made once for the class
        report_outcome(run_check(check, harness))


def report_outcome(outcome: Outcome) -> None:
    """Tell pytest how a check ended."""
    if outcome.status in (Status.UNSUPPORTED, Status.NOT_RUN):
        pytest.skip(f"{outcome.status.value}: {outcome.message}")
    if outcome.status is not Status.PASS:
        check = outcome.check
        pytest.fail(f"{check.id} {check.name}: {outcome.message}\n{check.demand}\n{check.why}", pytrace=False)
