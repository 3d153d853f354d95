"""What a hook, or a package that a provider cannot do without, brings about is no fault of the provider."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hudi_locks_conformance import Harness, Outcome, Status, run_check, select_checks
from hudi_locks_conformance.sample import SampleHooks, SampleLockProvider

from hudi_locks import BackendUnavailable, Capability, Lease, LockScope, Owner

pytestmark = pytest.mark.verdicts


def judge(kind: type[SampleLockProvider], check_id: str, folder: Path) -> Outcome:
    harness = Harness("of this module", {"hoodie.sample.folder": str(folder)})
    harness.__dict__["kind"] = kind  # which cannot be loaded by name
    return run_check(select_checks(only=[check_id])[0], harness)


def hooked(**hooks: Any) -> type[SampleLockProvider]:
    class Hooked(SampleLockProvider):
        @classmethod
        def conformance_hooks(cls) -> Any:
            return type("Hooks", (SampleHooks,), hooks)

    return Hooked


class Terse(SampleLockProvider):
    """Tells of the service in words of its own."""

    said: ClassVar[str] = ""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        raise BackendUnavailable(self.said)

    @classmethod
    def conformance_hooks(cls) -> Any:
        there = staticmethod(lambda options: {**options, "my.service.address": "http://Locks-7.example:6399/0"})
        return type("Hooks", (SampleHooks,), {"unreachable_options": there})


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("no answer from locks-7.example on port 6399", Status.PASS),
        ("my.service.address leads nowhere", Status.PASS),
        ("connection refused by the http service", Status.FAIL),
    ],
)
def test_an_unreachable_service_may_be_named_in_any_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, status: Status
) -> None:
    monkeypatch.setattr(Terse, "said", said)
    assert judge(Terse, "H5", tmp_path).status is status


class CutOff(SampleLockProvider):
    """Waits for the lock by itself, and loses the connection of its first request of all."""

    capabilities = SampleLockProvider.capabilities | {Capability.TIMED_WAIT}
    first = threading.Lock()

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        if self.first.acquire(blocking=False):
            raise BackendUnavailable("the connection was cut off")
        return super().try_acquire(scope, owner, timeout_s)


def test_one_connection_that_was_cut_off_is_no_deadlock_of_threads(tmp_path: Path) -> None:
    outcome = judge(CutOff, "J6", tmp_path)
    assert outcome.status is Status.PASS, outcome.message


class WakesOthers(SampleLockProvider):
    """Makes somebody else in the process start a thread that stays, or starts one itself."""

    starts: ClassVar[threading.Event]
    started: ClassVar[threading.Event]
    stays: ClassVar[threading.Event]
    itself: ClassVar[bool] = False

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        if self.itself:
            self.start_thread()
        self.starts.set()
        self.started.wait()
        return super().try_acquire(scope, owner, timeout_s)

    @classmethod
    def start_thread(cls) -> None:
        threading.Thread(target=cls.stays.wait, daemon=True).start()

    @classmethod
    def watch(cls) -> None:
        cls.starts.wait()
        cls.start_thread()
        cls.started.set()
        cls.stays.wait()


@contextmanager
def somebody_else() -> Iterator[None]:
    for event in ("starts", "started", "stays"):
        setattr(WakesOthers, event, threading.Event())
    stranger = threading.Thread(target=WakesOthers.watch, daemon=True)
    stranger.start()
    yield
    WakesOthers.stays.set()
    stranger.join()


@pytest.mark.parametrize(("itself", "status"), [(False, Status.PASS), (True, Status.FAIL)])
@pytest.mark.parametrize("check_id", ["A3", "A6", "E7", "J6", "L1"])
def test_a_thread_that_another_one_of_the_process_starts_is_not_left_by_the_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check_id: str, itself: bool, status: Status
) -> None:
    monkeypatch.setattr(WakesOthers, "itself", itself)
    with somebody_else():
        outcome = judge(WakesOthers, check_id, tmp_path)
    assert outcome.status is status, outcome.message
    assert itself == ("thread" in outcome.message)


class LeavesOpen(SampleLockProvider):
    """Lets the collector find a socket that nobody closed, and which is its own, if it opens one itself."""

    opens: ClassVar[int] = 0
    left: ClassVar[int] = 0

    def renew(self, lease: Lease) -> Lease:
        if self.left:
            type(self).left -= 1
            socket.socket()
        for _ in range(self.opens):
            socket.socket()
        return super().renew(lease)


@pytest.mark.parametrize(("left", "opens", "status"), [(1, 0, Status.PASS), (0, 1, Status.FAIL)])
def test_what_others_left_open_in_the_process_is_no_warning_of_the_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int, opens: int, status: Status
) -> None:
    monkeypatch.setattr(LeavesOpen, "left", left)
    monkeypatch.setattr(LeavesOpen, "opens", opens)
    assert judge(LeavesOpen, "L3", tmp_path).status is status


def refuse(*_: object) -> None:
    raise ValueError("a column of numbers takes no garbage")


@pytest.mark.parametrize("corrupt", [refuse, lambda *_: None], ids=["refuses", "does-nothing"])
def test_a_hook_that_cannot_plant_garbage_leaves_the_check_not_run(tmp_path: Path, corrupt: Any) -> None:
    outcome = judge(hooked(corrupt=corrupt), "H8", tmp_path)
    assert outcome.status is Status.NOT_RUN, outcome
    assert "corrupt" in outcome.message


def stranger(folder: Path, monkeypatch: pytest.MonkeyPatch, *, requires: str) -> Harness:
    """A package that cannot be imported without `botocore`, which its metadata requires, or has as an extra."""
    package = folder / "stranger_locks"
    package.mkdir()
    text = "import botocore\nfrom hudi_locks_conformance.sample import SampleLockProvider\n"
    (package / "__init__.py").write_text(f"{text}class Strange(SampleLockProvider):\n    pass\n")
    info = folder / "stranger_locks-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: stranger-locks\nVersion: 1.0\n{requires}")
    (info / "RECORD").write_text("stranger_locks/__init__.py,,\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.delitem(__import__("sys").modules, "stranger_locks", raising=False)
    return Harness("stranger_locks:Strange", {"hoodie.sample.folder": str(folder / "locks")})


@pytest.mark.parametrize(
    ("requires", "status"),
    [
        ("Requires-Dist: botocore>=1\n", Status.PASS),
        ('Requires-Dist: botocore>=1; extra == "aws"\n', Status.FAIL),
    ],
    ids=["required", "optional"],
)
def test_a_package_that_the_provider_requires_is_there_when_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requires: str, status: Status
) -> None:
    harness = stranger(tmp_path, monkeypatch, requires=requires)
    outcome = run_check(select_checks(only=["L7"])[0], harness)
    assert outcome.status is status, outcome


def test_types_of_a_package_without_a_distribution_cannot_be_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = stranger(tmp_path, monkeypatch, requires="")
    (tmp_path / "stranger_locks-1.0.dist-info" / "METADATA").unlink()
    (tmp_path / "stranger_locks" / "__init__.py").rename(tmp_path / "stranger_locks" / "inner.py")
    harness.name = "stranger_locks.inner:Strange"
    outcome = run_check(select_checks(only=["L6"])[0], harness)
    assert outcome.status is Status.NOT_RUN, outcome
