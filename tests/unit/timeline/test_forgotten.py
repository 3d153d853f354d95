"""A commit that the claim log published and the timeline has lost is named, and nothing is undone or removed for it."""

from __future__ import annotations

from typing import Any

import pytest
from service_harness import ServiceHarness
from transaction_harness import Killed

from hudi_locks.clock import ManualClock
from hudi_locks.errors import DamagedTable
from hudi_locks.format import Instant, State, format_time
from hudi_locks.format.claim import ClaimKind
from hudi_locks.services import TableServices
from hudi_locks.storage import MemoryStorage
from hudi_locks.table import Table, TableConfig, create_partition_metadata, latest_base_files
from hudi_locks.timeline import LAYOUT_2, index_files
from hudi_locks.transaction import StopPoint


@pytest.fixture
def harness() -> ServiceHarness:
    clock = ManualClock()
    harness = ServiceHarness(clock, MemoryStorage(clock))
    Table.create(harness.storage, TableConfig("t", ("id",), ("part",)))
    create_partition_metadata(harness.storage, "p", instant="0")
    return harness


def files(harness: ServiceHarness) -> dict[str, bytes | None]:
    """All that is there, but for what tells where the claim log ends and how clocks go."""
    found = {path: harness.storage.read(path) for path, _ in harness.storage.walk("")}
    return {path: data for path, data in found.items() if not path.endswith("/head")}


def lose(harness: ServiceHarness, requested: str, *, states: slice = slice(2, 3)) -> str:
    """Take away files of an instant: the completed one, or all."""
    paths = index_files(harness.storage, LAYOUT_2)[(requested, "commit")]
    for path in paths[states]:
        assert harness.storage.delete(path)
    return paths[-1]


def test_a_lost_commit_is_not_a_dead_writer(harness: ServiceHarness) -> None:
    lost = harness.put("p/g-0")
    harness.put("p/h-0")
    path = lose(harness, lost)
    before = files(harness)
    for act in (
        lambda: latest_base_files(harness.storage, harness.timeline()),
        lambda: harness.open().begin("commit", "UPSERT"),
        lambda: harness.open().roll_back_failed(),
        lambda: harness.open_single().begin("commit", "UPSERT"),
    ):
        harness.clock.advance(7200)
        with pytest.raises(DamagedTable, match="hudi-locks verify") as caught:
            act()
        assert (caught.value.path, caught.value.instant) == (path, lost)
        assert files(harness) == before
    content = harness.claims()[0].content
    assert content is not None
    harness.storage.replace(path, content.data or b"")
    assert [file.file_id for file in latest_base_files(harness.storage, harness.timeline())] == ["g-0", "h-0"]


def test_the_last_commit_is_made_again_from_its_claim_or_refused_and_never_rolled_back(harness: ServiceHarness) -> None:
    transactions = harness.open()
    tx = transactions.begin("commit", "UPSERT")
    assert tx.publish(harness.rewrite(tx, "p/g-0")).is_committed
    path = lose(harness, tx.instant)
    transactions.begin("commit", "UPSERT").abort("it is not needed")
    assert harness.storage.exists(path)
    lost = lose(harness, harness.put("p/h-0"))
    harness.open().begin("commit", "UPSERT").abort("it is not needed")
    assert harness.storage.exists(lost)


def test_where_requests_cost_much_the_last_commit_is_looked_for_by_the_next_listing(
    harness: ServiceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryStorage, "is_remote", True)
    transactions = harness.open()
    tx = transactions.begin("commit", "UPSERT")
    assert tx.publish(harness.rewrite(tx, "p/g-0")).is_committed
    looked = count_looks(monkeypatch)
    transactions.begin("commit", "UPSERT")
    path = lose(harness, tx.instant)
    assert path not in looked
    harness.clock.advance(2)
    transactions.begin("commit", "UPSERT")
    assert path in looked
    assert harness.storage.exists(path)


def count_looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are looked at from now on."""
    looked: list[str] = []
    look = MemoryStorage.exists

    def spy(self: MemoryStorage, path: str) -> bool:
        looked.append(path)
        return look(self, path)

    monkeypatch.setattr(MemoryStorage, "exists", spy)
    return looked


def test_the_files_of_a_lost_commit_are_not_swept(harness: ServiceHarness) -> None:
    harness.put("p/g-0")
    lost = harness.put("p/h-0")
    harness.put("p/i-0")
    lose(harness, lost, states=slice(0, 3))
    harness.clock.advance(7200)
    before = harness.files()
    with pytest.raises(DamagedTable, match="published the write"):
        TableServices(harness.open(), {}).sweep()
    assert harness.files() == before


def test_an_emptied_timeline_is_not_an_empty_table(harness: ServiceHarness) -> None:
    table = Table.load(harness.storage)
    assert table.timeline().instants == ()
    first, last = harness.put("p/g-0"), harness.put("p/h-0")
    for requested in (first, last):
        lose(harness, requested, states=slice(0, 3))
    before = files(harness)
    for act in (table.timeline, lambda: harness.open().begin("commit", "UPSERT")):
        with pytest.raises(DamagedTable, match="no instant at all is there"):
            act()
    assert files(harness) == before


def test_a_first_write_that_others_rolled_back_is_voided_where_their_own_are_archived(
    harness: ServiceHarness, at: Any
) -> None:
    """A writer that keeps no claims took the first claim's write for dead, and all that it wrote itself is archived."""
    dying = harness.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    made = harness.rewrite(dying, "p/g-0")
    with pytest.raises(Killed):
        dying.publish(made)
    lose(harness, dying.instant, states=slice(0, 2))
    harness.clock.advance(1)
    theirs = format_time(harness.clock.wall_ms())
    harness.foreign_commit(theirs, theirs, "h-0")
    harness.archive(theirs)
    harness.clock.advance(7200)
    harness.open().roll_back_failed()
    assert [claim.kind for claim in harness.claims()] == [ClaimKind.PUBLISH, ClaimKind.VOID]


def test_nothing_is_voided_where_the_commit_before_is_lost_too(harness: ServiceHarness) -> None:
    harness.put("p/f-0")
    lost = [harness.put("p/g-0"), harness.put("p/h-0")]
    for requested in lost:
        lose(harness, requested, states=slice(0, 3))
    with pytest.raises(DamagedTable, match="the timeline does not know it") as caught:
        harness.open().begin("commit", "UPSERT")
    assert caught.value.instant == lost[0]
    assert len(harness.claims()) == 3


def test_pending_writes_archived_ones_and_claims_that_are_unfinished_are_no_damage(
    harness: ServiceHarness, at: Any
) -> None:
    archived = harness.put("p/g-0")
    harness.put("p/h-0")
    harness.archive(archived)
    living = harness.open().begin("commit", "UPSERT")
    harness.rewrite(living, "p/i-0")
    dying = harness.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    made = harness.rewrite(dying, "p/j-0")
    with pytest.raises(Killed):
        dying.publish(made)
    assert [file.file_id for file in latest_base_files(harness.storage, harness.timeline())] == ["g-0", "h-0"]
    harness.put("p/k-0")
    assert [file.file_id for file in latest_base_files(harness.storage, harness.timeline())] == [
        "g-0",
        "h-0",
        "j-0",
        "k-0",
    ]


def kill() -> None:
    raise Killed


def test_what_a_restore_of_the_jvm_undoes_is_no_damage(harness: ServiceHarness) -> None:
    harness.put("p/g-0")
    undone = harness.put("p/h-0")
    harness.put("p/i-0")
    lose(harness, undone)
    harness.storage.replace(LAYOUT_2.path(Instant("20231114230000000", "restore", State.INFLIGHT)), b"")
    assert [file.file_id for file in latest_base_files(harness.storage, harness.timeline())] == ["g-0", "i-0"]


def test_a_table_that_lost_its_only_commit_and_all_that_told_of_it_is_not_taken_for_empty(
    harness: ServiceHarness,
) -> None:
    lost = harness.put("p/g-0")
    lose(harness, lost, states=slice(0, 3))
    before = files(harness)
    for act in (
        lambda: harness.open().begin("commit", "UPSERT"),
        lambda: harness.open().roll_back_failed(),
        lambda: harness.open_single().begin("commit", "UPSERT"),
    ):
        with pytest.raises(DamagedTable, match="hudi-locks verify") as caught:
            act()
        assert caught.value.instant == lost
        assert files(harness) == before
