"""Giving a write up: its own rollback under a claim, and what is left of it."""

from __future__ import annotations

from hudi_locks.errors import StorageError, TableError, WriteError
from hudi_locks.format.claim import Claim, ClaimKind
from hudi_locks.markers import end_turns
from hudi_locks.transaction.begun import Begun
from hudi_locks.transaction.context import Context
from hudi_locks.transaction.forward import RollForward
from hudi_locks.transaction.outcome import Conflict, Outcome, PublishResult
from hudi_locks.transaction.rollback import Rollback

__all__ = ["Retreat"]


class Retreat:
    """Ends a write that certainly was not published. Failures here are warnings: the next writer cleans up."""

    def __init__(self, context: Context, forward: RollForward, *, rollback: Rollback) -> None:
        self._context = context
        self._forward = forward
        self._rollback = rollback

    def run(self, begun: Begun, reason: str, *, conflict: Conflict | None = None) -> PublishResult:
        """Roll the write back, unless somebody did, and remove what its tasks wrote since.

        What tasks staged goes first: on a full disk that makes room for the claim.
        """
        warnings: list[str] = []
        try:
            end_turns(self._context.storage, begun.instant.requested)
            self._roll_back(begun)
            self._rollback.remove_traces(begun.instant.requested)
        except (StorageError, TableError, WriteError) as error:
            warnings.append(f"not all of {begun.instant.requested} was removed, the next write goes on: {error}")
        try:
            begun.heartbeat.stop()
        except StorageError as error:
            warnings.append(f"the heartbeat file of {begun.instant.requested} was not removed: {error}")
        return PublishResult(
            begun.instant.requested, Outcome.ABORTED, conflict=conflict, reason=reason, warnings=tuple(warnings)
        )

    def find_published(self, begun: Begun) -> Claim | None:
        """The PUBLISH of the write, if one was claimed and counts; it is completed then.

        Raises:
            DamagedTable: The claim log is unreadable, so that nobody can tell.
            StorageError: The store does not say.
            UpdateEndangered: It was undone outside the claim log.
        """
        own = self.find_own(begun)
        return own if own is not None and own.kind is ClaimKind.PUBLISH else None

    def find_own(self, begun: Begun) -> Claim | None:
        """The last claim about the write; None if there is none."""
        head = self._forward.to_head()
        claims = self._context.log.since(begun.claim_head, head)
        return next((claim for claim in reversed(claims) if claim.instant == begun.instant.requested), None)

    def _roll_back(self, begun: Begun) -> None:
        """On a full disk the data files make room: nobody but its writer, which gives it up, can publish them."""
        try:
            self._claim_rollback(begun)
        except StorageError as error:
            if not error.is_disk_full or not self._rollback.remove_files(begun.instant.requested):
                raise
            self._claim_rollback(begun)

    def _claim_rollback(self, begun: Begun) -> None:
        while self.find_own(begun) is None:
            head = self._forward.to_head()
            timeline = self._context.load_timeline()
            draft = self._rollback.draft(head, begun.instant, kind=ClaimKind.ROLLBACK, timeline=timeline)
            entry = self._rollback.append(draft)
            if entry is not None and entry.claim is not None:
                self._rollback.execute(entry.claim)
                return
