"""A contender of a storm whose lock service is slow to answer is no violation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hudi_locks_conformance import worker
from hudi_locks_conformance.check import Violation
from hudi_locks_conformance.history import find_overlaps
from hudi_locks_conformance.sample import SampleLockProvider
from hudi_locks_conformance.storm import run_in_process
from hudi_locks_conformance.worker import WorkSpec, work

from hudi_locks import BackendUnavailable, Lease, SystemClock


class Cut(SampleLockProvider):
    """Answers every other release only."""

    asked = 0

    def release(self, lease: Lease) -> None:
        Cut.asked += 1
        if Cut.asked % 2:
            raise BackendUnavailable("ConnectionLoss")
        super().release(lease)


def make(folder: Path) -> tuple[WorkSpec, Any]:
    for name in ("counter", "listed"):
        (folder / name).touch()
    options = {"hoodie.sample.folder": str(folder / "locks")}
    spec = WorkSpec("one", "of this module", options, None, None, 5, str(folder), 1)
    return spec, Cut(options, clock=SystemClock(), on_lost=lambda *_: None)


def test_a_release_without_an_answer_is_asked_for_again(tmp_path: Path) -> None:
    history = work(*make(tmp_path))
    assert len(history.holds()) == 5
    assert find_overlaps(history) == []
    assert int((tmp_path / "counter").read_text()) == 5


def test_a_release_that_is_never_answered_ends_the_contender(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise BackendUnavailable("ConnectionLoss")

    monkeypatch.setattr(worker, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(Cut, "release", fail)
    with pytest.raises(BackendUnavailable, match="ConnectionLoss"):
        work(*make(tmp_path))


@pytest.mark.parametrize(
    ("raised", "kind"),
    [("hudi_locks.BackendUnavailable", BackendUnavailable), ("ValueError", Violation)],
    ids=["no-answer", "another-error"],
)
def test_why_a_process_failed_is_told_by_the_kind_of_error(raised: str, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"a process failed: .*: lost"):
        run_in_process(["-c", f"import hudi_locks; raise {raised}('lost')"])
