"""What `hudi-locks audit` tells of the locks under which a table was written."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.format import CommitMetadata
from hudi_locks.format.claim import claim_path, decode_claim, digest_of, encode_claim
from hudi_locks.lock import LockManager, Owner
from hudi_locks.storage import Storage, open_storage
from hudi_locks.table import Table, TableConfig
from hudi_locks.transaction import Transactions

Run = Callable[..., tuple[int, str, str]]
PROVIDER = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"}


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    """A table with three writes, each under a lock of its own."""
    base = str(tmp_path / "table")
    storage = open_storage(base)
    table, options = Table.create(storage, TableConfig("t", ("id",))), {"hoodie.base.path": base, **PROVIDER}
    for job in ("etl", "backfill", "etl"):
        with LockManager.from_options(options) as locks:
            writer = Transactions(table, locks, options=options, owner=Owner(job, application=job))
            tx = writer.begin("commit", "UPSERT")
            assert tx.publish(CommitMetadata.of((), "UPSERT", schema=None)).is_committed
    return storage


def rewrite(storage: Storage, first: int, **changes: Any) -> None:
    """Give an entry other fields, and the later ones the digest that follows."""
    previous = ""
    for number in (1, 2, 3):
        claim = decode_claim(storage.read(claim_path(number)) or b"", number)
        data = encode_claim(replace(claim, previous=previous, **(changes if number == first else {})))
        storage.replace(claim_path(number), data)
        previous = digest_of(data)


def test_each_entry_is_listed_with_its_lock(hudi_locks: Run, storage: Storage) -> None:
    status, out, err = hudi_locks("audit", "ls", storage.base, "-n", "2")
    assert (status, err) == (0, "")
    head, *lines = out.splitlines()
    assert head.split() == ["entry", "decision", "instant", "action", "lock", "token", "by"]
    assert [line.split()[:2] for line in lines] == [["2", "PUBLISH"], ["3", "PUBLISH"]]
    assert ["backfill" in line for line in lines] == [True, False]
    told = json.loads(hudi_locks("audit", "ls", storage.base, "--json")[1])
    assert [one["number"] for one in told] == [1, 2, 3]
    assert sorted({one["fencing_token"] for one in told}) == [one["fencing_token"] for one in told]


def test_grants_in_their_order_are_a_proof(hudi_locks: Run, storage: Storage) -> None:
    status, out, err = hudi_locks("audit", "verify", storage.base)
    compared = "compared the tokens of 3 of 3 entries, and found 3 of 3 writes of the timeline in them"
    assert (status, out, err) == (0, f"{storage.base}: no two grants overlapped; {compared}\n", "")


@pytest.mark.parametrize("owner", ["etl", "somebody else"])
def test_an_older_token_after_a_newer_one_is_none(hudi_locks: Run, storage: Storage, owner: str) -> None:
    rewrite(storage, 2, fencing_token=99, owner="who was late", lock_key="filesystem")
    status, out, _ = hudi_locks("audit", "verify", storage.base)
    assert status == 1
    line, verdict = out.splitlines()
    assert line.startswith("entry 3 by ")
    assert "was made after entry 2 by who was late with token 99 of filesystem: the lock was lost in between" in line
    assert ": NOT PROVED; " in verdict
    rewrite(storage, 3, fencing_token=99, owner=owner)
    assert hudi_locks("audit", "verify", storage.base)[0] == 1


@pytest.mark.parametrize("provider", ["in_process", "zookeeper"])
def test_tokens_of_other_locks_are_not_compared(hudi_locks: Run, storage: Storage, provider: str) -> None:
    rewrite(storage, 2, fencing_token=99, lock_key=provider)
    assert hudi_locks("audit", "verify", storage.base)[0] == 0


def test_an_entry_that_was_changed_is_named(hudi_locks: Run, storage: Storage) -> None:
    claim = decode_claim(storage.read(claim_path(2)) or b"", 2)
    storage.replace(claim_path(2), encode_claim(replace(claim, owner="nobody")))
    status, out, _ = hudi_locks("audit", "verify", storage.base, "--json")
    assert (status, json.loads(out)["changed"]) == (1, [3])


def test_a_write_without_an_entry_is_one_of_the_jvm(hudi_locks: Run, storage: Storage) -> None:
    newest = Table.load(storage).timeline().instants[-1].requested
    storage.delete(claim_path(3))
    storage.delete(".hoodie/.hudi_locks/head")
    status, out, _ = hudi_locks("audit", "verify", storage.base)
    assert status == 0
    assert f"{newest} was published by no entry: a JVM writer made it" in out


@pytest.mark.parametrize("command", ["ls", "verify"])
def test_an_entry_that_is_missing_is_named(hudi_locks: Run, storage: Storage, command: str) -> None:
    storage.delete(claim_path(2))
    status, out, err = hudi_locks("audit", command, storage.base)
    assert (status, out) == (1, "")
    assert f"{claim_path(2)} is missing though later claims are there: restore it" in err
