"""The judgement of a soak finds what was broken on purpose: it needs the pipeline, and no Spark session."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from soak.deeds import Deed, Kind, Row, draw_deed, replay
from soak.judgement import Readers, age_leftovers, judge, read_ours
from soak.plan import OPTIONS
from soak.running import Told
from soak.stores import on_disk
from soak.writing import DeedWriter, describe_table

from hudi_locks import LockManager, SystemClock
from hudi_locks.storage import LocalStorage
from hudi_locks.table import Table
from hudi_locks.transaction import SimpleConcurrentFileWrites

pytestmark = pytest.mark.spark

READERS: Readers = {"this package": read_ours}


def deeds_of(kind: Kind) -> Iterator[Deed]:
    return (deed for number in range(1000) if (deed := draw_deed(f"1:1:{number}")).kind is kind)


@pytest.fixture
def open_writer(tmp_path: Path) -> Iterator[Callable[[], DeedWriter]]:
    """Writers of one table that has its first rows."""
    options = {**OPTIONS, "hoodie.write.lock.provider": "filesystem", "hoodie.base.path": str(tmp_path)}
    Table.create(LocalStorage(str(tmp_path)), describe_table(9, beside_jvm=False))
    table = Table.load(LocalStorage(str(tmp_path)))
    with LockManager.from_options(options) as locks:

        def make() -> DeedWriter:
            return DeedWriter(table, locks, options=options, clock=SystemClock())

        assert make().write(draw_deed("1:0:load")).is_committed
        yield make


def find(tmp_path: Path, told: Told | None = None, readers: Readers = READERS) -> str:
    return "\n".join(judge(on_disk(str(tmp_path)), told or Told(), readers).differences)


def test_a_table_as_it_should_be_is_equal(tmp_path: Path, open_writer: Callable[[], DeedWriter]) -> None:
    writer, told = open_writer(), Told()
    for number in range(20):
        deed = draw_deed(f"1:1:{number}")
        result = writer.write(deed)
        told.take({"event": "committed", "deed": deed.name, "instant": result.instant})
    verdict = judge(on_disk(str(tmp_path)), told, READERS)
    assert (verdict.differences, verdict.commits) == ((), 21)
    assert sorted(read_ours(str(tmp_path)), key=repr) == list(verdict.rows)


def test_an_update_that_was_lost_is_found(
    tmp_path: Path, open_writer: Callable[[], DeedWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two writers change rows of one file group from one snapshot, and nobody looks for conflicts."""
    one = next(deeds_of(Kind.RAISE))
    other = next(deed for deed in deeds_of(Kind.RAISE) if deed != one and deed.regions == one.regions)
    monkeypatch.setattr(SimpleConcurrentFileWrites, "is_conflict", lambda *_: False)
    first, second = open_writer(), open_writer()
    run = second._run

    def run_late(*args: object) -> object:
        assert first.write(one).is_committed
        return run(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(second, "_run", run_late)
    assert second.write(other).is_committed
    assert "this package: missing" in find(tmp_path)


def test_a_reader_that_differs_is_named(tmp_path: Path, open_writer: Callable[[], DeedWriter]) -> None:
    found = find(tmp_path, readers={"other": lambda path: [*read_ours(path)[1:], ("x", "r0", 1, 0.0, "x")]})
    assert "other: 1 rows of the replay are missing, 1 are too much" in found


def test_what_writers_were_told_wrongly_is_found(tmp_path: Path, open_writer: Callable[[], DeedWriter]) -> None:
    done = open_writer().write(draw_deed("1:1:0"))
    told = Told({"20200101000000000": None, done.instant: "20200101000000001"}, {done.instant}, {"1:9:9"})
    found = find(tmp_path, told)
    assert "20200101000000000 was called committed, and the timeline lacks it" in found
    assert f"{done.instant} was said to complete at 20200101000000001" in found
    assert f"{done.instant} was called aborted, and is completed" in found
    assert "1:9:9 was called committed, and no commit names it" in found


def test_a_deed_that_was_done_twice_is_found(tmp_path: Path, open_writer: Callable[[], DeedWriter]) -> None:
    for _ in range(2):
        assert open_writer().write(draw_deed("1:1:0")).is_committed
    assert "1:1:0 was committed 2 times" in find(tmp_path)


def test_strays_are_found(tmp_path: Path, open_writer: Callable[[], DeedWriter]) -> None:
    writer = open_writer()
    transaction = writer.transactions.begin("commit", "UPSERT")
    file = next(tmp_path.rglob("*.parquet"))
    shutil.copy(file, file.with_name(file.name.replace("_0-0-0_", "_1-0-0_")))
    (tmp_path / ".hoodie/.temp/20200101000000000").mkdir(parents=True)
    found = find(tmp_path)
    assert f"{transaction.instant}" in found
    assert "is still pending" in found
    assert f".hoodie/.heartbeat/{transaction.instant} is left over" in found
    assert ".hoodie/.temp/20200101000000000 is left over" in found
    assert "belongs to no commit" in found
    transaction.abort("the end of the test")


def test_what_is_staged_and_what_a_store_still_uploads_is_found(
    tmp_path: Path, open_writer: Callable[[], DeedWriter]
) -> None:
    open_writer()
    (tmp_path / ".hoodie/.hudi_locks/staging/20200101000000000").mkdir(parents=True)
    store = replace(on_disk(str(tmp_path)), list_uploads=lambda: ["upload 1 of r0/f"])
    found = judge(store, Told(), READERS).differences
    assert "what 20200101000000000 staged is left over" in found
    assert "upload 1 of r0/f is left over" in found


def test_what_a_verification_finds_is_told(tmp_path: Path, open_writer: Callable[[], DeedWriter]) -> None:
    open_writer()
    commit = next(tmp_path.glob(".hoodie/timeline/*.commit.requested"))
    commit.unlink()
    assert "requested" in find(tmp_path)


def test_leftovers_of_the_dead_can_be_made_old(tmp_path: Path, open_writer: Callable[[], DeedWriter]) -> None:
    beat = tmp_path / ".hoodie/.heartbeat/20200101000000000"
    beat.touch()
    age_leftovers(on_disk(str(tmp_path)))
    assert "is left over" in find(tmp_path)
    open_writer().services.sweep()
    assert not beat.exists()


def test_a_replay_follows_the_order_that_it_is_given() -> None:
    def upsert(ts: int, value: float) -> Deed:
        return Deed("1:1:0", Kind.UPSERT, (("k", "r0", ts, value, "x"),))

    def rows(*deeds: Deed) -> list[Row]:
        return replay(deeds)

    delete, raised = Deed("1:1:1", Kind.DELETE, upsert(1, 0.0).rows), Deed("1:1:2", Kind.RAISE, upsert(1, 5.0).rows)
    assert rows(upsert(2, 1.0), upsert(1, 2.0)) == [("k", "r0", 2, 1.0, "x")]
    assert rows(upsert(2, 1.0), delete, upsert(1, 2.0)) == [("k", "r0", 1, 2.0, "x")]
    assert rows(upsert(2, 1.0), raised) == [("k", "r0", 2, 36.0, "x")]
    assert rows(upsert(2, 1.0), Deed("1:1:3", Kind.OVERWRITE, (("j", "r0", 1, 0.0, "x"),))) == [
        ("j", "r0", 1, 0.0, "x")
    ]
