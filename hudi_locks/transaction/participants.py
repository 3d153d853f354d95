"""What must be durable before a claim publishes a write: one list, which every publish goes through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hudi_locks.format import CommitMetadata, Instant
from hudi_locks.markers import reconcile
from hudi_locks.storage import Storage
from hudi_locks.timeline import Timeline

__all__ = ["CommitParticipant", "PreparedCommit", "ReconciledFiles"]


@dataclass(frozen=True)
class PreparedCommit:
    """A commit that found no conflict, and is about to be claimed.

    Attributes:
        instant: Inflight.
        metadata: What its completed file will hold.
        timeline: On which was decided.
    """

    instant: Instant
    metadata: CommitMetadata
    timeline: Timeline


class CommitParticipant(Protocol):
    """A part of the table beside its timeline that readers look at as soon as a commit is completed.

    Whoever finds the claim completes the commit, perhaps in another process: nothing is prepared then any more.
    """

    def prepare(self, commit: PreparedCommit) -> None:
        """Make durable what readers of the commit will need. Runs inside the table lock, before the claim.

        It is asked again when another claim was first, and what it made may come to nothing: the write can be rolled
        back afterwards, by any process.

        Raises:
            WriteAborted: The commit must not be published.
            StorageError: The store failed; the write is rolled back.
        """


@dataclass(frozen=True)
class ReconciledFiles:
    """The table's data files: those that failed attempts left go, since every reader would show their rows twice.

    Attributes:
        storage: Of the table.
        fail_on_stray: `hoodie.fail.job.on.duplicate.data.file.detection`.
    """

    storage: Storage
    fail_on_stray: bool

    def prepare(self, commit: PreparedCommit) -> None:
        """See `CommitParticipant.prepare`."""
        requested, written = commit.instant.requested, commit.metadata.paths
        reconcile(self.storage, requested, written=written, fail_on_stray=self.fail_on_stray)
