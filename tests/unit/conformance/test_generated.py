"""Walks and interleavings: the same seed gives the same run, and what failed can be judged again."""

from __future__ import annotations

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import ClassVar

import pytest
from hudi_locks_conformance import Harness, History, Status, find_overlaps, run_check
from hudi_locks_conformance._output import save_evidence
from hudi_locks_conformance.bench import Bench, close_bench
from hudi_locks_conformance.catalogue import select_checks
from hudi_locks_conformance.check import Violation
from hudi_locks_conformance.faults.scheduler import Scheduler
from hudi_locks_conformance.sample import SampleLockProvider

from hudi_locks import BackendUnavailable, Lease, LockScope, Owner


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness("hudi_locks_conformance.sample:SampleLockProvider", {"hoodie.sample.folder": str(tmp_path)}, seed=9)


def interleave(harness: Harness, seed: int) -> list[tuple[str, str]]:
    bench = Bench(harness, "N2")
    scheduler = Scheduler(bench, Random(seed))

    def work() -> None:
        for name in ("read", "write", "remove"):
            scheduler.step(name)

    scheduler.run({"a": work, "b": work})
    close_bench(bench)
    return scheduler.trace


def test_a_seed_decides_the_order_and_another_one_decides_otherwise(harness: Harness) -> None:
    assert interleave(harness, 1) == interleave(harness, 1)
    assert len({tuple(interleave(harness, seed)) for seed in range(6)}) > 1
    steps = [step for name, step in interleave(harness, 1) if name == "a"]
    assert steps == ["begin", "read", "write", "remove"]


def test_what_a_client_raises_comes_out_and_the_others_are_let_go(harness: Harness) -> None:
    bench = Bench(harness, "N2")
    scheduler = Scheduler(bench, Random(1))

    def fail() -> None:
        raise Violation("planted")

    with pytest.raises(Violation, match="planted"):
        scheduler.run({"a": fail, "b": lambda: scheduler.step("on")})


@pytest.mark.parametrize(("kind", "check_id"), [("records:NotAtomic", "N2"), ("timing:ExpiresEarly", "N1")])
def test_a_failed_run_is_saved_repeats_and_can_be_judged_again(kind: str, check_id: str, tmp_path: Path) -> None:
    name, (check,) = f"hudi_locks_conformance.broken.{kind}", select_checks(only=[check_id])
    runs = [
        run_check(check, Harness(name, {"hoodie.sample.folder": str(tmp_path / str(run))}, seed=3)) for run in range(2)
    ]
    assert runs[0].status is Status.FAIL
    assert "(seed 3, " in runs[0].message
    assert runs[1].message.partition(" (seed")[2] == runs[0].message.partition(" (seed")[2]
    saved = save_evidence(runs[:1], tmp_path / "evidence")
    assert find_overlaps(History.load(saved[check_id].path))


class UnansweredOnce(SampleLockProvider):
    """Its service leaves one request without an answer."""

    left: ClassVar[list[str]]

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        if self.left:
            raise BackendUnavailable(self.left.pop())
        return super().try_acquire(scope, owner, timeout_s)


SERVER = SimpleNamespace(port=9, kind=SimpleNamespace(options=lambda _: {}))


@pytest.mark.parametrize(("server", "expected"), [(SERVER, Status.PASS), (None, Status.FAIL)])
def test_a_walk_goes_on_where_a_server_leaves_a_request_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: object, expected: Status
) -> None:
    monkeypatch.setattr(UnansweredOnce, "left", ["the connection was lost"], raising=False)
    harness = Harness(
        "of this module", {"hoodie.sample.folder": str(tmp_path)}, seed=9, virtual_time=False
    )  # in real time no link is cut
    harness.__dict__.update(kind=UnansweredOnce, server=server)
    assert run_check(select_checks(only=["N1"])[0], harness).status is expected
