"""Data files get their names from the claim: whoever settles it redeems its tickets, and a VOID takes them back."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import pytest
from transaction_harness import Harness, Killed, kill, write_file

from hudi_locks.errors import DamagedTable, StorageError
from hudi_locks.format import BaseFileName, CommitMetadata, Instant, State
from hudi_locks.format.claim import ClaimKind, claim_path, decode_claim, decode_tickets, encode_claim, encode_tickets
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.timeline.claims import STAGED_FOLDER
from hudi_locks.transaction import Outcome, StopPoint
from hudi_locks.transaction.rollback import Rollback

At = Callable[[StopPoint, Callable[[], object]], Any]
Patch = pytest.MonkeyPatch


def name_of(group: str, instant: str) -> str:
    return f"p/{BaseFileName(group, instant)}"


def die(harness: Harness, at: At, point: StopPoint, *groups: str) -> tuple[str, CommitMetadata]:
    """A writer that dies at a point of its publish."""
    tx = harness.open(trace=at(point, kill)).begin("commit", "UPSERT")
    metadata = harness.write(tx, *groups)
    with pytest.raises(Killed):
        tx.publish(metadata)
    tx._state.heartbeat.pause()
    return tx.instant, metadata


# ---- what gets its name ----


@pytest.mark.parametrize("point", [p for p in StopPoint if p.value.startswith("publish:")])
def test_an_attempt_that_the_claim_does_not_name_gets_no_name_at_any_step(harness: Harness, point: StopPoint) -> None:
    """Neither what was staged before nor what a task stages later, for the same file and for another."""
    late: list[StopPoint] = []

    def wake(reached: StopPoint) -> None:
        if reached is point and not late:
            late.append(reached)
            for group in ("g-0", "h-0"):
                write_file(tx.files, "p", str(BaseFileName(group, tx.instant)), b"stale")

    tx = harness.open(trace=wake).begin("commit", "UPSERT")
    harness.write(tx, "g-0", "h-0", data=b"stale")
    assert tx.publish(harness.write(tx, "g-0")).is_committed
    assert late
    assert harness.names("p") == [name_of("g-0", tx.instant).removeprefix("p/")]
    assert harness.storage.read(name_of("g-0", tx.instant)) == b"rows"


def test_nothing_has_its_name_before_the_claim_and_all_before_the_completed_file(harness: Harness) -> None:
    seen: dict[StopPoint, tuple[int, bool]] = {}

    def look(point: StopPoint) -> None:
        seen[point] = (len(harness.names("p")), bool(harness.timeline().completed()))

    tx = harness.open(trace=look).begin("commit", "UPSERT")
    assert tx.publish(harness.write(tx, "g-0", "h-0")).is_committed
    assert seen[StopPoint.PUBLISH_CLAIMED] == (0, False)
    assert seen[StopPoint.PUBLISH_NAMED] == seen[StopPoint.PUBLISH_LOOKED] == (2, False)
    assert seen[StopPoint.PUBLISH_COMPLETED] == (2, True)
    assert harness.storage.list_staged() == set()


@pytest.mark.parametrize("point", [StopPoint.PUBLISH_CLAIMED, StopPoint.PUBLISH_NAMED, StopPoint.PUBLISH_COMPLETED])
def test_the_next_writer_names_what_a_dead_one_claimed(harness: Harness, at: At, point: StopPoint) -> None:
    instant, _ = die(harness, at, point, "g-0", "h-0")
    following = harness.open().begin("commit", "UPSERT")
    assert following.timeline.is_completed(instant)
    assert [harness.storage.read(name_of(group, instant)) for group in ("g-0", "h-0")] == [b"rows", b"rows"]


def test_a_store_that_does_not_answer_while_files_are_named_leaves_the_write_to_the_next(
    harness: Harness, monkeypatch: Patch
) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0")

    def refuse(_: str, target: str) -> bool:
        raise StorageError(f"no answer for {target}", path=target)

    with monkeypatch.context() as patch:
        patch.setattr(harness.storage, "redeem", refuse)
        assert tx.publish(metadata).outcome is Outcome.UNKNOWN
    assert harness.open().resolve(tx.instant) is Outcome.COMMITTED
    assert harness.storage.exists(name_of("g-0", tx.instant))


# ---- lost tickets ----


@pytest.mark.parametrize("lost", ["g-0", "h-0"])
def test_a_lost_ticket_voids_the_write_whole(harness: Harness, at: At, lost: str) -> None:
    harness.commit("g-0")
    before = harness.names("p")
    found: list[str] = []

    def lose() -> None:
        [ticket] = [str(stat.ticket) for stat in metadata.stats if stat.file_id == lost]
        harness.storage.cancel(ticket, "")
        found.append(ticket)

    tx = harness.open(trace=at(StopPoint.PUBLISH_CLAIMED, lose)).begin("commit", "UPSERT")
    metadata = harness.write(tx, "g-0", "h-0")
    assert tx.publish(metadata).outcome is Outcome.ABORTED
    assert found
    assert [claim.kind for claim in harness.claims()][1:] == [ClaimKind.PUBLISH, ClaimKind.VOID]
    assert harness.names("p") == before
    assert harness.timeline().get(tx.instant) is None
    harness.commit("g-0", "h-0")


def test_a_file_that_was_cleaned_since_is_no_lost_one(harness: Harness, at: At) -> None:
    """A writer sleeps on its claim while others finish it, and clean what it wrote."""

    def overtake() -> None:
        harness.open().roll_back_failed()
        harness.storage.delete(name_of("g-0", tx.instant))

    tx = harness.open(trace=at(StopPoint.PUBLISH_CLAIMED, overtake)).begin("commit", "UPSERT")
    assert tx.publish(harness.write(tx, "g-0")).is_committed
    assert harness.names("p") == []
    assert [claim.kind for claim in harness.claims()] == [ClaimKind.PUBLISH]


def test_a_file_that_was_cleaned_and_its_commit_archived_is_no_lost_one(harness: Harness, at: At) -> None:
    def overtake() -> None:
        harness.open().roll_back_failed()
        harness.storage.delete(name_of("g-0", tx.instant))
        harness.archive(tx.instant)

    tx = harness.open(trace=at(StopPoint.PUBLISH_CLAIMED, overtake)).begin("commit", "UPSERT")
    assert tx.publish(harness.write(tx, "g-0")).is_committed
    assert harness.timeline().get(tx.instant) is None


def test_a_helper_that_wakes_up_leaves_the_completed_file_to_an_archiver_at_work(harness: Harness, at: At) -> None:
    """An archiver removes the oldest first. Whoever takes a file out of its order leaves a gap, behind which a JVM
    takes nothing for committed."""

    def overtake() -> None:
        harness.open().roll_back_failed()
        [done] = harness.timeline().completed()
        paths = harness.storage.read(LAYOUT_2.path(done))
        harness.archive(tx.instant)
        harness.storage.replace(LAYOUT_2.path(done), paths or b"")

    tx = harness.open(trace=at(StopPoint.PUBLISH_COMPLETED, overtake)).begin("commit", "UPSERT")
    harness.storage.capabilities = replace(MemoryStorage.capabilities, ended_folders=False)
    made = harness.storage.create_if_absent

    def be_second(path: str, data: bytes) -> bool:
        """The other is quicker."""
        return made(path, data) and not (path.startswith(LAYOUT_2.folder) and "_" in path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(harness.storage, "create_if_absent", be_second)
        assert tx.publish(harness.write(tx, "g-0")).is_committed
    assert harness.timeline().is_completed(tx.instant)


# ---- undoing ----


class Blind(MemoryStorage):
    """Without folders, and what is staged cannot be listed: only the claim tells of it."""

    capabilities = replace(MemoryStorage.capabilities, ended_folders=False)

    def cancel_staged(self, instants: Collection[str]) -> None:
        """Sees nothing."""

    def list_staged(self) -> set[str]:
        return set()

    def delete_folder(self, folder: str) -> None:
        if "/staging/" not in folder:
            super().delete_folder(folder)


UNDOING = [p for p in StopPoint if p.value.startswith("rollback:")]


def land_late(clock: Any, point: StopPoint) -> list[str]:
    """What has a name of a voided write, one of whose requests to name a file lands at `point` of the VOID.

    A JVM writer appears after the writer died on its claim, so that the claim is taken back.
    """
    harness = Harness(clock, Blind(clock), foreign=True)
    state: dict[str, Any] = {}

    def trace(reached: StopPoint) -> None:
        if reached is StopPoint.PUBLISH_CLAIMED and "dead" not in state:
            state["dead"] = True
            raise Killed
        if reached is point and "dead" in state:
            harness.storage.redeem(*state["request"])

    tx = harness.open(trace=trace).begin("commit", "UPSERT")
    [stat] = (metadata := harness.write(tx, "g-0")).stats
    state["request"] = (stat.ticket, stat.path)
    with pytest.raises(Killed):
        tx.publish(metadata)
    tx._state.heartbeat.pause()
    harness.foreign_commit("20231114221320500", "20231114221320600", "x-0")
    clock.advance(200)
    harness.open(trace=trace).roll_back_failed()
    assert ClaimKind.VOID in [claim.kind for claim in harness.claims()]
    return [name for name in harness.names("p") if tx.instant in name]


@pytest.mark.parametrize("point", UNDOING)
def test_a_late_request_brings_nothing_of_a_voided_write_back(harness: Harness, point: StopPoint) -> None:
    assert land_late(harness.clock, point) == []


def void_without_cancelling(patch: Patch) -> None:
    patch.setattr(Rollback, "_cancel", lambda self, claim: frozenset(self._context.log.read_tickets(claim) or {}))


def cancel_after_the_names_are_deleted(patch: Patch) -> None:
    cancel, undo = Rollback._cancel, Rollback._undo

    def undo_first(self: Any, claim: Any, rollback: Any) -> set[str]:
        with Patch.context() as late:
            void_without_cancelling(late)
            deleted = undo(self, claim, rollback)
        cancel(self, claim)
        return deleted

    patch.setattr(Rollback, "_undo", undo_first)


@pytest.mark.parametrize("plant", [void_without_cancelling, cancel_after_the_names_are_deleted])
def test_a_void_that_does_not_cancel_first_is_found(
    harness: Harness, monkeypatch: Patch, plant: Callable[[Patch], None]
) -> None:
    plant(monkeypatch)
    assert any(land_late(type(harness.clock)(), point) for point in UNDOING)


# ---- in the claim ----


def test_a_claim_of_many_files_keeps_its_tickets_beside_it(harness: Harness, at: At, monkeypatch: Patch) -> None:
    monkeypatch.setattr("hudi_locks.format.claim.INLINE_LIMIT", 40)
    instant, metadata = die(harness, at, StopPoint.PUBLISH_CLAIMED, "g-0", "h-0")
    [claim] = harness.claims()
    assert claim.tickets is not None
    assert claim.tickets.data is None
    data = harness.storage.read(f"{STAGED_FOLDER}/{claim.tickets.sha256}")
    assert decode_tickets(data or b"", claim) == metadata.tickets
    harness.commit("i-0")
    assert [name for name in harness.names("p") if instant in name] != []
    assert claim.tickets.sha256 not in harness.names(STAGED_FOLDER)


def test_a_void_takes_over_the_tickets_that_lie_beside_a_claim(harness: Harness, at: At, monkeypatch: Patch) -> None:
    monkeypatch.setattr("hudi_locks.format.claim.INLINE_LIMIT", 40)
    instant, metadata = die(harness, at, StopPoint.PUBLISH_NAMED, "g-0", "h-0")
    harness.storage.delete(LAYOUT_2.path(Instant(instant, "commit", State.INFLIGHT)))
    harness.commit("i-0")
    publish, void, _ = harness.claims()
    assert void.kind is ClaimKind.VOID
    assert void.tickets == publish.tickets
    assert [name for name in harness.names("p") if instant in name] == []
    assert not any(harness.storage.redeem(ticket, path) for path, ticket in metadata.tickets.items())


def test_a_claim_of_an_earlier_release_has_no_tickets(harness: Harness) -> None:
    harness.commit("g-0")
    [claim] = harness.claims()
    data = encode_claim(replace(claim, tickets=None)).replace(b'"tickets":null,', b"")
    assert b"ickets" not in data
    assert decode_claim(data, 1) == replace(claim, tickets=None)


def test_a_release_that_knows_no_tickets_refuses_a_claim_that_has_some(harness: Harness, at: At) -> None:
    """It would make the completed file of a write whose data files have no names."""
    die(harness, at, StopPoint.PUBLISH_CLAIMED, "g-0")
    kind = json.loads(harness.storage.read(claim_path(1)) or b"")["kind"]
    assert kind == "PUBLISH_BY_TICKETS"
    with pytest.raises(ValueError, match="PUBLISH_BY_TICKETS"):
        ClaimKind(kind)  # as 0.1.0 reads it


@pytest.mark.parametrize(
    "tickets",
    [
        b"no json",
        b"[]",
        b'{"p/g-0_0-0-0_20231114221320000.parquet":7}',
        b'{"p/g-0_0-0-0_20200101000000000.parquet":"t"}',
        b'{".hoodie/hoodie.properties":"t"}',
        b'{"../g-0_0-0-0_20231114221320000.parquet":"t"}',
    ],
)
def test_tickets_of_anything_but_files_of_the_instant_are_damage(harness: Harness, tickets: bytes) -> None:
    """A VOID removes what they name."""
    harness.commit("g-0")
    [claim] = harness.claims()
    assert claim.instant == "20231114221320000"
    with pytest.raises(DamagedTable, match="has tickets that cannot be read"):
        decode_tickets(tickets, claim)


def test_no_tickets_are_no_field() -> None:
    assert encode_tickets({}) is None
