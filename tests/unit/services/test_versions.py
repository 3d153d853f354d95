"""Upgrade and downgrade: what becomes of the timeline, who may go on, and what a death on the way leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from transaction_harness import Killed, stop_at, write_file
from version_harness import SCHEMA, Evolving

from hudi_locks.config import Options
from hudi_locks.errors import DamagedTable, TableError, UnsupportedTable
from hudi_locks.format import (
    ArchiveRow,
    BaseFileName,
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    CommitMetadata,
    Instant,
    IOType,
    LogFileName,
    State,
    WriteStat,
    add_ms,
)
from hudi_locks.format.consistent_hashing import HashRing
from hudi_locks.services.versions import VersionChange, VersionChanger
from hudi_locks.storage import MemoryStorage
from hudi_locks.table import PROPERTIES_PATH, Table, describe_properties
from hudi_locks.table.hash_rings import find_hash_ring
from hudi_locks.timeline import LAYOUT_1, LAYOUT_2, create_instant
from hudi_locks.timeline.archive import is_archived
from hudi_locks.timeline.old_archive import encode_old_archive
from hudi_locks.transaction import Outcome, StopPoint, Transactions
from hudi_locks.verification import verify_table

STEPS = (StopPoint.VERSION_CLAIMED, StopPoint.VERSION_CONVERTED, StopPoint.VERSION_SAID)
Act = Callable[[Transactions], object]


@pytest.fixture
def old(harness: Any) -> Evolving:
    return Evolving.create(harness, 6)


def test_a_table_of_version_6_becomes_one_of_version_9(old: Evolving) -> None:
    written = [old.write() for _ in range(3)]
    before = old.timeline().completed()
    done = old.change(9)
    assert done == VersionChange(6, 9, instants=3, archived=0, merge_mode="COMMIT_TIME_ORDERING")
    assert old.committed() == written
    now = old.timeline()
    assert now.completed() == before, "completed at the same times"
    assert now.layout == Table.load(old.storage).layout
    assert now.layout.folder == LAYOUT_2.folder
    data = old.storage.read(now.paths[now.completed()[-1]]) or b""
    assert data.startswith(b"Obj"), "Hudi 1.x reads Avro"
    commit = CommitMetadata.decode(data, "it")
    assert [(stat.file_id, stat.num_writes, stat.file_size_bytes) for stat in commit.stats] == [("g-0", 3, 4)]
    assert not old.files(LAYOUT_1.folder), "nothing is left of the timeline before"
    assert old.properties["hoodie.table.initial.version"] == "6"
    old.write()
    assert len(old.committed()) == 4
    old.check()


def test_a_file_that_was_written_when_the_write_began_is_completed_after_that(old: Evolving) -> None:
    old.takes_s = 0
    requested = old.write()
    assert old.timeline().completed()[0].completion == requested, "in version 6 a store may keep whole seconds"
    old.change(8)
    assert old.timeline().completed()[0].completion == add_ms(requested, 1)
    old.check()


def test_a_table_of_version_9_becomes_one_of_version_6_in_the_same_order(harness: Any) -> None:
    new = Evolving.create(harness, 9)
    written = [new.write() for _ in range(3)]
    before = new.timeline().completed()
    assert new.change(6).instants == 3
    assert new.timeline().completed() == before, "completed at the same times"
    assert new.committed() == written
    assert [instant.requested for instant in new.timeline().completed_between("")] == written
    data = new.storage.read(new.timeline().paths[new.timeline().completed()[0]]) or b""
    assert json.loads(data)["operationType"] == "UPSERT", "Hudi 0.15 reads JSON"
    assert new.storage.stat(LAYOUT_2.folder) is None
    assert "hoodie.record.merge.mode" not in new.properties
    assert new.properties["hoodie.compaction.payload.class"].endswith(".OverwriteWithLatestAvroPayload")
    new.write()
    new.check()


@pytest.mark.parametrize("steps", [(8, 9, 8, 6), (9, 6, 9)])
def test_it_may_go_back_and_forth(old: Evolving, steps: tuple[int, ...]) -> None:
    written = [old.write(None, f"g-{number}") for number in range(2)]
    for to in steps:
        assert old.change(to).after == to == old.version
        written.append(old.write(None, f"g-{len(written)}"))
        assert old.committed() == written
        old.check()


def test_a_table_that_is_of_the_version_already_stays_as_it_is(old: Evolving) -> None:
    old.write()
    before = old.storage.read(PROPERTIES_PATH)
    assert old.change(6) == VersionChange(6, 6, merge_mode="COMMIT_TIME_ORDERING")
    assert old.storage.read(PROPERTIES_PATH) == before


@pytest.mark.parametrize("to", [6, 8])
@pytest.mark.parametrize("point", STEPS)
def test_wherever_it_dies_the_next_writer_or_the_same_call_goes_on(harness: Any, point: StopPoint, to: int) -> None:
    table = Evolving.create(harness, 8 if to == 6 else 6)
    written = [table.write(), table.write()]
    with pytest.raises(Killed):
        table.change(to, trace=stop_at(point))
    said = point is StopPoint.VERSION_SAID
    assert table.version == (to if said else {6: 8, 8: 6}[to])
    assert table.committed() == written, "readers see all rows at every moment"
    writer = table.open()
    if said:
        table.write(writer)
    else:
        with pytest.raises(TableError, match=r"was of version \d when it was opened, and is of version"):
            writer.begin("commit", "UPSERT")
        assert table.change(to).before == to, "the writer has gone on"
        table.write()
    assert table.version == to
    assert len(table.committed()) == 3
    assert not table.files(LAYOUT_1.folder if to == 8 else LAYOUT_2.folder)
    table.check()


@pytest.mark.parametrize("foreign", [False, True])
def test_a_writer_that_opened_the_table_before_begins_nothing(harness: Any, foreign: bool) -> None:
    table = Evolving.create(harness, 6, foreign=foreign)
    early, begun = table.open(), table.open()
    table.write(begun)
    table.change(9)
    for writer in (early, begun):
        with pytest.raises(TableError, match=r"of version 6 when it was opened, and is of version 9 now: open it anew"):
            writer.begin("commit", "UPSERT")
    assert not table.files(LAYOUT_1.folder)


def test_a_writer_that_slept_from_before_the_upgrade_publishes_nothing(old: Evolving) -> None:
    old.write()
    tx = old.open().begin("commit", "UPSERT")
    name = str(BaseFileName("late-0", tx.instant))
    ticket = write_file(tx.files, "", name, b"rows", io_type=IOType.CREATE)
    tx._state.heartbeat.pause()
    old.clock.advance(10_000)  # it counts as dead, and is rolled back
    old.change(9, hoodie__clean__failed__writes__policy="LAZY")
    with pytest.raises(TableError, match="is of version 9 now"):
        tx.publish(CommitMetadata.of([WriteStat("", "late-0", name, ticket=ticket)], "UPSERT", schema=SCHEMA))
    assert len(old.committed()) == 1
    assert old.storage.stat(name) is None
    old.check()


def test_a_reader_that_opened_the_table_before_is_told_instead_of_seeing_nothing(old: Evolving) -> None:
    reader = Table.load(old.storage)
    old.write()
    assert reader.timeline().completed()
    old.change(9)
    with pytest.raises(TableError, match="open it anew"):
        reader.timeline()


def test_nothing_is_done_while_a_write_is_under_way(old: Evolving) -> None:
    old.write()
    tx = old.open().begin("commit", "UPSERT")
    with pytest.raises(TableError, match=f"commit {tx.instant} is under way") as caught:
        old.change(9)
    assert caught.value.facts["instant"] == tx.instant
    assert old.version == 6
    tx.abort("enough")
    assert old.change(9).after == 9


def test_a_plan_that_waits_is_to_be_run_or_taken_back_first(harness: Any) -> None:
    table = Evolving.create(harness, 6, table_type="MERGE_ON_READ")
    table.write()
    plan = Instant("20231114221330000", "compaction", State.REQUESTED)
    create_instant(table.storage, LAYOUT_1, instant=plan, data=b"plan")
    with pytest.raises(TableError, match="compaction 20231114221330000 is under way"):
        table.change(9)
    assert table.version == 6


def test_a_write_that_is_claimed_meanwhile_is_brought_over_too(old: Evolving) -> None:
    old.write()
    late: list[str] = []
    changer = VersionChanger(old.open(), Options({}))
    real = changer._table.log.append

    def append(draft: Any) -> Any:
        if not late:
            late.append(old.write(None, "h-0"))  # the lock is lost, and another holds it
        return real(draft)

    changer._table.log.append = append  # type: ignore[method-assign]
    assert changer.run(9).instants == 2
    assert old.committed()[-1] == late[0]
    old.check()


def test_a_file_that_cannot_be_read_is_told_while_nothing_has_changed(old: Evolving) -> None:
    requested = old.write()
    path = old.timeline().paths[old.timeline().completed()[0]]
    old.storage.replace(path, b"{ half")
    claims = old.storage.list_names(".hoodie/.hudi_locks/claims")
    with pytest.raises(DamagedTable, match=requested):
        old.change(9)
    assert old.version == 6
    assert old.storage.list_names(".hoodie/.hudi_locks/claims") == claims
    assert old.storage.stat(LAYOUT_2.folder) is None


def test_archived_instants_are_brought_over_in_both_directions(old: Evolving) -> None:
    old.write()
    archived = ("20220101000000000", "20220102000000000")
    told = CommitMetadata.of([], "UPSERT", schema=SCHEMA).encode("commit", layout_version=2)
    rows = [ArchiveRow(time, f"{time[:-1]}9", "commit", told) for time in archived]
    old.storage.replace(f"{LAYOUT_1.archive}/.commits_.archive.1_1-0-1", encode_old_archive(rows))
    assert old.change(9).archived == 2
    layout = Table.load(old.storage).layout
    assert all(is_archived(old.storage, layout, requested=time) for time in archived)
    assert old.storage.stat(LAYOUT_1.archive) is None
    assert old.change(6).archived == 2
    assert all(is_archived(old.storage, Table.load(old.storage).layout, requested=time) for time in archived)
    assert old.change(8).archived == 2


def test_a_clustering_that_is_done_keeps_its_plan_under_the_name_of_the_version(harness: Any) -> None:
    table = Evolving.create(harness, 6, foreign=True)
    table.write()
    time = "20231114221325000"
    plan = ClusteringPlan((ClusteringGroup((ClusteringSlice("", "g-0", "g"),)),)).encode()
    done = CommitMetadata.of([], "CLUSTER", schema=SCHEMA, replaced_file_ids={"": ("g-0",)})
    requested = Instant(time, "replacecommit", State.REQUESTED)
    create_instant(table.storage, LAYOUT_1, instant=requested, data=plan)
    create_instant(table.storage, LAYOUT_1, instant=requested.as_inflight())
    completed = requested.as_completed(time)
    create_instant(table.storage, LAYOUT_1, instant=completed, data=done.encode("replacecommit", layout_version=1))
    table.change(8)
    names = [name for name in table.files(LAYOUT_2.folder) if name.startswith(time)]
    assert [name.partition(".")[2] for name in names] == [
        "clustering.inflight",
        "clustering.requested",
        "replacecommit",
    ]
    table.change(6)
    names = [name for name in table.files(LAYOUT_1.folder) if name.startswith(time)]
    assert names == [f"{time}.replacecommit{state}" for state in ("", ".inflight", ".requested")]
    assert table.storage.read(f"{LAYOUT_1.folder}/{names[2]}") == plan


@pytest.mark.parametrize("point", [None, *STEPS])
def test_rings_of_consistent_hashing_are_not_marked_in_version_6(harness: Any, point: StopPoint | None) -> None:
    """Release 0.15.0, which has its marks elsewhere, finds no ring beside one."""
    table = Evolving.create(harness, 8, foreign=True)
    table.write()
    time, folder = "20231114221325000", ".hoodie/.bucket_index/consistent_hashing_metadata"
    requested = Instant(time, "clustering", State.REQUESTED)
    done = CommitMetadata.of([], "CLUSTER", schema=SCHEMA).encode("replacecommit", layout_version=2)
    for instant, data in ((requested, b""), (requested.as_inflight(), b""), (requested.as_completed(time), done)):
        create_instant(table.storage, LAYOUT_2, instant=instant, data=data)
    table.storage.create_if_absent(f"{folder}/{time}.hashing_meta", HashRing.create("", 2).encode(""))
    table.storage.create_if_absent(f"{folder}/{time}.commit", b"")
    table.change(9)
    assert table.files(folder) == [f"{time}.commit", f"{time}.hashing_meta"]
    if point is not None:
        with pytest.raises(Killed):
            table.change(6, trace=stop_at(point))
    writer = table.open()
    with suppress(TableError):  # who goes on opens it anew
        table.write(writer)
    table.change(6)
    assert table.files(folder) == [f"{time}.hashing_meta"]
    assert find_hash_ring(table.storage, table.timeline(), "") == HashRing.create("", 2)


def test_logs_are_to_be_compacted_before_a_downgrade_to_version_6(harness: Any) -> None:
    table = Evolving.create(harness, 8, table_type="MERGE_ON_READ")
    tx = table.open().begin("deltacommit", "UPSERT")
    name = str(LogFileName("g-0", tx.instant))
    ticket = write_file(tx.files, "", name, b"rows")
    stat = WriteStat("", "g-0", name, log_version=1, log_offset=0, ticket=ticket)
    assert tx.publish(CommitMetadata.of([stat], "UPSERT", schema=SCHEMA)).outcome is Outcome.COMMITTED
    with pytest.raises(UnsupportedTable, match=r"1 file groups have logs, .*compact them first"):
        table.change(6)
    assert table.change(9).after == 9, "version 9 names them in the same way"


def test_what_a_jvm_makes_of_the_table_afterwards_stands(old: Evolving) -> None:
    old.write()
    properties = old.storage.read(PROPERTIES_PATH) or b""
    old.change(8)
    name = old.timeline().completed()[0]
    data = CommitMetadata.decode(old.storage.read(old.timeline().paths[name]) or b"", "it")
    create_instant(old.storage, LAYOUT_1, instant=name, data=data.encode("commit", layout_version=1))
    old.storage.replace(PROPERTIES_PATH, b"#downgraded by a JVM\n" + properties)
    old.storage.delete_folder(LAYOUT_2.folder)
    old.open().roll_back_failed()
    assert old.version == 6, "the last claim, which was carried out, is not carried out once more"
    old.write()
    assert len(old.committed()) == 2


def test_properties_that_somebody_wrote_at_the_same_moment_are_not_undone(old: Evolving) -> None:
    old.write()

    def interfere() -> None:
        known = dict(old.properties)
        old.storage.replace(PROPERTIES_PATH, describe_properties({**known, "hoodie.database.name": ""}))

    with pytest.raises(TableError, match="is of version 6 still"):
        old.change(9, trace=stop_at(StopPoint.VERSION_CLAIMED, interfere))
    assert old.committed()
    assert old.change(9).after == 9


def test_a_metadata_table_that_is_made_after_it_is_left_alone(harness: Any) -> None:
    table = Evolving.create(harness, 6, extra={"hoodie.table.metadata.partitions": "files"})
    table.storage.create_if_absent(".hoodie/metadata/files/old", b"old")
    table.storage.create_if_absent(".hoodie/metadata/.hoodie/hoodie.properties", b"hoodie.table.version=6\n")
    assert table.change(9).dropped == ("files",)
    assert table.storage.stat(".hoodie/metadata") is None
    assert "hoodie.table.metadata.partitions" not in table.properties
    table.storage.create_if_absent(".hoodie/metadata/files/new", b"of a JVM that has not named it yet")
    table.open().roll_back_failed()
    assert table.storage.exists(".hoodie/metadata/files/new")


def test_verify_names_what_a_jvm_writer_that_went_on_wrote_for_nobody(old: Evolving) -> None:
    old.write()
    old.change(9)
    done = CommitMetadata.of([], "UPSERT", schema=SCHEMA).encode("commit", layout_version=1)
    lost = Instant("20231114221330000", "commit", State.COMPLETED)
    create_instant(old.storage, LAYOUT_1, instant=lost, data=done)
    [found] = [one for one in verify_table(old.storage).damages if one.kind == "timeline"]
    assert found.path == ".hoodie/20231114221330000.commit"
    assert "its writer had opened the table before the upgrade" in found.found
    known = old.timeline().completed()[0]
    create_instant(old.storage, LAYOUT_1, instant=known, data=done)
    assert len([one for one in verify_table(old.storage).damages if one.kind == "timeline"]) == 1, "what is left over"


def test_properties_that_are_being_written_as_it_reads_them_are_promised_to_nobody(
    old: Evolving, monkeypatch: pytest.MonkeyPatch
) -> None:
    old.write()
    tx, read, numbers = old.open(), MemoryStorage.read, iter(range(1_000))
    claims = old.storage.list_names(".hoodie/.hudi_locks/claims")

    def read_meanwhile(storage: MemoryStorage, path: str) -> bytes | None:
        is_written = path == PROPERTIES_PATH and next(numbers) == 1  # after the look at whether the version changed
        return b"" if is_written else read(storage, path)

    monkeypatch.setattr(MemoryStorage, "read", read_meanwhile)
    with pytest.raises(TableError, match="is being written anew by somebody: try again"):
        VersionChanger(tx, Options({})).run(9)
    assert list(old.storage.list_names(".hoodie/.hudi_locks/claims")) == list(claims)
    assert old.change(9).after == 9
    old.check()
