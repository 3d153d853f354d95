"""Services that are planned first and run later, perhaps by another process: what waits, and who runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from hudi_locks.errors import WriteAborted
from hudi_locks.format import Instant, State, clustered_file_groups
from hudi_locks.format.compaction_plan import compacted_file_groups
from hudi_locks.table import Table, latest_file_slices
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import Outcome, Transaction, Transactions, Unless

__all__ = ["PendingPlan", "Plan", "PlannedService"]


class Plan(Protocol):
    """What a service will take."""

    @property
    def file_groups(self) -> frozenset[tuple[str, str]]:
        """(partition path, file id) of each."""


P = TypeVar("P", bound=Plan)


@dataclass(frozen=True)
class PendingPlan(Generic[P]):
    """A plan that was not run to its end.

    Attributes:
        instant: Its requested time.
        plan: What it takes.
        is_begun: Whether somebody has begun to run it.
        is_alive: Whether a process that runs it, or is about to, gave a sign of life lately.
        is_ours: Whether this package made the plan; a JVM writer runs its own.
    """

    instant: str
    plan: P
    is_begun: bool
    is_alive: bool
    is_ours: bool


@dataclass(frozen=True)
class PlannedService(ABC, Generic[P]):
    """A service of one table, but for the rows themselves. Runs on the driver.

    Attributes:
        table: The table.
        transactions: Schedules, begins and publishes.
    """

    table: Table
    transactions: Transactions

    action: ClassVar[str]

    @abstractmethod
    def schedule(self) -> str | None:
        """Put a plan on the timeline; None if there is nothing to do."""

    @abstractmethod
    def count_commits(self, timeline: Timeline) -> int:
        """Writes completed since the last time that the service was planned."""

    @abstractmethod
    def _schedule_anew(self, pending: PendingPlan[P]) -> str | None:
        """Put a plan on the timeline in place of one that a dead process had begun; None for nothing left to do."""

    @abstractmethod
    def _begin(self, requested: str) -> Transaction:
        """Begin what is on the timeline."""

    @abstractmethod
    def _decode(self, data: bytes, path: str) -> P | None:
        """The plan that a requested file holds; None if it is none of this service, or gone."""

    def refuse_publish(self, transaction: Transaction, plan: P) -> Unless | None:  # noqa: ARG002  # for those who do
        """What may come between a run that begins now and its publish; None if the publish looks for all of it."""
        return None

    def list_pending(self, timeline: Timeline) -> list[PendingPlan[P]]:
        """Plans that were not run to their end, the oldest first.

        Raises:
            DamagedTable: A plan cannot be read.
        """
        pending = timeline.pending((self._pending_action,))
        dead = self.transactions.find_dead(instant.requested for instant in pending)
        found = [self._describe(instant, is_alive=instant.requested not in dead) for instant in pending]
        return [described for described in found if described is not None]

    def read_plan(self, requested: str) -> P:
        """The plan of an instant.

        Raises:
            WriteAborted: It is gone, or was never there.
        """
        plan = self._find_plan(requested)
        if plan is None:
            raise WriteAborted(f"there is no plan of {self.action} {requested}", instant=requested)
        return plan

    def take(self, instant: str | None = None) -> tuple[Transaction, P] | None:
        """Begin a plan that waits: `instant`, or the oldest of ours; None if none waits.

        What a dead process began is rolled back, with every file of it, and planned anew.

        Raises:
            WriteAborted: `instant` cannot be run: it is not there, is under way, or somebody else planned it.
            DamagedTable: A file of the partitions that it takes is lost or cut off; nothing was begun.
        """
        for pending in self._choose(instant):
            self._check_files(pending.plan)
            requested = self._renew(pending) if pending.is_begun else pending.instant
            if requested is None:
                continue
            plan = self.read_plan(requested)  # which does not change once it is on the timeline
            return self._begin(requested), plan
        return None

    def abort(self, instant: str) -> Outcome:
        """Take a plan back, with every file that was written for it; COMMITTED if it is done already.

        Raises:
            WriteAborted: There is no such plan of ours.
        """
        found = self.table.timeline().get(instant)
        if found is None or not found.is_completed:
            self._choose_one(instant)
        return self.transactions.resolve(instant)

    def _find_busy(self, timeline: Timeline) -> frozenset[tuple[str, str]]:
        """File groups that a plan has which was not run to its end, of whatever service."""
        readers = dict.fromkeys(("compaction", "logcompaction"), compacted_file_groups)
        return self._find_planned(timeline, readers) | self._find_clustered(timeline)

    def _find_clustered(self, timeline: Timeline) -> frozenset[tuple[str, str]]:
        """Those that wait to be clustered."""
        actions = ("clustering", "replacecommit")  # the last is a clustering of version 6, if it has a plan
        return self._find_planned(timeline, dict.fromkeys(actions, clustered_file_groups))

    def _find_planned(
        self, timeline: Timeline, readers: Mapping[str, Callable[[bytes, str], frozenset[tuple[str, str]]]]
    ) -> frozenset[tuple[str, str]]:
        pending = timeline.pending(tuple(readers))
        paths = [(timeline.layout.path(i.as_requested()), readers[i.action]) for i in pending]
        return frozenset(group for path, read in paths for group in read(self.table.storage.read(path) or b"", path))

    def _check_files(self, plan: P) -> None:
        """A plan has names alone: an empty log would be merged as one without rows, and a base file hide that."""
        partitions = {partition for partition, _ in plan.file_groups}
        latest_file_slices(self.table.storage, self.table.timeline(), partitions=partitions)

    def _find_plan(self, requested: str) -> P | None:
        path = self.table.layout.path(Instant(requested, self._pending_action, State.REQUESTED))
        return self._decode(self.table.storage.read(path) or b"", path)

    def _renew(self, pending: PendingPlan[P]) -> str | None:
        is_undone = self.transactions.resolve(pending.instant) is Outcome.ABORTED
        return self._schedule_anew(pending) if is_undone else None

    def _choose(self, instant: str | None) -> list[PendingPlan[P]]:
        if instant is None:
            pending = self.list_pending(self.table.timeline())
            return [one for one in pending if one.is_ours and not one.is_alive]
        chosen = self._choose_one(instant)
        if chosen.is_alive:
            raise WriteAborted(f"{self.action} {instant} is under way in another process", instant=instant)
        return [chosen]

    def _choose_one(self, instant: str) -> PendingPlan[P]:
        pending = self.list_pending(self.table.timeline())
        chosen = next((one for one in pending if one.instant == instant), None)
        if chosen is None:
            named = ", ".join(one.instant for one in pending) or "none"
            raise WriteAborted(f"{instant} is no pending {self.action}; there are: {named}", instant=instant)
        if not chosen.is_ours:
            message = f"{self.action} {instant} was planned by a JVM writer: let that run it, or roll it back there"
            raise WriteAborted(message, instant=instant)
        return chosen

    def _describe(self, instant: Instant, *, is_alive: bool) -> PendingPlan[P] | None:
        plan = self._find_plan(instant.requested)
        if plan is None:
            return None  # rolled back since the timeline was loaded
        is_ours = self.transactions.is_own_plan(instant.requested) and not self._is_taken_over(instant)
        return PendingPlan(instant.requested, plan, instant.state is State.INFLIGHT, is_alive, is_ours)

    @property
    def _pending_action(self) -> str:
        """As files of plans are named."""
        return self.action

    def _is_taken_over(self, instant: Instant) -> bool:  # noqa: ARG002  # for those who look
        """Whether a JVM writer runs a plan of ours."""
        return False
