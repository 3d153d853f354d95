"""Concurrency modes and policies of failed writes: who may write beside whom, and what becomes of the dead."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from transaction_harness import At, FailingStorage, move_elsewhere

from hudi_locks.errors import ConfigError, SecondWriterRefused, UnsupportedTable
from hudi_locks.format import Instant, State
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import Outcome, StopPoint

POLICY = "hoodie__clean__failed__writes__policy"


def abandon(harness: Any, tx: Any) -> None:
    """What is left when a writer dies."""
    tx._state.heartbeat.pause()
    harness.clock.advance(121)


def test_turning_multi_writing_off_rolls_back_the_dead_and_refuses_beside_the_living(harness: Any) -> None:
    dead = harness.open().begin("commit", "UPSERT")
    harness.write(dead, "g-0")
    abandon(harness, dead)
    alive = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(alive, "h-0")
    harness.clock.advance(12)
    single = harness.open_single(**{POLICY: "EAGER"})
    with pytest.raises(SecondWriterRefused, match=rf"commit {alive.instant} gave a sign of life 12\.0 s ago"):
        single.begin("commit", "UPSERT")
    assert [instant.requested for instant in harness.timeline().pending()] == [alive.instant]
    assert alive.publish(metadata).is_committed
    mine = single.begin("commit", "UPSERT")
    assert mine.publish(harness.write(mine, "h-0")).is_committed


@pytest.mark.parametrize("policy", ["EAGER", "LAZY", "NEVER"])
def test_a_second_single_writer_is_refused_with_the_way_out(harness: Any, policy: str) -> None:
    first = harness.open_single().begin("commit", "UPSERT")
    with pytest.raises(
        SecondWriterRefused, match="OPTIMISTIC_CONCURRENCY_CONTROL and the same lock provider"
    ) as caught:
        harness.open_single(**{POLICY: policy}).begin("commit", "UPSERT")
    error = caught.value
    assert (error.other, error.other_action, error.heartbeat_age_ms) == (first.instant, "commit", 0)
    assert error.dead_in_ms == 120_000
    assert harness.names(".hoodie/.heartbeat") == [first.instant]
    assert first.publish(harness.write(first, "g-0")).is_committed


def test_of_two_single_writers_that_begin_at_once_one_at_least_is_refused(harness: Any, at: At) -> None:
    """Neither sees the other when it looks first, since there is no lock between them."""
    began: list[Any] = []
    other = harness.open_single()
    late = harness.open_single(trace=at(StopPoint.BEGIN_LISTED, lambda: began.append(other.begin("commit", "UPSERT"))))
    with pytest.raises(SecondWriterRefused, match=r"commit \d+ gave a sign of life"):
        late.begin("commit", "UPSERT")
    [first] = began
    assert [instant.requested for instant in harness.timeline().pending()] == [first.instant]
    assert harness.names(".hoodie/.heartbeat") == [first.instant]
    assert first.publish(harness.write(first, "g-0")).is_committed


@pytest.mark.parametrize("policy", ["EAGER", "LAZY"])
def test_a_single_writer_goes_on_after_a_dead_one(harness: Any, policy: str) -> None:
    dead = harness.open_single().begin("commit", "UPSERT")
    harness.write(dead, "g-0")
    abandon(harness, dead)
    mine = harness.open_single(**{POLICY: policy}).begin("commit", "UPSERT")
    assert mine.publish(harness.write(mine, "g-0")).is_committed
    assert harness.timeline().get(dead.instant) is None


def test_resolve_lets_a_single_writer_go_on_at_once_after_a_crash(harness: Any) -> None:
    dead = harness.open_single().begin("commit", "UPSERT")
    dead._state.heartbeat.pause()
    move_elsewhere(harness.storage)
    single = harness.open_single()
    with pytest.raises(SecondWriterRefused, match=f"resolve\\('{dead.instant}'\\)"):
        single.begin("commit", "UPSERT")
    assert single.resolve(dead.instant) is Outcome.ABORTED
    assert single.begin("commit", "UPSERT").instant > dead.instant


@pytest.mark.parametrize("policy", ["EAGER", "LAZY"])
def test_a_single_writer_that_was_killed_is_not_waited_for_at_its_restart(harness: Any, policy: str) -> None:
    dead = harness.open_single().begin("commit", "UPSERT")
    harness.write(dead, "g-0")
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        started = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
        theirs = replace(dead._state.heartbeat._beating, pid=process.pid, started=started)
        harness.storage.replace(f".hoodie/.heartbeat/{dead.instant}", theirs.encode())
        single = harness.open_single(**{POLICY: policy})
        with pytest.raises(SecondWriterRefused):
            single.begin("commit", "UPSERT")
        process.kill()
    mine = single.begin("commit", "UPSERT")
    assert mine.publish(harness.write(mine, "g-0")).is_committed
    assert harness.timeline().get(dead.instant) is None


def test_a_write_that_failed_before_its_publish_keeps_nobody_of_its_process_out(harness: Any) -> None:
    """Not even when its abort failed too."""
    broken: list[str] = []
    storage = FailingStorage(harness.storage, lambda verb, path: bool(broken) and "/claims/" in path)
    with contextlib.suppress(RuntimeError), harness.open_single(storage=storage).begin("commit", "UPSERT") as tx:
        broken.append("the store")
        raise RuntimeError("the source broke")
    assert [instant.requested for instant in harness.timeline().pending()] == [tx.instant]
    mine = harness.open_single().begin("commit", "UPSERT")
    assert mine.publish(harness.write(mine, "g-0")).is_committed
    assert harness.timeline().get(tx.instant) is None


def test_a_table_service_that_is_under_way_keeps_no_single_writer_out(harness: Any) -> None:
    """As in a process that writes and clusters side by side."""
    clustering = Instant("20231114221319000", "clustering", State.INFLIGHT)
    harness.storage.replace(LAYOUT_2.path(clustering.as_requested()), b"")
    harness.storage.replace(LAYOUT_2.path(clustering), b"")
    harness.storage.replace(f".hoodie/.heartbeat/{clustering.requested}", b"")
    assert harness.open_single().begin("commit", "UPSERT").instant > clustering.requested


@pytest.mark.parametrize("mode", ["optimistic_concurrency_control", "SINGLE_WRITER"])
@pytest.mark.parametrize("requested", ["00000000000001", "00000000000002"])
def test_an_unfinished_bootstrap_keeps_every_writer_out(harness: Any, requested: str, mode: str) -> None:
    harness.storage.replace(LAYOUT_2.path(Instant(requested, "commit", State.REQUESTED)), b"")
    with pytest.raises(UnsupportedTable, match=f"{requested}.*is a bootstrap that is not finished") as caught:
        harness.open(**{"hoodie.write.concurrency.mode": mode}).begin("commit", "UPSERT")
    assert caught.value.instant == requested
    assert [instant.requested for instant in harness.timeline().pending()] == [requested]


def test_a_finished_bootstrap_keeps_nobody_out(harness: Any) -> None:
    harness.foreign_commit("00000000000001", "20231114221319000", "g-0")
    assert harness.open().begin("commit", "UPSERT").timeline.is_completed("00000000000001")


@pytest.mark.parametrize("policy", ["EAGER", "LAZY", "NEVER"])
def test_several_writers_have_the_policy_lazy_whatever_is_asked_for(harness: Any, policy: str) -> None:
    dead, alive = (harness.open().begin("commit", "UPSERT") for _ in range(2))
    dead._state.heartbeat.pause()
    harness.clock.advance(121)
    harness.open(**{POLICY: policy}).begin("commit", "UPSERT")
    assert dead.instant not in [instant.requested for instant in harness.timeline().pending()]
    assert alive.publish(harness.write(alive, "g-0")).is_committed


@pytest.mark.parametrize(
    ("table_type", "index"), [("COPY_ON_WRITE", "BUCKET"), ("MERGE_ON_READ", "SIMPLE"), ("MERGE_ON_READ", None)]
)
def test_writers_that_do_not_block_need_logs_and_buckets(harness: Any, table_type: str, index: str | None) -> None:
    options = {"hoodie__write__concurrency__mode": "non_blocking_concurrency_control"}
    options |= {"hoodie__index__type": index} if index else {}
    harness.table_type = table_type
    with pytest.raises(ConfigError, match=r"needs a MERGE_ON_READ table and hoodie\.index\.type=BUCKET"):
        harness.open(**options)
