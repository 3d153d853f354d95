"""Ending a write that is not published: rolling it back, or deciding what became of one whose publish had no answer."""

from __future__ import annotations

from hudi_locks.errors import StorageError, TableError, WriteError
from hudi_locks.format.claim import Claim, ClaimKind
from hudi_locks.markers import drop_staged
from hudi_locks.timeline.archive import is_archived
from hudi_locks.timeline.claims import ClaimEntry
from hudi_locks.transaction.coordinator import TableCoordinator
from hudi_locks.transaction.write_state import Conflict, Outcome, PublishResult, WriteState

__all__ = ["abort_write", "find_published", "resolve_instant"]


def abort_write(
    coordinator: TableCoordinator, state: WriteState, reason: str, *, conflict: Conflict | None = None
) -> PublishResult:
    """End a write that certainly was not published, inside the table lock.

    It is rolled back, unless somebody did, and what its tasks staged is cancelled. That comes first: on a full disk it
    makes room for the claim. Failures are warnings: the next writer cleans up.

    Where the plan stays, and somebody may run it again by now, only the claim is made: the rest might be theirs.
    """
    warnings: list[str] = []
    is_shared = coordinator.rollback.keeps_plan(state.instant.action)
    try:
        if not is_shared:
            drop_staged(coordinator.storage, [state.requested])
        _roll_back(coordinator, state)
        if not is_shared:
            coordinator.rollback.remove_traces(state.instant)
    except (StorageError, TableError, WriteError) as error:
        warnings.append(f"not all of {state.requested} was removed, the next write goes on: {error}")
    try:
        state.heartbeat.pause() if is_shared else state.heartbeat.stop()
    except StorageError as error:
        warnings.append(f"the heartbeat file of {state.requested} was not removed: {error}")
    return PublishResult(state.requested, Outcome.ABORTED, conflict=conflict, reason=reason, warnings=tuple(warnings))


def find_published(coordinator: TableCoordinator, state: WriteState) -> Claim | None:
    """The PUBLISH of a write, if one was claimed and counts; it is completed then.

    Raises:
        DamagedTable: The claim log is unreadable, so that nobody can tell.
        StorageError: The store does not say.
        PossibleLostUpdate: It was undone outside the claim log.
    """
    own = coordinator.find_own_claim(state.requested, since=state.own_since)
    return own if own is not None and own.kind is ClaimKind.PUBLISH else None


def resolve_instant(coordinator: TableCoordinator, requested: str) -> Outcome:
    """What became of an instant; an undecided one is rolled back. Inside the table lock: see `Transactions.resolve`."""
    coordinator.check_clock(coordinator.load_timeline())
    while True:
        view = coordinator.roll_forward()
        found = view.timeline.get(requested)
        if found is not None and found.is_completed:
            return Outcome.COMMITTED
        # Where a plan stays, what was decided about an attempt to run it says nothing of the next one.
        is_again = found is not None and coordinator.rollback.keeps_plan(found.action)
        if not is_again and (claimed := _find_decision(coordinator, requested, view.head)) is not None:
            return claimed
        if is_archived(coordinator.storage, coordinator.layout, requested=requested):
            return Outcome.COMMITTED
        # Without a file on the timeline, a PUBLISH that still lands is voided, for its inflight file is gone.
        if found is None or coordinator.rollback.run(view, found):
            return Outcome.ABORTED


def _roll_back(coordinator: TableCoordinator, state: WriteState) -> None:
    """On a full disk the data files make room: nobody but its writer, which gives it up, can publish them."""
    is_shared = coordinator.rollback.keeps_plan(state.instant.action)
    try:
        _claim_rollback(coordinator, state)
    except StorageError as error:
        if is_shared or not error.is_disk_full or not coordinator.rollback.remove_files(state.requested):
            raise
        _claim_rollback(coordinator, state)


def _claim_rollback(coordinator: TableCoordinator, state: WriteState) -> None:
    while coordinator.find_own_claim(state.requested, since=state.own_since) is None:
        if coordinator.rollback.run(coordinator.roll_forward(), state.instant):
            return


def _find_decision(coordinator: TableCoordinator, requested: str, head: ClaimEntry) -> Outcome | None:
    """The decision in the log, which no plan is. Claims about an instant are later: the search ends at its time."""
    number = head.number
    while number and (claim := coordinator.log.read(number)) is not None and claim.time >= requested:
        if claim.instant == requested and claim.kind is not ClaimKind.SCHEDULE:
            return Outcome.COMMITTED if claim.kind is ClaimKind.PUBLISH else Outcome.ABORTED
        number -= 1
    return None
