"""A process goes by claims in place of listings: how much it lists, and all that could make its timeline wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from transaction_harness import At, CountingStorage, FailingStorage, Harness, Killed, kill, move_elsewhere

from hudi_locks.clock import ManualClock
from hudi_locks.errors import WriteAborted
from hudi_locks.format import Instant, State, add_ms
from hudi_locks.format.claim import INLINE_LIMIT, Claim, ClaimKind, Content, claim_path
from hudi_locks.services import Cleaner, CleanSettings
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline import LAYOUT_2, create_instant, read_instant
from hudi_locks.timeline.claims import STAGED_FOLDER
from hudi_locks.timeline.heartbeat import heartbeat_path
from hudi_locks.transaction import Outcome, StopPoint, Transaction, Transactions


def commit(harness: Harness, transactions: Transactions, *groups: str) -> Transaction:
    tx = transactions.begin("commit", "UPSERT")
    assert tx.publish(harness.write(tx, *(groups or ("g-0",)))).is_committed
    return tx


def fill(harness: Harness, count: int) -> None:
    """Commits that were made long ago."""
    for number in range(count):
        harness.foreign_commit(add_ms("20231114210000000", 10 * number), add_ms("20231114210000005", 10 * number))


# ---- how much is listed ----


@pytest.mark.parametrize("length", [5, 500])
def test_commits_list_the_timeline_once_a_second_however_many_they_are(harness: Any, length: int) -> None:
    fill(harness, length)
    storage = CountingStorage(harness.storage)
    transactions = harness.open(storage=storage)
    for _ in range(5):
        commit(harness, transactions)
    assert storage.listings == 1
    harness.clock.advance(1.5)
    commit(harness, transactions)
    assert storage.listings == 2


def test_a_commit_asks_for_the_same_whatever_the_length_of_the_timeline(harness: Any) -> None:
    calls = []
    for length in (0, 500):
        fill(harness, length)
        storage = CountingStorage(harness.storage)
        transactions = harness.open(storage=storage)
        commit(harness, transactions)
        storage.calls.clear()
        commit(harness, transactions)
        calls.append(Counter(verb for verb, _ in storage.calls.elements()))
    assert calls[0] == calls[1]


@pytest.mark.parametrize(("foreign", "mode", "expected"), [(True, "open", 4), (False, "open_single", 4)])
def test_where_others_do_not_claim_before_they_are_met_every_look_is_a_listing(
    harness: Any, foreign: bool, mode: str, expected: int
) -> None:
    """Beside JVM writers, after the completed file too; a single writer looks around once it can be seen."""
    harness.foreign = foreign
    storage = CountingStorage(harness.storage)
    transactions = getattr(harness, mode)(storage=storage)
    for number in (1, 2):
        commit(harness, transactions)
        assert storage.listings == expected * number


# ---- what others do meanwhile ----


def test_what_another_process_published_is_in_the_next_snapshot(harness: Any) -> None:
    storage = CountingStorage(harness.storage)
    transactions = harness.open(storage=storage)
    commit(harness, transactions)
    theirs = [harness.commit("g-0"), harness.commit("h-0")]
    tx = transactions.begin("commit", "UPSERT")
    assert storage.listings == 1
    fresh = harness.timeline()
    assert [tx.timeline.get(time) for time in theirs] == [fresh.get(time) for time in theirs]
    assert tx.timeline.completed() == fresh.completed()
    assert [read_instant(harness.storage, tx.timeline, instant=i) for i in tx.timeline.completed()]
    assert tx.instant > str(fresh.completed()[-1].completion)


def test_what_another_process_published_since_the_begin_is_a_conflict(harness: Any) -> None:
    storage = CountingStorage(harness.storage)
    transactions = harness.open(storage=storage)
    tx = transactions.begin("commit", "UPSERT")
    other = harness.commit("g-0")
    assert tx.publish(harness.write(tx, "g-0")).conflict.other == other
    assert not transactions.notices.foreign_writer_seen


def test_a_write_that_is_not_completed_yet_is_finished_before_it_counts(harness: Any, at: At) -> None:
    transactions = harness.open()
    commit(harness, transactions)
    dying = harness.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    with pytest.raises(Killed):
        dying.publish(harness.write(dying, "h-0"))
    tx = transactions.begin("commit", "UPSERT")
    assert tx.timeline.is_completed(dying.instant)
    assert harness.timeline().is_completed(dying.instant)


class MeetingStorage(FailingStorage):
    """Lets somebody act just before the staged content of a claim is read."""

    def __init__(self, files: MemoryStorage, act: Callable[[], object]) -> None:
        super().__init__(files, lambda *_: False)
        self._left = [act]

    def read(self, path: str) -> bytes | None:
        if path.startswith(STAGED_FOLDER) and self._left:
            self._left.pop()()
        return super().read(path)


def test_a_write_that_is_voided_while_it_is_being_finished_does_not_count(harness: Any, at: At) -> None:
    """Its content is gone then, as it is once a later claim has seen to it."""
    harness.commit("g-0")
    dying = harness.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    large = replace(harness.write(dying, "h-0"), extra={"schema": "{}", "note": "x" * INLINE_LIMIT})

    def void() -> None:
        harness.storage.delete(LAYOUT_2.path(Instant(dying.instant, "commit", State.INFLIGHT)))
        harness.open().roll_back_failed()

    transactions = harness.open(storage=MeetingStorage(harness.storage, void))
    commit(harness, transactions)
    with pytest.raises(Killed):
        dying.publish(large)
    tx = transactions.begin("commit", "UPSERT")
    assert harness.claims()[-1].kind is ClaimKind.VOID
    assert tx.timeline.get(dying.instant) is None


def test_a_rollback_by_another_process_takes_the_instant_away_at_once(harness: Any) -> None:
    dead = harness.open().begin("commit", "UPSERT")
    transactions = harness.open()
    assert transactions.begin("commit", "UPSERT").timeline.get(dead.instant) is not None
    dead.abort("enough")
    tx = transactions.begin("commit", "UPSERT")
    assert tx.timeline.get(dead.instant) is None
    assert [i.action for i in tx.timeline.completed()] == ["rollback"]


def test_a_write_that_was_rolled_back_is_not_published(harness: Any) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    assert harness.open().resolve(tx.instant) is Outcome.ABORTED
    assert tx.publish(metadata).outcome is Outcome.ABORTED


def test_a_write_whose_inflight_file_is_gone_is_not_published(harness: Any) -> None:
    """Though the timeline that is known from before shows it, and no claim tells of it."""
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    harness.storage.delete(LAYOUT_2.path(Instant(tx.instant, "commit", State.INFLIGHT)))
    result = tx.publish(metadata)
    assert (result.outcome, "inflight file is gone" in result.reason) == (Outcome.ABORTED, True)


def test_a_dead_writer_that_came_after_the_listing_is_rolled_back_within_a_second(harness: Any) -> None:
    transactions = harness.open()
    commit(harness, transactions)
    is_dead: list[bool] = []
    dying = harness.open(storage=FailingStorage(harness.storage, lambda verb, _: verb == "touch" and bool(is_dead)))
    dead = dying.begin("commit", "UPSERT")
    is_dead.append(True)
    move_elsewhere(harness.storage)
    harness.clock.advance(300)
    commit(harness, transactions)
    assert harness.timeline().get(dead.instant) is None


def test_what_was_archived_since_is_still_known_as_completed_and_read_from_the_history(harness: Any) -> None:
    storage = CountingStorage(harness.storage)
    transactions = harness.open(storage=storage)
    times = [commit(harness, transactions, f"g-{number}").instant for number in range(3)]
    harness.archive(times[0])
    tx = transactions.begin("commit", "UPSERT")
    assert storage.listings == 1
    assert all(tx.timeline.is_completed(time) for time in times)
    assert read_instant(harness.storage, tx.timeline, instant=tx.timeline.get(times[0]))
    assert tx.publish(harness.write(tx, "g-0")).is_committed
    harness.clock.advance(2)
    later = transactions.begin("commit", "UPSERT").timeline
    assert (later.get(times[0]), later.is_completed(times[0])) == (None, True)


def test_a_write_that_was_published_and_archived_before_the_listing_leads_to_another(harness: Any, at: At) -> None:
    """Its claim alone does not tell whether what lies around it is archived too."""
    long = harness.open().begin("commit", "UPSERT")
    other = harness.commit("h-0")

    def publish_and_archive() -> None:
        assert long.publish(harness.write(long, "g-0")).is_committed
        for requested in (long.instant, other):
            harness.archive(requested)

    harness.commit("i-0")
    storage = CountingStorage(harness.storage)
    transactions = harness.open(storage=storage, trace=at(StopPoint.BEGIN_FORWARDED, publish_and_archive))
    transactions.begin("commit", "UPSERT")
    tx = transactions.begin("commit", "UPSERT")
    assert tx.timeline.completed() == harness.timeline().completed()
    assert tx.timeline.is_completed(other)


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_plan_of_another_process_is_met_at_once(harness: Any, clustering_plan: Any, is_begun: bool) -> None:
    transactions = harness.open()
    commit(harness, transactions)
    tx = transactions.begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    other = harness.open().coordinator
    with other.hold():
        heartbeat = other.schedule(other.look(), "clustering", plan=clustering_plan(("p", "g-0")))
    if is_begun:
        other.begin(Instant(heartbeat.requested, "clustering", State.REQUESTED))
    assert tx.publish(metadata).conflict.other == heartbeat.requested
    heartbeat.stop()


def test_a_clean_of_another_process_changes_nothing(harness: Any) -> None:
    transactions = harness.open()
    for _ in range(3):
        commit(harness, transactions)
        harness.clock.advance(0.1)
    settings = CleanSettings.of({"hoodie.clean.commits.retained": "1"})
    Cleaner(harness.open().coordinator, settings).run()
    tx = transactions.begin("commit", "UPSERT")
    assert tx.timeline.completed(("commit",)) == harness.timeline().completed(("commit",))
    assert tx.publish(harness.write(tx, "g-0")).is_committed


def test_a_restore_is_waited_for_and_what_it_undid_is_gone(harness: Any) -> None:
    transactions = harness.open()
    kept, undone = (commit(harness, transactions, group).instant for group in ("g-0", "h-0"))
    restoring = harness.open().coordinator
    heartbeat = restoring.schedule(restoring.look(), "restore", plan=b"plan", kind=ClaimKind.RESTORE)
    requested = heartbeat.requested
    plan = Instant(requested, "restore", State.REQUESTED)
    for _ in range(2):
        with pytest.raises(WriteAborted, match=f"restore {requested} is pending"):
            transactions.begin("commit", "UPSERT")
    found = harness.timeline().get(undone)
    for instant in (found, found.as_inflight(), found.as_requested()):
        harness.storage.delete(LAYOUT_2.path(instant))
    create_instant(harness.storage, LAYOUT_2, instant=plan.as_completed(add_ms(requested, 1)), data=b"done")
    timeline = transactions.begin("commit", "UPSERT").timeline
    assert (timeline.is_completed(kept), timeline.get(undone)) == (True, None)


# ---- times ----


@pytest.mark.parametrize("end", ["publish", "abort"])
def test_a_time_that_somebody_had_and_left_again_is_not_taken_anew(harness: Any, at: At, end: str) -> None:
    """Its heartbeat is gone, and the timeline that is known is of before."""
    first = commit(harness, harness.open())
    had: list[str] = []

    def come_and_go() -> None:
        tx = harness.open().begin("commit", "UPSERT")
        had.append(tx.instant)
        assert tx.publish(harness.write(tx, "h-0")).is_committed if end == "publish" else tx.abort("enough")

    transactions = harness.open(trace=at(StopPoint.BEGIN_LISTED, come_and_go))
    tx = transactions.begin("commit", "UPSERT")
    assert had
    assert tx.instant > had[0] > first.instant
    assert tx.publish(harness.write(tx, "g-0")).is_committed


def test_a_completion_time_lies_after_the_begin_of_every_pending_write(harness: Any) -> None:
    """Who begins on a machine whose clock is ahead has not seen what is completed then; cleaners go by these times."""
    transactions = harness.open()
    commit(harness, transactions)
    tx = transactions.begin("commit", "UPSERT")
    ahead = ManualClock(harness.clock.wall_ms() + 40)
    other = replace(harness, clock=ahead).open().begin("commit", "UPSERT")
    result = tx.publish(harness.write(tx, "g-0"))
    assert str(result.completion_time) > other.instant > tx.instant
    assert transactions.begin("commit", "UPSERT").instant > other.instant


# ---- a JVM writer that should not be there ----


def test_a_jvm_writer_is_known_by_its_heartbeat(harness: Any) -> None:
    """And by the heartbeat that is gone, so that what it committed meanwhile is a conflict within the same second."""
    transactions = harness.open()
    commit(harness, transactions)
    theirs = add_ms(harness.timeline().newest_time(), 1)
    create_instant(harness.storage, LAYOUT_2, instant=Instant(theirs, "commit", State.REQUESTED))
    harness.storage.create_if_absent(heartbeat_path(theirs), b"")
    tx = transactions.begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    harness.foreign_commit(theirs, add_ms(tx.instant, 1), "g-0")
    harness.storage.delete(heartbeat_path(theirs))
    assert tx.publish(metadata).conflict.other == theirs
    assert transactions.notices.foreign_writer_seen


def test_a_commit_that_nobody_claimed_is_noticed_by_the_next_listing(harness: Any) -> None:
    transactions = harness.open()
    commit(harness, transactions)
    harness.foreign_commit("20231114221319990", add_ms(harness.timeline().newest_time(), 1), "h-0")
    commit(harness, transactions)
    assert not transactions.notices.foreign_writer_seen
    harness.clock.advance(2)
    commit(harness, transactions)
    assert transactions.notices.foreign_writer_seen


def test_what_a_publisher_that_slept_brings_back_for_a_moment_is_no_foreign_writer(harness: Any) -> None:
    old, transactions = harness.commit("g-0"), harness.open()
    found = harness.timeline().get(old)
    data = harness.storage.read(LAYOUT_2.path(found))
    harness.commit("h-0")
    harness.archive(old)
    commit(harness, transactions)
    harness.storage.create_if_absent(LAYOUT_2.path(found), data)
    harness.clock.advance(2)
    commit(harness, transactions)
    assert not transactions.notices.foreign_writer_seen


def test_a_claim_that_tells_of_more_than_a_write_leads_to_a_listing(harness: Any) -> None:
    storage = CountingStorage(harness.storage)
    transactions = harness.open(storage=storage)
    commit(harness, transactions)
    log = transactions.coordinator.log
    for kind in (ClaimKind.SCHEDULE, ClaimKind.VOID, ClaimKind.ROLLBACK):
        time = add_ms(str(log.read_head().time), 5)
        content = Content.of(f"{time}.clean.requested", b"plan") if kind is ClaimKind.SCHEDULE else None
        claim = Claim(kind, time, "commit", add_ms(time, 2), content=content, rollback_instant=add_ms(time, 1))
        assert log.append(log.draft(log.read_head(), claim)) is not None
        before = storage.listings
        tx = transactions.begin("commit", "UPSERT")
        assert storage.listings > before
        assert tx.timeline.get(time) == harness.timeline().get(time)


# ---- the log is read before the lock is asked for ----


@pytest.mark.parametrize(("theirs", "is_committed"), [("g-1", True), ("g-0", False)])
def test_a_claim_between_the_last_look_and_the_lock_is_seen(
    harness: Any, at: At, theirs: str, is_committed: bool
) -> None:
    others = harness.open()
    tracer = at(StopPoint.PUBLISH_LOCKED, lambda: commit(harness, others, theirs))
    tx = harness.open(trace=tracer).begin("commit", "UPSERT")
    result = tx.publish(harness.write(tx, "g-0"))
    assert result.is_committed is is_committed
    assert is_committed or result.conflict.groups[0].file_id.startswith(theirs)


def test_the_log_is_read_once_for_a_publish_that_has_the_lock_at_once(harness: Any) -> None:
    storage = CountingStorage(harness.storage)
    tx = harness.open(storage=storage).begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")
    storage.calls.clear()
    assert tx.publish(metadata).is_committed
    assert [path for verb, path in storage.calls if verb == "read" and "/claims/" in path] == [claim_path(1)]
    assert storage.calls["read", claim_path(1)] == 1
