"""Compaction of a table of version 6: its plan stays, and whoever comes later runs it again under the same time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from old_logging_simulator import CONFIG, encode_rows
from transaction_harness import MODE, Harness, write_file

from hudi_locks.errors import UnsupportedTable, WriteAborted
from hudi_locks.format import CommitMetadata, CompactionPlan, Instant, LogFileName, LogPlace, State, WriteStat
from hudi_locks.format.claim import ClaimKind
from hudi_locks.services import Compaction, choose_slices
from hudi_locks.table import Table, create_partition_metadata, latest_file_slices
from hudi_locks.table.old_logs import find_log_places, list_planned_barriers
from hudi_locks.timeline import LAYOUT_1, create_instant
from hudi_locks.transaction import Outcome, PublishResult, StopPoint, Transaction

G = "g-0"


@dataclass
class OldCompactions:
    """Processes that log rows of one file group, and merge them."""

    harness: Harness

    def compaction(self, **how: Any) -> Compaction:
        return Compaction(Table(self.harness.storage, CONFIG), self.harness.open(**how))

    def log(self, tx: Transaction | None = None) -> str:
        """Publish a log of the file group, above what is below it now."""
        tx = tx or self.harness.open().begin("deltacommit", "UPSERT")
        slices = latest_file_slices(self.harness.storage, tx.timeline)
        places = find_log_places(slices, list_planned_barriers(self.harness.storage, tx.timeline))
        name = places.get(("p", G), LogPlace(tx.instant, 1)).name(G, tx.instant)
        ticket = write_file(tx.files, "p", str(name), encode_rows(tx.instant, [tx.instant]))
        stat = WriteStat("p", G, f"p/{name}", log_version=name.version, ticket=ticket)
        assert tx.publish(CommitMetadata.of([stat], "UPSERT", schema="{}")).is_committed
        self.harness.clock.advance(1)
        return tx.instant

    def merge(self, compaction: Compaction, tx: Transaction, plan: CompactionPlan) -> CommitMetadata:
        """Make the base files; a row is the requested time of the write that it came with."""
        stats = []
        for piece in choose_slices(compaction.table, plan, tx.instant):
            name = str(tx.files.name_base("p", piece.file_id))
            rows = [log.path for log in piece.logs]
            ticket = write_file(tx.files, "p", name, json.dumps(rows).encode())
            stats.append(WriteStat("p", piece.file_id, f"p/{name}", ticket=ticket))
        return CommitMetadata.of(stats, "COMPACT", schema="{}", compacted=True)

    def run(self, compaction: Compaction, taken: tuple[Transaction, CompactionPlan] | None) -> PublishResult:
        assert taken is not None
        tx, plan = taken
        unless = compaction.refuse_publish(tx, plan)
        return tx.publish(self.merge(compaction, tx, plan), unless=unless)

    def bases(self, requested: str) -> list[str]:
        return [name for name in self.harness.names("p") if name.endswith(f"_{requested}.parquet")]

    def merged(self, requested: str) -> list[str]:
        (name,) = self.bases(requested)
        found: list[str] = json.loads(self.harness.storage.read(f"p/{name}") or b"")
        return found


@pytest.fixture
def old(harness: Any) -> OldCompactions:
    harness.table_type, harness.layout = "MERGE_ON_READ", LAYOUT_1
    create_partition_metadata(harness.storage, "p", instant="0")
    return OldCompactions(harness)


def test_a_plan_becomes_a_commit_of_its_time_and_later_logs_lie_on_top(old: OldCompactions) -> None:
    below = [old.log(), old.log()]
    compaction = old.compaction()
    planned = compaction.schedule()
    assert planned is not None
    above = old.log()
    assert old.run(compaction, compaction.take()).is_committed
    assert len(old.merged(planned)) == len(below)
    (piece,) = latest_file_slices(old.harness.storage, old.harness.timeline())
    assert piece.base is not None
    assert (piece.base.instant, [log.instant for log in piece.logs]) == (planned, [planned])
    assert above in [one.requested for one in old.harness.timeline().completed(("deltacommit",))]
    again = compaction.schedule()
    assert again is not None
    assert compaction.read_plan(again).groups[0].base_name == old.bases(planned)[0]


def test_what_gave_up_leaves_the_plan_and_is_run_again_with_files_of_other_names(old: OldCompactions) -> None:
    old.log()
    compaction = old.compaction()
    planned = compaction.schedule()
    taken = compaction.take()
    assert taken is not None
    assert taken[0].abort("a task failed").outcome is Outcome.ABORTED
    (pending,) = compaction.list_pending(old.harness.timeline())
    assert (pending.instant, pending.is_begun, pending.is_alive, pending.is_ours) == (planned, True, False, True)
    assert not old.harness.timeline().completed(("rollback",))
    old.log()
    assert old.run(compaction, compaction.take()).is_committed
    assert old.bases(str(planned)) == [f"{G}_0-0-{old.harness.claims()[-2].number}_{planned}.parquet"]


def test_an_attempt_that_was_taken_for_dead_publishes_nothing(old: OldCompactions) -> None:
    old.log()
    sleeper, compaction = old.compaction(), old.compaction()
    planned = str(sleeper.schedule())
    taken = sleeper.take()
    assert taken is not None
    with pytest.raises(WriteAborted, match="under way in another process"):
        compaction.take(planned)
    taken[0]._state.heartbeat.pause()
    metadata = old.merge(sleeper, *taken)
    again = compaction.take(planned)
    taken[0]._state.heartbeat._last_s = float("inf")
    late = taken[0].publish(metadata)
    assert late.outcome is Outcome.ABORTED
    assert "rolled the instant back" in late.reason
    assert old.run(compaction, again).is_committed
    assert len(old.bases(planned)) == 1


def test_a_lost_ticket_voids_the_attempt_and_not_the_plan(old: OldCompactions) -> None:
    old.log()

    def lose(point: StopPoint) -> None:
        if point is StopPoint.PUBLISH_CLAIMED:
            claim = old.harness.claims()[-1]
            for path, ticket in tickets(old, claim.number).items():
                old.harness.storage.cancel(ticket, path)

    compaction = old.compaction(trace=lose)
    planned = str(compaction.schedule())
    result = old.run(compaction, compaction.take())
    assert result.outcome is Outcome.ABORTED
    assert [claim.kind for claim in old.harness.claims()][-2:] == [ClaimKind.PUBLISH, ClaimKind.VOID]
    found = old.harness.timeline().get(planned)
    assert found is not None
    assert found.state is State.INFLIGHT
    other = old.compaction()
    assert old.run(other, other.take(planned)).is_committed
    assert old.harness.timeline().is_completed(planned)


def tickets(old: OldCompactions, number: int) -> dict[str, str]:
    log = old.harness.open().coordinator.log
    claim = log.read(number)
    assert claim is not None
    return dict(log.read_tickets(claim) or {})


def test_a_plan_that_a_jvm_runs_is_left_to_it(old: OldCompactions) -> None:
    old.log()
    compaction = old.compaction()
    planned = str(compaction.schedule())
    begun = Instant(planned, "compaction", State.INFLIGHT)
    create_instant(old.harness.storage, LAYOUT_1, instant=begun)
    assert compaction.take() is None
    with pytest.raises(WriteAborted, match="was planned by a JVM writer"):
        compaction.take(planned)


def test_a_plan_is_not_taken_back(old: OldCompactions) -> None:
    old.log()
    compaction = old.compaction()
    planned = str(compaction.schedule())
    with pytest.raises(UnsupportedTable, match=f"named by {planned}: run it"):
        compaction.abort(planned)
    assert compaction.transactions.resolve(planned) is Outcome.ABORTED
    assert old.harness.timeline().get(planned) is not None
    assert old.run(compaction, compaction.take()).is_committed


def test_what_is_resolved_is_not_published_afterwards_whatever_ended_before(old: OldCompactions) -> None:
    old.log()
    compaction = old.compaction()
    planned = str(compaction.schedule())
    first = compaction.take()
    assert first is not None
    first[0].abort("a task failed")
    again = compaction.take(planned)
    assert old.compaction().transactions.resolve(planned) is Outcome.ABORTED
    assert old.run(compaction, again).outcome is Outcome.ABORTED
    assert old.run(compaction, compaction.take(planned)).is_committed
    assert compaction.transactions.resolve(planned) is Outcome.COMMITTED


def test_a_single_writer_plans_nothing_beside_a_write(old: OldCompactions) -> None:
    old.log()
    begun = Instant("20231114221322000", "deltacommit", State.REQUESTED)
    create_instant(old.harness.storage, LAYOUT_1, instant=begun)
    single = {MODE: "SINGLE_WRITER"}
    assert old.compaction(**single).schedule() is None
    assert old.compaction().schedule() is not None


def test_what_a_jvm_logged_below_the_plan_is_merged_or_waited_for(old: OldCompactions) -> None:
    old.harness.foreign = True
    first = old.log()
    begun = Instant(f"{int(first) + 1}", "deltacommit", State.REQUESTED)
    for state in (begun, begun.as_inflight()):
        create_instant(old.harness.storage, LAYOUT_1, instant=state)
    compaction = old.compaction()
    planned = str(compaction.schedule())
    with pytest.raises(WriteAborted, match=f"the write {begun.requested} began before the plan could be seen"):
        compaction.take()
    path = f"p/{LogFileName(G, first, 2, '1-2-3')}"
    old.harness.storage.create_if_absent(path, encode_rows(begun.requested, ["theirs"]))
    stat = WriteStat("p", G, path, log_version=2)
    data = CommitMetadata.of([stat], "UPSERT", schema="{}").encode("deltacommit", layout_version=1)
    create_instant(old.harness.storage, LAYOUT_1, instant=begun.as_completed(first), data=data)
    assert path.rpartition("/")[2] not in compaction.read_plan(planned).groups[0].log_names
    assert old.run(compaction, compaction.take()).is_committed
    assert path in old.merged(planned)


def test_what_is_logged_below_while_it_is_merged_keeps_it_from_its_publish(old: OldCompactions) -> None:
    old.harness.foreign = True
    first = old.log()
    compaction = old.compaction()
    planned = str(compaction.schedule())
    taken = compaction.take()
    assert taken is not None
    unless = compaction.refuse_publish(*taken)
    metadata = old.merge(compaction, *taken)
    late, path = f"{int(planned) + 1}", f"p/{LogFileName(G, first, 2, '1-2-3')}"
    old.harness.storage.create_if_absent(path, encode_rows(late, ["theirs"]))
    done = CommitMetadata.of([WriteStat("p", G, path, log_version=2)], "UPSERT", schema="{}")
    begun = Instant(late, "deltacommit", State.REQUESTED)
    data = done.encode("deltacommit", layout_version=1)
    for state in (begun, begun.as_inflight()):
        create_instant(old.harness.storage, LAYOUT_1, instant=state)
    create_instant(old.harness.storage, LAYOUT_1, instant=begun.as_completed(late), data=data)
    refused = taken[0].publish(metadata, unless=unless)
    assert f"the write {late} logged below the plan meanwhile" in refused.reason
    assert old.run(compaction, compaction.take()).is_committed
    assert path in old.merged(planned)
