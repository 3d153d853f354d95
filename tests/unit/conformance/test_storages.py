"""The checks of storages: sound ones pass, and each planted fault is found by the check that is named for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hudi_locks_conformance.cli import command
from hudi_locks_conformance.runner import Status
from hudi_locks_conformance.storages import STORAGE_CHECKS, StorageBench, StorageCheck, judge_storage, run_storage_check
from hudi_locks_conformance.storages.broken import FAULTS
from hudi_locks_conformance.storages.suite import StorageSuite
from json_checks import check_json

from hudi_locks.clock import ManualClock
from hudi_locks.errors import StorageError
from hudi_locks.storage import LocalStorage, MemoryStorage, Storage, StorageCapabilities, register_storage

Run = Callable[..., tuple[int, str, str]]


class LeapingClock(ManualClock):
    """Who sleeps on it moves it."""

    def sleep(self, duration_s: float) -> None:
        self.advance(duration_s)


def judge(kind: type[MemoryStorage], check: StorageCheck) -> tuple[Status, str]:
    clock = LeapingClock()
    outcome = run_storage_check(check, kind(clock), bench=partial(StorageBench, clock=clock))
    return outcome.status, outcome.message


@pytest.mark.parametrize("check", STORAGE_CHECKS.values(), ids=STORAGE_CHECKS)
def test_memory_passes_and_keeps_nothing(check: StorageCheck) -> None:
    clock = LeapingClock()
    storage = MemoryStorage(clock)
    outcome = run_storage_check(check, storage, bench=partial(StorageBench, clock=clock))
    lives_here = check.id in ("SF9", "ST12")
    assert outcome.status is (Status.NOT_RUN if lives_here else Status.PASS), outcome.message
    assert lives_here == ("lives in one process" in outcome.message)
    assert list(storage.walk("")) == []
    assert storage.list_staged() == set()


@pytest.mark.verdicts
class TestOnDisk(StorageSuite):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return LocalStorage(str(tmp_path))


@pytest.mark.parametrize(
    ("kind", "check"),
    [pytest.param(kind, check, id=f"{kind.__name__}-{check}") for kind, checks in FAULTS.items() for check in checks],
)
def test_a_planted_fault_is_found_by_the_check_that_is_named_for_it(kind: type[MemoryStorage], check: str) -> None:
    status, message = judge(kind, STORAGE_CHECKS[check])
    assert status is Status.FAIL
    assert message


def test_each_check_finds_a_fault_of_its_own() -> None:
    """But those of copies, which memory has none of, and of what follows from others."""
    named = {check for checks in FAULTS.values() for check in checks}
    assert set(STORAGE_CHECKS) - named == {"SF9", "ST12", "SC4", "ST7"}


def test_each_check_says_what_it_demands_and_why() -> None:
    for check in STORAGE_CHECKS.values():
        assert check.demand.endswith(".")
        assert check.why.endswith(".")
        assert check.needs in ("", *StorageCapabilities.__dataclass_fields__)


def test_what_is_not_promised_is_not_asked_for() -> None:
    storage = MemoryStorage(ManualClock())
    storage.capabilities = StorageCapabilities()
    [outcome] = judge_storage(storage, [STORAGE_CHECKS["ST1"]])
    assert outcome.status is Status.UNSUPPORTED
    assert outcome.message == "the storage does not promise tickets"


@pytest.fixture
def conformance(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            command(args=list(words))
        return (int(caught.value.code or 0), *capsys.readouterr())

    return run


def test_a_folder_is_judged_from_the_command_line(conformance: Run, tmp_path: Path) -> None:
    status, out, _ = conformance("--storage", str(tmp_path), "--only", "SC1,ST5", "-v")
    assert status == 0
    assert "promises   conditional_create tickets renewal_in_place" in out
    assert "pass        SC1 made-once" in out
    assert "2 pass" in out
    assert out.rstrip().endswith("verdict    CONFORMANT")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_store_that_breaks_its_promise_ends_with_1(conformance: Run, tmp_path: Path) -> None:
    register_storage("broken", lambda path, _: _make_broken(path))
    status, out, _ = conformance("--storage", "broken://t", "--only", "SC1,SC4")
    assert status == 1
    assert "FAIL  SC1 made-once      create_if_absent() over b'first' returned True" in out
    assert f"demanded        {STORAGE_CHECKS['SC1'].demand}" in out
    assert "why it matters" in out
    assert out.rstrip().endswith("verdict    NOT CONFORMANT")


def _make_broken(path: str) -> Storage:
    kind = next(kind for kind in FAULTS if kind.__name__ == "_IgnoresCondition")
    return kind(ManualClock(), base=path)


def test_a_store_that_gives_no_answer_ends_with_4(
    conformance: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StorageError("connection refused", path="")

    monkeypatch.setattr(LocalStorage, "list", fail)
    status, _, err = conformance("--storage", str(tmp_path))
    assert status == 4
    assert err == "error: the store cannot be reached: connection refused\n"


def test_a_program_reads_how_a_storage_was_judged(conformance: Run, tmp_path: Path) -> None:
    status, out, _ = conformance("--storage", str(tmp_path), "--only", "SC", "--json")
    told = check_json(["conformance"], out)
    assert status == 0
    assert told["conformant"] is True
    assert [check["id"] for check in told["checks"]] == ["SC1", "SC2", "SC3", "SC4"]


def test_a_check_that_does_not_exist_is_refused(conformance: Run, tmp_path: Path) -> None:
    status, _, err = conformance("--storage", str(tmp_path), "--only", "A1")
    assert status == 2
    assert "--only names no check of storages: A1" in err


def test_the_checks_of_storages_are_listed(conformance: Run) -> None:
    status, out, _ = conformance("--storage", "/tmp", "--list")  # nothing is made there
    assert status == 0
    assert len(out.strip().splitlines()) == len(STORAGE_CHECKS)
