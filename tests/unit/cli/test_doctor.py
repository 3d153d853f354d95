"""What the doctor finds, in words and as JSON."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_providers.filesystem import FileSystemLockProvider
from hudi_locks_providers.noop import NoopLockProvider

from hudi_locks import BackendRefused, Lease, LockManager, LockScope, Owner
from hudi_locks.lock import Finding

Run = Callable[..., tuple[int, str, str]]


class Ill(NoopLockProvider):
    """Its service only pretends."""

    def probe(self) -> tuple[Finding, ...]:
        return (Finding("put-if-absent", ok=False, found="both of two puts won", advice="use another service"),)


class Refusing(NoopLockProvider):
    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        raise BackendRefused("the right table:Write is missing")

    @classmethod
    def iam_policy(cls, options: Mapping[str, object]) -> Mapping[str, Any]:
        return {"Version": "2012-10-17", "Statement": [{"Resource": options["hoodie.base.path"]}]}


def name_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def test_a_sound_service_ends_with_0_and_keeps_nothing(hudi_locks: Run, tmp_path: Path) -> None:
    status, out, err = hudi_locks("doctor", "-o", f"hoodie.base.path={tmp_path}", "-p", "filesystem", "--json")
    findings = {finding["name"]: finding for finding in json.loads(out)}
    assert (status, err) == (0, "")
    assert {"answers", "excludes", "fencing-token", "releases"} <= set(findings)
    assert all(finding["ok"] for finding in findings.values())
    assert not list(Path(tmp_path, ".hoodie").rglob("lock"))
    assert not [file for file in tmp_path.rglob("file_groups/*") if file.is_file()]


def test_a_held_table_lock_is_named_and_left_alone(hudi_locks: Run, tmp_path: Path) -> None:
    with LockManager("filesystem", {"hoodie.base.path": str(tmp_path)}, application="nightly").lock() as held:
        status, out, _ = hudi_locks("doctor", "-o", f"hoodie.base.path={tmp_path}", "-p", "filesystem")
        held.verify()
    assert status == 0
    assert "held by nightly" in out


def test_what_only_pretends_is_ill_with_advice(hudi_locks: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NoopLockProvider, "probe", Ill.probe)
    status, out, _ = hudi_locks("doctor", "-p", "noop")
    assert status == 1
    assert "both of two puts won" in out
    assert "use another service" in out
    assert "TWO owners hold one lock" in out


def test_a_second_doctor_on_one_host_is_told_to_ask_again(hudi_locks: Run, tmp_path: Path) -> None:
    options = {"hoodie.base.path": str(tmp_path)}
    scope = LockScope.file_group("hudi_locks_doctor", socket.gethostname())
    with LockManager("filesystem", options, application="another doctor").lock(scope):
        status, out, _ = hudi_locks("doctor", "-o", f"hoodie.base.path={tmp_path}", "-p", "filesystem")
    assert status == 1
    assert "another doctor" in out
    assert "ask again" in out


def test_a_service_that_refuses_is_a_finding(hudi_locks: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NoopLockProvider, "try_acquire", Refusing.try_acquire)
    status, out, _ = hudi_locks("doctor", "-p", "noop")
    assert status == 1
    assert "BackendRefused: the right table:Write is missing" in out


def test_the_policy_is_printed_where_there_is_one(hudi_locks: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    status, _, err = hudi_locks("doctor", "-p", "filesystem", "--iam")
    assert status == 1
    assert "without AWS permissions" in err
    monkeypatch.setattr(FileSystemLockProvider, "iam_policy", Refusing.iam_policy)
    status, out, _ = hudi_locks("doctor", "s3://bucket/t", "-p", "filesystem", "--iam")
    assert status == 0
    assert json.loads(out)["Statement"] == [{"Resource": "s3://bucket/t"}]
