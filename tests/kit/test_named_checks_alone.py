"""The guard on the guard: a faulty provider fails the checks named for it, and no others but those with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_locks_conformance import CHECKS, Harness, Level, Mode, Status, run_check, select_checks
from hudi_locks_conformance.broken import BROKEN
from hudi_locks_conformance.broken.clocks import Watching
from hudi_locks_conformance.broken.companions import COMPANIONS
from hudi_locks_conformance.broken.fencing import Fenced
from hudi_locks_conformance.broken.notices import Sessioned, Telling
from hudi_locks_conformance.sample import SampleLockProvider

from hudi_locks import LockProvider

SOUND = (Fenced, SampleLockProvider, Sessioned, Telling, Watching)
WRONG = (Status.FAIL, Status.ERROR)
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore:renewed:UserWarning"),  # a fault of one of them, which L3 judges
]


def make_harness(kind: type[LockProvider], folder: Path) -> Harness:
    return Harness(f"{kind.__module__}:{kind.__qualname__}", {"hoodie.sample.folder": str(folder / "locks")})


@pytest.mark.parametrize(("kind", "named"), BROKEN, ids=[kind.__name__ for kind, _ in BROKEN])
def test_only_what_is_named_fails(kind: type[LockProvider], named: tuple[str, ...], tmp_path: Path) -> None:
    harness = make_harness(kind, tmp_path)
    expected = {*named, *COMPANIONS.get(kind.__name__, {})}
    quick = [check for check in select_checks(Level.EXTRA) if check.mode is not Mode.REAL and check.id not in expected]
    surprises = [check for check in quick if run_check(check, harness).status in WRONG]
    again = [run_check(check, make_harness(kind, tmp_path / check.id)) for check in surprises]  # a busy machine passes
    assert [outcome for outcome in again if outcome.status in WRONG] == []


def test_companions_are_of_faults_and_checks_that_exist() -> None:
    assert set(COMPANIONS) <= {kind.__name__ for kind, _ in BROKEN}
    assert all(set(excused) <= set(CHECKS) for excused in COMPANIONS.values())


@pytest.mark.parametrize("kind", SOUND, ids=[kind.__name__ for kind in SOUND])
def test_what_has_no_fault_fails_nothing(kind: type[LockProvider], tmp_path: Path) -> None:
    harness = make_harness(kind, tmp_path)
    outcomes = [run_check(check, harness) for check in select_checks(Level.EXTRA)]
    assert [outcome for outcome in outcomes if outcome.status in WRONG] == []
