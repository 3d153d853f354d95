"""The checks that judge what the core does for every provider: faults planted in the core, one at a time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_conformance import CHECKS, Harness, Status, run_check, select_checks
from hudi_locks_conformance.broken import BROKEN

from hudi_locks import LockError, LockProvider
from hudi_locks.lock import load_provider_class
from hudi_locks.storage import MemoryStorage

SAMPLE = "hudi_locks_conformance.sample:SampleLockProvider"
FAULTY_NAMES = (
    ("hudi_locks_conformance.broken.eager:ImportsEagerly", "L7"),
    ("hudi_locks_conformance.broken.loading:GoesByAnotherName", "K1"),
    ("hudi_locks_conformance.broken.obliging:Obliging", "K2"),
)


def overwrite(storage: MemoryStorage, path: str, data: bytes) -> bool:
    storage.replace(path, data)
    return True


def ignore_requirements(name: str, *, require: Iterable[object] = ()) -> type[LockProvider]:
    return load_provider_class(name)


FAULTS = (
    ("D10d", "hudi_locks.lock.acquisition.BackendUnavailable", LockError),
    ("F7", "hudi_locks.storage.memory.MemoryStorage.create_if_absent", overwrite),
    ("K4", "hudi_locks.lock.provider._check_class", lambda *_: None),
    ("K10", "hudi_locks_conformance.checks.loading.load_provider_class", ignore_requirements),
)
WITH_PROCESSES = ("B4", "B5", "B6", "B7")
"""Caught in a storm of processes, by a test of its own beside the table of faulty providers."""
INTEROP = "M"
"""Its faults are forms that are not the JVM's, planted in the tests of that group."""


def judge(check_id: str, provider: str, folder: Path) -> Any:
    harness = Harness(provider, {"hoodie.sample.folder": str(folder / "locks")})
    return run_check(select_checks(only=[check_id])[0], harness)


@pytest.mark.parametrize(("check_id", "target", "fault"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_a_fault_of_the_core_is_caught(
    check_id: str, target: str, fault: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert judge(check_id, SAMPLE, tmp_path).status is Status.PASS
    monkeypatch.setattr(target, fault)
    outcome = judge(check_id, SAMPLE, tmp_path)
    assert outcome.status is Status.FAIL, outcome


@pytest.mark.parametrize(("name", "check_id"), FAULTY_NAMES, ids=[check for _, check in FAULTY_NAMES])
def test_a_fault_of_a_module_or_a_name_is_caught(name: str, check_id: str, tmp_path: Path) -> None:
    outcome = judge(check_id, name, tmp_path)
    assert outcome.status is Status.FAIL, outcome


def test_each_check_has_a_fault_planted_for_it() -> None:
    caught = {check_id for _, checks in BROKEN for check_id in checks}
    caught |= {fault[0] for fault in FAULTS} | {check_id for _, check_id in FAULTY_NAMES} | set(WITH_PROCESSES)
    assert sorted(check_id for check_id in set(CHECKS) - caught if not check_id.startswith(INTEROP)) == []
