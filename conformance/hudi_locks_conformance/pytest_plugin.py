"""Judges a lock provider from pytest's command line, without a test file; registers the marker of the kit's checks.

`pytest --lock-provider package.module:Class --lock-option key=value` collects one test for each check.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from hudi_locks_conformance.check import Check
    from hudi_locks_conformance.harness import Harness

__all__ = ["add_markers", "pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]

_LEVELS: Final = ("core", "lease", "fencing", "interop", "extra")


def pytest_addoption(parser: Any) -> None:
    """See pytest."""
    group = parser.getgroup("hudi-locks", "conformance of a lock provider")
    group.addoption("--lock-provider", metavar="NAME", help="judge this lock provider: a name, or package.module:Class")
    group.addoption("--lock-option", metavar="KEY=VALUE", action="append", default=[], help="an option for it")
    group.addoption("--lock-level", choices=_LEVELS, default="core", help="what to ask for (core)")
    group.addoption("--lock-only", metavar="IDS", default="", help="ids or groups of checks instead of a level")
    group.addoption("--lock-partner", metavar="NAME", default="", help="JVM lock holder for group M, such as hudi-jvm")
    group.addoption("--lock-checks", metavar="MODULE", action="append", default=[], help="a module of checks")
    group.addoption("--lock-skip", metavar="ID=REASON", action="append", default=[], help="leave a check out")
    group.addoption("--lock-seed", type=int, default=0, help="for everything that is drawn at random")


def pytest_configure(config: Any) -> None:
    """See pytest. With a provider to judge and no path typed, the folder's own tests are not collected."""
    add_markers(config)
    if config.getoption("lock_provider", None) and config.args_source is not config.ArgsSource.ARGS:
        config.args[:] = []


def add_markers(config: Any) -> None:
    """Let `--strict-markers` know the kit's."""
    config.addinivalue_line("markers", "conformance(id): a check of the lock provider conformance kit")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: Any, config: Any, items: list[Any]) -> None:
    """See pytest. Comes first, so that `-k` and `-m` choose among the checks too."""
    if config.getoption("lock_provider", None):
        node = _ProviderNode.from_parent(session, name="hudi_locks", nodeid="hudi_locks")
        items += node.collect()


class _ProviderNode(pytest.Collector):
    """The provider that was named on the command line."""

    def collect(self) -> Iterator[_CheckItem]:
        """One item for each check."""
        harness, (checks, skips) = _make_harness(self.config), _select(self.config)
        for check in checks:
            skip = skips.get(check.id, "")
            yield _CheckItem.from_parent(self, name=check.id, check=check, harness=harness, skip=skip)


class _CheckItem(pytest.Item):
    """One check."""

    def __init__(self, *, check: Check, harness: Harness, skip: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.skip = skip
        self.check = check
        self.harness = harness
        self.add_marker(pytest.mark.conformance(check.id))

    def runtest(self) -> None:
        """Judge."""
        from hudi_locks_conformance.runner import run_check
        from hudi_locks_conformance.suite import report_outcome

        report_outcome(run_check(self.check, self.harness, skip=self.skip))

    def reportinfo(self) -> tuple[Any, None, str]:
        """What failures are headed with."""
        return self.path, None, f"{self.check.id} {self.check.name}"


def _make_harness(config: Any) -> Harness:
    from hudi_locks.cli.options import gather
    from hudi_locks.errors import HudiLocksError
    from hudi_locks_conformance.harness import Harness

    try:
        settings = config.getoption("lock_option")
        given = gather(None, config.getoption("lock_provider"), settings=settings, config=None)
    except HudiLocksError as error:
        raise pytest.UsageError(str(error)) from error
    chosen = {"seed": config.getoption("lock_seed"), "partner": config.getoption("lock_partner")}
    return Harness(given.provider, given.without_provider, **chosen)


def _select(config: Any) -> tuple[list[Check], dict[str, str]]:
    """The checks to judge, and why some of them are skipped."""
    from hudi_locks import ConfigError
    from hudi_locks_conformance.catalogue import load_checks, read_skips, select_checks
    from hudi_locks_conformance.check import Level

    words = [word.strip() for word in config.getoption("lock_only").split(",") if word.strip()]
    try:
        own = load_checks(config.getoption("lock_checks"))
        skips = read_skips(config.getoption("lock_skip"), own)
        return select_checks(Level[config.getoption("lock_level").upper()], words, own=own), skips
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from error
    except KeyError as unknown:
        raise pytest.UsageError(f"--lock-only names no check: {unknown.args[0]}") from unknown
