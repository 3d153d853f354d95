"""A commit that the claim log published and the timeline has lost is named, and nothing is undone or removed for it."""

from __future__ import annotations

from typing import Any

import pytest
from service_desk import ServiceDesk
from transaction_desk import Killed

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
def desk() -> ServiceDesk:
    clock = ManualClock()
    desk = ServiceDesk(clock, MemoryStorage(clock))
    Table.create(desk.storage, TableConfig("t", ("id",), ("part",)))
    create_partition_metadata(desk.storage, "p", instant="0")
    return desk


def files(desk: ServiceDesk) -> dict[str, bytes | None]:
    """All that is there, but for what tells where the claim log ends and how clocks go."""
    found = {path: desk.storage.read(path) for path, _ in desk.storage.walk("")}
    return {path: data for path, data in found.items() if not path.endswith("/head")}


def lose(desk: ServiceDesk, requested: str, *, states: slice = slice(2, 3)) -> str:
    """Take away files of an instant: the completed one, or all."""
    paths = index_files(desk.storage, LAYOUT_2)[(requested, "commit")]
    for path in paths[states]:
        assert desk.storage.delete(path)
    return paths[-1]


def test_a_lost_commit_is_not_a_dead_writer(desk: ServiceDesk) -> None:
    lost = desk.put("p/g-0")
    desk.put("p/h-0")
    path = lose(desk, lost)
    before = files(desk)
    for act in (
        lambda: latest_base_files(desk.storage, desk.timeline()),
        lambda: desk.open().begin("commit", "UPSERT"),
        lambda: desk.open().roll_back_failed(),
        lambda: desk.open_single().begin("commit", "UPSERT"),
    ):
        desk.clock.advance(7200)
        with pytest.raises(DamagedTable, match="hudi-locks verify") as caught:
            act()
        assert (caught.value.path, caught.value.instant) == (path, lost)
        assert files(desk) == before
    content = desk.claims()[0].content
    assert content is not None
    desk.storage.replace(path, content.data or b"")
    assert [file.file_id for file in latest_base_files(desk.storage, desk.timeline())] == ["g-0", "h-0"]


def test_the_last_commit_is_made_again_from_its_claim_or_refused_and_never_rolled_back(desk: ServiceDesk) -> None:
    transactions = desk.open()
    tx = transactions.begin("commit", "UPSERT")
    assert tx.publish(desk.rewrite(tx, "p/g-0")).is_committed
    path = lose(desk, tx.instant)
    transactions.begin("commit", "UPSERT").abort("it is not needed")
    assert desk.storage.exists(path)
    lost = lose(desk, desk.put("p/h-0"))
    desk.open().begin("commit", "UPSERT").abort("it is not needed")
    assert desk.storage.exists(lost)


def test_the_files_of_a_lost_commit_are_not_swept(desk: ServiceDesk) -> None:
    desk.put("p/g-0")
    lost = desk.put("p/h-0")
    desk.put("p/i-0")
    lose(desk, lost, states=slice(0, 3))
    desk.clock.advance(7200)
    before = desk.files()
    with pytest.raises(DamagedTable, match="published the write"):
        TableServices(desk.open(), {}).sweep()
    assert desk.files() == before


def test_an_emptied_timeline_is_not_an_empty_table(desk: ServiceDesk) -> None:
    table = Table.load(desk.storage)
    assert table.timeline().instants == ()
    first, last = desk.put("p/g-0"), desk.put("p/h-0")
    for requested in (first, last):
        lose(desk, requested, states=slice(0, 3))
    before = files(desk)
    for act in (table.timeline, lambda: desk.open().begin("commit", "UPSERT")):
        with pytest.raises(DamagedTable, match="no instant at all is there"):
            act()
    assert files(desk) == before


def test_a_first_write_that_others_rolled_back_is_voided_where_their_own_are_archived(
    desk: ServiceDesk, at: Any
) -> None:
    """A writer that keeps no claims took the first claim's write for dead, and all that it wrote itself is archived."""
    dying = desk.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    made = desk.rewrite(dying, "p/g-0")
    with pytest.raises(Killed):
        dying.publish(made)
    lose(desk, dying.instant, states=slice(0, 2))
    desk.clock.advance(1)
    theirs = format_time(desk.clock.wall_ms())
    desk.foreign_commit(theirs, theirs, "h-0")
    desk.archive(theirs)
    desk.clock.advance(7200)
    desk.open().roll_back_failed()
    assert [claim.kind for claim in desk.claims()] == [ClaimKind.PUBLISH, ClaimKind.VOID]


def test_nothing_is_voided_where_the_commit_before_is_lost_too(desk: ServiceDesk) -> None:
    desk.put("p/f-0")
    lost = [desk.put("p/g-0"), desk.put("p/h-0")]
    for requested in lost:
        lose(desk, requested, states=slice(0, 3))
    with pytest.raises(DamagedTable, match="the timeline does not know it") as caught:
        desk.open().begin("commit", "UPSERT")
    assert caught.value.instant == lost[0]
    assert len(desk.claims()) == 3


def test_pending_writes_archived_ones_and_claims_that_are_unfinished_are_no_damage(desk: ServiceDesk, at: Any) -> None:
    archived = desk.put("p/g-0")
    desk.put("p/h-0")
    desk.archive(archived)
    living = desk.open().begin("commit", "UPSERT")
    desk.rewrite(living, "p/i-0")
    dying = desk.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    made = desk.rewrite(dying, "p/j-0")
    with pytest.raises(Killed):
        dying.publish(made)
    assert [file.file_id for file in latest_base_files(desk.storage, desk.timeline())] == ["g-0", "h-0"]
    desk.put("p/k-0")
    assert [file.file_id for file in latest_base_files(desk.storage, desk.timeline())] == ["g-0", "h-0", "j-0", "k-0"]


def kill() -> None:
    raise Killed


def test_what_a_restore_of_the_jvm_undoes_is_no_damage(desk: ServiceDesk) -> None:
    desk.put("p/g-0")
    undone = desk.put("p/h-0")
    desk.put("p/i-0")
    lose(desk, undone)
    desk.storage.replace(LAYOUT_2.path(Instant("20231114230000000", "restore", State.INFLIGHT)), b"")
    assert [file.file_id for file in latest_base_files(desk.storage, desk.timeline())] == ["g-0", "i-0"]


def test_a_table_that_lost_its_only_commit_and_all_that_told_of_it_is_not_taken_for_empty(desk: ServiceDesk) -> None:
    lost = desk.put("p/g-0")
    lose(desk, lost, states=slice(0, 3))
    before = files(desk)
    for act in (
        lambda: desk.open().begin("commit", "UPSERT"),
        lambda: desk.open().roll_back_failed(),
        lambda: desk.open_single().begin("commit", "UPSERT"),
    ):
        with pytest.raises(DamagedTable, match="hudi-locks verify") as caught:
            act()
        assert caught.value.instant == lost
        assert files(desk) == before
