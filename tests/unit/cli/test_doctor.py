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
from hudi_locks.format import CommitMetadata
from hudi_locks.lock import Finding
from hudi_locks.storage import open_storage
from hudi_locks.table import Table, TableConfig
from hudi_locks.transaction import Transactions
from hudi_locks.verification import find_other_lock

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


def write(base: str, *providers: str) -> None:
    """One write under each of these locks, the first of a new table."""
    table = Table.create(open_storage(base), TableConfig("t", ("id",)))
    for provider in providers:
        options = {"hoodie.base.path": base, "hoodie.write.lock.provider": provider}
        with LockManager.from_options(options) as locks:
            tx = Transactions(table, locks, options=options, owner=Owner(provider)).begin("commit", "UPSERT")
            assert tx.publish(CommitMetadata.of((), "UPSERT", schema=None)).is_committed


JAVA = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"


@pytest.mark.parametrize(
    ("providers", "is_one"),
    [
        ((), True),
        (("filesystem", JAVA), True),
        (("in_process",), False),
        (("filesystem", "in_process"), False),
        (("filesystem", "in_process", "filesystem"), False),
        (("in_process", "in_process", "filesystem"), True),
    ],
    ids=["no writes", "the same by another name", "another", "another since", "both in turns", "changed over"],
)
def test_writers_under_another_lock_are_named(
    hudi_locks: Run, tmp_path: Path, providers: tuple[str, ...], is_one: bool
) -> None:
    base = str(tmp_path / "table")
    write(base, *providers)
    status, out, _ = hudi_locks("doctor", base, "-p", JAVA, "--json")
    [found] = [one for one in json.loads(out) if one["name"] == "one-lock"]
    assert (status, found["ok"]) == (0, True) if is_one else (1, False)
    assert is_one or "was written under in_process by in_process; these options take" in found["found"]
    assert is_one or "a chain moves them over" in found["advice"]


def test_a_chain_holds_several_locks(tmp_path: Path) -> None:
    base = str(tmp_path / "table")
    write(base, "in_process")
    assert find_other_lock(open_storage(base), "chain", last=9) is None
    assert find_other_lock(open_storage(base), "zookeeper", last=9) is not None
