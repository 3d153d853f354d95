"""What nobody will finish goes; what somebody may be at stays."""

from __future__ import annotations

from typing import Any

import pytest
from service_desk import ServiceDesk

from hudi_locks.format import CommitMetadata, Instant, IOType, State, WriteStat, add_ms
from hudi_locks.format.claim import PRIVATE_FOLDER
from hudi_locks.markers import DirectMarkers, staging_folder
from hudi_locks.services import Janitor
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.timeline.claims import STAGED_FOLDER
from hudi_locks.timeline.heartbeat import heartbeat_path

HALF_WRITTEN = f"{PRIVATE_FOLDER}/tmp"


def janitor(desk: ServiceDesk) -> Janitor:
    return Janitor(desk.open().coordinator)


def stray(desk: ServiceDesk, instant: str, *, marked: bool) -> str:
    """A data file of a task that died between its two looks."""
    name = f"s-0_0-0-0_{instant}.parquet"
    if marked:
        DirectMarkers(desk.storage, instant).create("p", name, io_type=IOType.CREATE)
    desk.storage.replace(f"p/{name}", b"rows")
    return f"p/{name}"


@pytest.fixture
def undone(desk: ServiceDesk) -> str:
    """A rolled back write between two commits."""
    desk.put("p/g-0")
    tx = desk.open().begin("commit", "UPSERT")
    tx.abort("enough")
    desk.clock.advance(1)
    desk.put("p/g-0")
    return tx.instant


def test_a_stray_that_a_marker_tells_of_goes_at_the_cost_of_a_few_listings(
    desk: ServiceDesk, undone: str, monkeypatch: Any
) -> None:
    path = stray(desk, undone, marked=True)
    asked: list[str] = []
    listing = desk.storage.list

    def listen(folder: str) -> Any:
        asked.append(folder)
        return listing(folder)

    monkeypatch.setattr(desk.storage, "list", listen)
    result = janitor(desk).sweep()
    assert (result.data_files, result.leftovers) == ((path,), 1)
    assert not {"", "p"} & set(asked)
    assert desk.names(".hoodie/.temp") == []


def test_a_stray_without_marker_is_found_by_looking_everywhere(desk: ServiceDesk, undone: str) -> None:
    path = stray(desk, undone, marked=False)
    assert janitor(desk).sweep().data_files == ()
    assert janitor(desk).sweep(everywhere=True).data_files == (path,)
    assert janitor(desk).sweep(everywhere=True).data_files == ()


def test_files_of_commits_stay_and_their_markers_go(desk: ServiceDesk) -> None:
    done = desk.put("p/g-0")
    DirectMarkers(desk.storage, done).create("p", f"g-0_0-0-0_{done}.parquet", io_type=IOType.CREATE)
    desk.storage.replace(f"{staging_folder(done)}/x", b"half a file")
    result = janitor(desk).sweep(everywhere=True)
    assert (result.data_files, result.leftovers) == ((), 2)
    assert desk.files() == [f"p/g-0@{done}"]
    assert desk.names(".hoodie/.temp") == desk.names(f"{PRIVATE_FOLDER}/staging") == []


def test_nothing_of_a_pending_write_goes_however_dead_it_looks(desk: ServiceDesk) -> None:
    desk.put("p/g-0")
    tx = desk.open().begin("commit", "UPSERT")
    metadata = desk.rewrite(tx, "p/h-0")
    staged = f"{staging_folder(tx.instant)}/x"
    desk.storage.replace(staged, b"half a file")
    tx._state.heartbeat.pause()
    desk.clock.advance(7200)
    assert janitor(desk).sweep(everywhere=True).data_files == ()
    assert desk.storage.exists(staged)
    assert desk.storage.exists(heartbeat_path(tx.instant))
    assert len(tx.markers.names()) == len(metadata.stats)


def test_nothing_of_a_foreign_writer_that_is_pending_goes(desk: ServiceDesk, undone: str) -> None:
    theirs = add_ms(undone, 300)
    for action in ("commit", "compaction", "clustering"):
        time = add_ms(theirs, len(action))
        desk.storage.replace(LAYOUT_2.path(Instant(time, action, State.REQUESTED)), b"")
        stray(desk, time, marked=True)
    result = janitor(desk).sweep(everywhere=True)
    assert (result.data_files, result.leftovers) == ((), 0)


def test_nothing_goes_while_a_heartbeat_is_fresh(desk: ServiceDesk, undone: str) -> None:
    path = stray(desk, add_ms(undone, 7), marked=True)
    desk.storage.replace(heartbeat_path(add_ms(undone, 7)), b"")
    assert janitor(desk).sweep(everywhere=True).data_files == ()
    desk.clock.advance(121)
    assert janitor(desk).sweep(everywhere=True).data_files == (path,)


def test_a_write_that_begins_while_folders_are_listed_keeps_its_files(
    desk: ServiceDesk, undone: str, monkeypatch: Any
) -> None:
    begun: list[str] = []
    listing = desk.storage.list

    def begin_first(folder: str) -> Any:
        if folder == ".hoodie/.temp" and not begun:
            tx = desk.open().begin("commit", "UPSERT")
            begun.append(tx.instant)
            desk.rewrite(tx, "p/h-0")
            tx._state.heartbeat.pause()
            desk.clock.advance(200)
        return listing(folder)

    monkeypatch.setattr(desk.storage, "list", begin_first)
    assert janitor(desk).sweep(everywhere=True).data_files == ()
    assert f"p/h-0@{begun[0]}" in desk.files()


def test_files_that_readers_take_for_archived_commits_stay(desk: ServiceDesk) -> None:
    first = desk.put("p/g-0")
    desk.put("p/g-0")
    desk.archive(first)
    assert janitor(desk).sweep(everywhere=True).data_files == ()
    assert f"p/g-0@{first}" in desk.files()


def test_heartbeats_of_nobody_go_after_an_hour(desk: ServiceDesk, undone: str) -> None:
    desk.storage.replace(heartbeat_path(undone), b"")
    desk.clock.advance(3000)
    assert janitor(desk).sweep().leftovers == 0
    desk.clock.advance(700)
    assert janitor(desk).sweep().leftovers == 1
    assert not desk.storage.exists(heartbeat_path(undone))


def test_a_checksum_of_a_heartbeat_that_is_gone_goes_too(desk: ServiceDesk, undone: str) -> None:
    """A JVM writer that ends while it beats may leave one."""
    left = f".hoodie/.heartbeat/.{undone}.crc"
    desk.storage.replace(left, b"crc")
    assert janitor(desk).sweep().leftovers == 0
    desk.clock.advance(3700)
    assert janitor(desk).sweep().leftovers == 1
    assert not desk.storage.exists(left)


def test_half_written_files_go_after_an_hour(desk: ServiceDesk) -> None:
    desk.storage.replace(f"{HALF_WRITTEN}/x", b"half a file")
    assert janitor(desk).sweep().leftovers == 0
    desk.clock.advance(3700)
    assert janitor(desk).sweep().leftovers == 1


def large(tx: Any) -> CommitMetadata:
    stats = [WriteStat("p", f"g-{n}", f"p/g-{n}_0-0-0_{tx.instant}.parquet" + "x" * 500) for n in range(2500)]
    return CommitMetadata.of(stats, "UPSERT", schema="{}")


def test_contents_of_claims_that_are_decided_go_and_that_of_the_last_stays(desk: ServiceDesk) -> None:
    desk.put("p/g-0")
    desk.storage.replace(f"{STAGED_FOLDER}/{'0' * 64}", b"of a claim that somebody else made")
    desk.clock.advance(1)
    tx = desk.open().begin("commit", "UPSERT")
    assert tx.publish(large(tx)).is_committed
    last = desk.claims()[-1].content
    assert last is not None
    assert desk.names(STAGED_FOLDER) == ["0" * 64, last.sha256]
    assert janitor(desk).sweep().leftovers == 1
    assert desk.names(STAGED_FOLDER) == [last.sha256]


def test_the_content_of_a_claim_to_come_stays_also_when_its_bytes_were_staged_before(desk: ServiceDesk) -> None:
    tx = desk.open().begin("commit", "UPSERT")
    metadata = large(tx)
    log = tx._table.log
    claim = desk.put  # a commit of somebody else takes the number
    from hudi_locks.format.claim import Claim, ClaimKind, Content

    content = Content.of("x", metadata.encode("commit", layout_version=2))
    wanted = Claim(ClaimKind.PUBLISH, tx.instant, "commit", tx.instant, content=content)
    log.draft(log.read_head(), wanted)
    desk.clock.advance(1)
    claim("q/h-0")
    log.draft(log.read_head(), wanted)
    janitor(desk).sweep()
    assert desk.names(STAGED_FOLDER) == [content.sha256]


def test_a_savepoint_whose_maker_died_goes_after_an_hour(desk: ServiceDesk) -> None:
    done = desk.put("p/g-0")
    begun = LAYOUT_2.path(Instant(done, "savepoint", State.INFLIGHT))
    desk.storage.replace(begun, b"")
    assert janitor(desk).sweep().leftovers == 0
    desk.clock.advance(3700)
    assert janitor(desk).sweep().leftovers == 1
    assert not desk.storage.exists(begun)
    assert desk.timeline().is_completed(done)
