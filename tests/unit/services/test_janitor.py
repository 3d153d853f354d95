"""What nobody will finish goes; what somebody may be at stays."""

from __future__ import annotations

from typing import Any

import pytest
from service_harness import ServiceHarness
from transaction_harness import Killed, kill

from hudi_locks.format import CommitMetadata, Instant, IOType, State, WriteStat, add_ms
from hudi_locks.format.claim import PRIVATE_FOLDER
from hudi_locks.markers import DirectMarkers, staging_folder
from hudi_locks.services import Janitor
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.timeline.claims import STAGED_FOLDER
from hudi_locks.timeline.heartbeat import heartbeat_path
from hudi_locks.transaction import StopPoint

HALF_WRITTEN = f"{PRIVATE_FOLDER}/tmp"


def janitor(harness: ServiceHarness) -> Janitor:
    return Janitor(harness.open().coordinator)


def stray(harness: ServiceHarness, instant: str, *, marked: bool) -> str:
    """A data file of a task that died between its two looks."""
    name = f"s-0_0-0-0_{instant}.parquet"
    if marked:
        DirectMarkers(harness.storage, instant).create("p", name, io_type=IOType.CREATE)
    harness.storage.replace(f"p/{name}", b"rows")
    return f"p/{name}"


@pytest.fixture
def undone(harness: ServiceHarness) -> str:
    """A rolled back write between two commits."""
    harness.put("p/g-0")
    tx = harness.open().begin("commit", "UPSERT")
    tx.abort("enough")
    harness.clock.advance(1)
    harness.put("p/g-0")
    return tx.instant


def test_a_stray_that_a_marker_tells_of_goes_at_the_cost_of_a_few_listings(
    harness: ServiceHarness, undone: str, monkeypatch: Any
) -> None:
    path = stray(harness, undone, marked=True)
    asked: list[str] = []
    listing = harness.storage.list

    def listen(folder: str) -> Any:
        asked.append(folder)
        return listing(folder)

    monkeypatch.setattr(harness.storage, "list", listen)
    result = janitor(harness).sweep()
    assert (result.data_files, result.leftovers) == ((path,), 1)
    assert not {"", "p"} & set(asked)
    assert harness.names(".hoodie/.temp") == []


def test_a_stray_without_marker_is_found_by_looking_everywhere(harness: ServiceHarness, undone: str) -> None:
    path = stray(harness, undone, marked=False)
    assert janitor(harness).sweep().data_files == ()
    assert janitor(harness).sweep(everywhere=True).data_files == (path,)
    assert janitor(harness).sweep(everywhere=True).data_files == ()


def test_files_of_commits_stay_and_their_markers_go(harness: ServiceHarness) -> None:
    done = harness.put("p/g-0")
    DirectMarkers(harness.storage, done).create("p", f"g-0_0-0-0_{done}.parquet", io_type=IOType.CREATE)
    harness.storage.replace(f"{staging_folder(done)}/x", b"half a file")
    result = janitor(harness).sweep(everywhere=True)
    assert (result.data_files, result.leftovers) == ((), 2)
    assert harness.files() == [f"p/g-0@{done}"]
    assert harness.names(".hoodie/.temp") == harness.names(f"{PRIVATE_FOLDER}/staging") == []


def test_nothing_of_a_pending_write_goes_however_dead_it_looks(harness: ServiceHarness) -> None:
    harness.put("p/g-0")
    tx = harness.open().begin("commit", "UPSERT")
    [stat] = harness.rewrite(tx, "p/h-0").stats
    tx.markers.create("p", str(stat.path).removeprefix("p/"), io_type=IOType.CREATE)
    tx._state.heartbeat.pause()
    harness.clock.advance(7200)
    assert janitor(harness).sweep(everywhere=True).data_files == ()
    assert harness.storage.exists(heartbeat_path(tx.instant))
    assert len(tx.markers.names()) == 1
    assert harness.storage.redeem(str(stat.ticket), str(stat.path))


def test_what_an_instant_that_is_done_has_staged_is_cancelled(harness: ServiceHarness) -> None:
    """Also what a task staged that outlived the rollback."""
    harness.put("p/g-0")
    tx = harness.open().begin("commit", "UPSERT")
    tx.abort("enough")
    [stat] = harness.rewrite(tx, "p/h-0").stats
    harness.clock.advance(7200)
    assert harness.storage.list_staged() == {tx.instant}
    assert janitor(harness).sweep().leftovers == 1
    assert harness.storage.list_staged() == set()
    assert not harness.storage.redeem(str(stat.ticket), str(stat.path))


def test_tickets_of_the_last_claim_are_kept_though_they_are_older_than_it(
    harness: ServiceHarness, at: Any, monkeypatch: Any
) -> None:
    """Tickets that are too long for a claim wait beside it, as a large completed file does."""
    monkeypatch.setattr("hudi_locks.format.claim.INLINE_LIMIT", 10)
    tx = harness.open(trace=at(StopPoint.PUBLISH_CLAIMED, kill)).begin("commit", "UPSERT")
    metadata = harness.rewrite(tx, "p/g-0")
    with pytest.raises(Killed):
        tx.publish(metadata)
    tx._state.heartbeat.pause()
    harness.clock.advance(7200)
    before = harness.names(STAGED_FOLDER)
    janitor(harness).sweep()
    assert harness.names(STAGED_FOLDER) == before
    assert len(before) == 2
    harness.put("p/h-0")
    assert f"p/g-0@{tx.instant}" in harness.files()


def test_nothing_of_a_foreign_writer_that_is_pending_goes(harness: ServiceHarness, undone: str) -> None:
    theirs = add_ms(undone, 300)
    for action in ("commit", "compaction", "clustering"):
        time = add_ms(theirs, len(action))
        harness.storage.replace(LAYOUT_2.path(Instant(time, action, State.REQUESTED)), b"")
        stray(harness, time, marked=True)
    result = janitor(harness).sweep(everywhere=True)
    assert (result.data_files, result.leftovers) == ((), 0)


def test_nothing_goes_while_a_heartbeat_is_fresh(harness: ServiceHarness, undone: str) -> None:
    path = stray(harness, add_ms(undone, 7), marked=True)
    harness.storage.replace(heartbeat_path(add_ms(undone, 7)), b"")
    assert janitor(harness).sweep(everywhere=True).data_files == ()
    harness.clock.advance(121)
    assert janitor(harness).sweep(everywhere=True).data_files == (path,)


def test_a_write_that_begins_while_folders_are_listed_keeps_its_files(
    harness: ServiceHarness, undone: str, monkeypatch: Any
) -> None:
    begun: list[str] = []
    listing = harness.storage.list

    def begin_first(folder: str) -> Any:
        if folder == ".hoodie/.temp" and not begun:
            tx = harness.open().begin("commit", "UPSERT")
            begun.append(tx.instant)
            harness.storage.replace(f"p/h-0_0-0-0_{tx.instant}.parquet", b"rows")
            tx.markers.create("p", f"h-0_0-0-0_{tx.instant}.parquet", io_type=IOType.CREATE)
            tx._state.heartbeat.pause()
            harness.clock.advance(200)
        return listing(folder)

    monkeypatch.setattr(harness.storage, "list", begin_first)
    assert janitor(harness).sweep(everywhere=True).data_files == ()
    assert f"p/h-0@{begun[0]}" in harness.files()


def test_files_that_readers_take_for_archived_commits_stay(harness: ServiceHarness) -> None:
    first = harness.put("p/g-0")
    harness.put("p/g-0")
    harness.archive(first)
    assert janitor(harness).sweep(everywhere=True).data_files == ()
    assert f"p/g-0@{first}" in harness.files()


def test_heartbeats_of_nobody_go_after_an_hour(harness: ServiceHarness, undone: str) -> None:
    harness.storage.replace(heartbeat_path(undone), b"")
    harness.clock.advance(3000)
    assert janitor(harness).sweep().leftovers == 0
    harness.clock.advance(700)
    assert janitor(harness).sweep().leftovers == 1
    assert not harness.storage.exists(heartbeat_path(undone))


def test_a_young_heartbeat_of_nobody_costs_no_look_at_the_claims_since(
    harness: ServiceHarness, undone: str, monkeypatch: Any
) -> None:
    harness.storage.replace(heartbeat_path(undone), b"")
    harness.clock.advance(200)
    for _ in range(5):
        harness.put("p/g-0")
    swept, asked, read = janitor(harness), list[str](), harness.storage.read

    def listen(path: str) -> Any:
        asked.append(path)
        return read(path)

    swept.sweep()
    monkeypatch.setattr(harness.storage, "read", listen)
    swept.sweep()
    assert len({path for path in asked if path.startswith(f"{PRIVATE_FOLDER}/claims/")}) <= 1


def test_a_checksum_of_a_heartbeat_that_is_gone_goes_too(harness: ServiceHarness, undone: str) -> None:
    """A JVM writer that ends while it beats may leave one."""
    left = f".hoodie/.heartbeat/.{undone}.crc"
    harness.storage.replace(left, b"crc")
    assert janitor(harness).sweep().leftovers == 0
    harness.clock.advance(3700)
    assert janitor(harness).sweep().leftovers == 1
    assert not harness.storage.exists(left)


def test_half_written_files_go_after_an_hour(harness: ServiceHarness) -> None:
    harness.storage.replace(f"{HALF_WRITTEN}/x", b"half a file")
    assert janitor(harness).sweep().leftovers == 0
    harness.clock.advance(3700)
    assert janitor(harness).sweep().leftovers == 1


def large(tx: Any) -> CommitMetadata:
    stats = [WriteStat("p", f"g-{n}", f"p/g-{n}_0-0-0_{tx.instant}.parquet" + "x" * 500) for n in range(2500)]
    return CommitMetadata.of(stats, "UPSERT", schema="{}")


def test_contents_of_claims_that_are_decided_go_and_that_of_the_last_stays(harness: ServiceHarness) -> None:
    harness.put("p/g-0")
    harness.storage.replace(f"{STAGED_FOLDER}/{'0' * 64}", b"of a claim that somebody else made")
    harness.clock.advance(1)
    tx = harness.open().begin("commit", "UPSERT")
    assert tx.publish(large(tx)).is_committed
    last = harness.claims()[-1].content
    assert last is not None
    assert harness.names(STAGED_FOLDER) == ["0" * 64, last.sha256]
    assert janitor(harness).sweep().leftovers == 1
    assert harness.names(STAGED_FOLDER) == [last.sha256]


def test_the_content_of_a_claim_to_come_stays_also_when_its_bytes_were_staged_before(harness: ServiceHarness) -> None:
    tx = harness.open().begin("commit", "UPSERT")
    metadata = large(tx)
    log = tx._table.log
    claim = harness.put  # a commit of somebody else takes the number
    from hudi_locks.format.claim import Claim, ClaimKind, Content

    content = Content.of("x", metadata.encode("commit", layout_version=2))
    wanted = Claim(ClaimKind.PUBLISH, tx.instant, "commit", tx.instant, content=content)
    log.draft(log.read_head(), wanted)
    harness.clock.advance(1)
    claim("q/h-0")
    log.draft(log.read_head(), wanted)
    janitor(harness).sweep()
    assert harness.names(STAGED_FOLDER) == [content.sha256]


def test_a_savepoint_whose_maker_died_goes_after_an_hour(harness: ServiceHarness) -> None:
    done = harness.put("p/g-0")
    begun = LAYOUT_2.path(Instant(done, "savepoint", State.INFLIGHT))
    harness.storage.replace(begun, b"")
    assert janitor(harness).sweep().leftovers == 0
    harness.clock.advance(3700)
    assert janitor(harness).sweep().leftovers == 1
    assert not harness.storage.exists(begun)
    assert harness.timeline().is_completed(done)
