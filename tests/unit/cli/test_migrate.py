"""What `hudi-locks migrate` tells of writers on their way from one lock provider to another."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_locks.format import CommitMetadata
from hudi_locks.format.claim import claim_path, decode_claim, digest_of, encode_claim
from hudi_locks.lock import LockManager, Owner
from hudi_locks.storage import Storage, open_storage
from hudi_locks.table import Table, TableConfig
from hudi_locks.transaction import Transactions

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Storage]
JVM = "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"
WAY = ("--from", "zookeeper", "--to", "storage")
BOTH = "hoodie.write.lock.provider=chain and hudi_locks.chain.providers=zookeeper,storage"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write for jobs in turn, each with the lock that is named."""
    base = str(tmp_path / "table")
    storage = open_storage(base)
    table = Table.create(storage, TableConfig("t", ("id",)))

    def make(*turns: tuple[str, str]) -> Storage:
        for job, _ in turns:
            commit(table, job)
        previous = ""
        for number, (_, provider) in enumerate(turns, 1):
            claim = decode_claim(storage.read(claim_path(number)) or b"", number)
            data = encode_claim(replace(claim, previous=previous, lock_key=provider))
            storage.replace(claim_path(number), data)
            previous = digest_of(data)
        return storage

    return make


def commit(table: Table, job: str) -> None:
    options = {"hoodie.base.path": table.storage.base, "hoodie.write.lock.provider": "in_process"}
    with LockManager.from_options(options) as locks:
        owner = Owner(job, host="a", pid=7, application=f"{job} (local-1)")
        tx = Transactions(table, locks, options=options, owner=owner).begin("commit", "UPSERT")
        assert tx.publish(CommitMetadata.of((), "UPSERT", schema=None)).is_committed


@pytest.mark.parametrize(
    ("turns", "stage", "says"),
    [
        ((), "nobody wrote", f"No job has written. Give every job {BOTH}."),
        (
            (("a", JVM), ("b", "zookeeper")),
            "old lock alone",
            f"Every job holds zookeeper alone. Next: give them {BOTH}",
        ),
        (
            (("a", JVM), ("b", JVM), ("c", "chain"), ("a", "chain")),
            "moving to both",
            f"Next: give b {BOTH} too. Until then no job may hold storage alone.",
        ),
        (
            (("a", JVM), ("b", "chain"), ("a", "chain")),
            "both locks",
            "Every job holds both. Next: give them hoodie.write.lock.provider=storage alone, one after the other",
        ),
        (
            (("a", "chain"), ("b", "chain"), ("c", "chain"), ("a", "storage")),
            "moving to the new lock",
            "Next: give c, b hoodie.write.lock.provider=storage alone too.",
        ),
        ((("a", "chain"), ("a", "storage")), "new lock alone", "Every job holds storage alone: the migration is done."),
    ],
)
def test_each_stage_has_a_next_step(
    hudi_locks: Run, write: Write, turns: tuple[tuple[str, str], ...], stage: str, says: str
) -> None:
    base = write(*turns).base
    status, out, err = hudi_locks("migrate", base, *WAY)
    assert (status, err) == (0, "")
    assert out.splitlines()[-1].startswith(says)
    told = json.loads(hudi_locks("migrate", base, *WAY, "--json")[1])
    assert (told["old"], told["new"], told["stage"], told["unclaimed"]) == ("zookeeper", "storage", stage, [])
    assert sum(job["entries"] for job in told["jobs"]) == len(turns)


@pytest.mark.parametrize(
    ("turns", "apart"),
    [
        ((("a", JVM), ("b", "storage")), "a by zookeeper; b by storage"),
        ((("a", "chain"), ("b", ""), ("c", "dynamodb")), "c, b by another lock, or none"),
    ],
)
def test_jobs_that_do_not_keep_each_other_out_are_named(
    hudi_locks: Run, write: Write, turns: tuple[tuple[str, str], ...], apart: str
) -> None:
    status, out, err = hudi_locks("migrate", write(*turns).base, *WAY)
    assert (status, err) == (1, "")
    assert f"These jobs do not keep each other out: {apart}. The claim log keeps their updates" in out
    assert out.splitlines()[-1].endswith(f"Give all of them {BOTH}.")


def test_what_a_job_held_before_does_not_count(hudi_locks: Run, write: Write) -> None:
    base = write(("a", "storage"), ("b", JVM), ("a", "chain"), ("b", "chain")).base
    status, out, _ = hudi_locks("migrate", base, *WAY)
    assert status == 0
    newest = [line.split()[:4] for line in out.splitlines()[1:3]]
    assert newest == [["b", "chain", "both", "2"], ["a", "chain", "both", "2"]]
    assert hudi_locks("migrate", base, *WAY, "-n", "1")[1].splitlines()[1].split()[:4] == ["b", "chain", "both", "1"]


def test_writes_of_the_jvm_are_counted(hudi_locks: Run, write: Write) -> None:
    storage = write(("a", "chain"))
    [completed] = [entry.name for entry in storage.list(".hoodie/timeline") if entry.name.endswith(".commit")]
    data = storage.read(f".hoodie/timeline/{completed}") or b""
    storage.create_if_absent(".hoodie/timeline/20990101000000000_20990101000000001.commit", data)
    out = hudi_locks("migrate", storage.base, *WAY)[1]
    assert "1 writes have no entry, the last of 20990101000000000: JVM writers, which hold one lock alone" in out


@pytest.mark.parametrize(
    ("way", "says"),
    [
        (("--from", "storage", "--to", "storage"), "storage is the old and the new lock"),
        (("--from", JVM, "--to", "zookeeper"), "zookeeper is the old and the new lock"),
        (("--from", "chain", "--to", "storage"), "the chain is the way from one lock to another"),
        (("--from", "storage", "--to", "redis-2"), "redis-2"),
    ],
)
def test_a_way_that_is_none_is_refused(hudi_locks: Run, write: Write, way: tuple[str, ...], says: str) -> None:
    status, out, err = hudi_locks("migrate", write().base, *way)
    assert (status, out) == (2, "")
    assert says in err
    assert "Traceback" not in err
