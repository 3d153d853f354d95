"""A session that is told to pass over damaged and missing files: a Hudi table shows each of its rows, or fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

import hudi_locks.spark
from hudi_locks.errors import ConfigError, DamagedTable, HudiLocksError
from hudi_locks.spark import HoodieTable
from hudi_locks.spark._compat import SWITCHES, FileIndexes
from hudi_locks.spark.index import simple_index

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
LENIENT = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
FAILURES = (HudiLocksError, PySparkException, Py4JError)


@pytest.fixture(params=["told", "listed"], autouse=True)
def session(spark: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Spark is told the files of a table, or looks for them."""
    settings = {**dict.fromkeys(LENIENT, "true"), SWITCHES["files"]: str(request.param == "told").lower()}
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield spark
    for key in settings:
        spark.conf.unset(key)


@pytest.fixture
def table(create: Create, frame: Frame) -> HoodieTable:
    made = create(options={"hoodie.parquet.small.file.limit": "0"})
    made.upsert(frame([("a", "1", 1, 1.0)]))
    made.upsert(frame([("b", "1", 1, 1.0), ("c", "2", 1, 1.0)]))
    return made


@pytest.fixture
def first(table: HoodieTable) -> Path:
    """The file with the row `a`."""
    [file] = Path(table.path, "1").glob(f"*_{table.table.timeline().completed()[0].requested}.parquet")
    return file


def spoil(file: Path) -> None:
    """As many bytes as before."""
    file.write_bytes(b"x" * file.stat().st_size)


@pytest.fixture(params=["corrupt", "missing"])
def harm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Spoils a file; or removes it as soon as Spark was made to read it, since who lists it misses it."""
    if request.param == "corrupt":
        return spoil
    reads = [(FileIndexes, "read_parquet"), (simple_index, "search_files")]

    def arm(file: Path) -> None:
        def remove_after(read: Callable[..., Any]) -> Callable[..., Any]:
            def read_and_remove(*given: Any, **named: Any) -> Any:
                found = read(*given, **named)
                file.unlink(missing_ok=True)
                return found

            return read_and_remove

        for where, name in reads:
            monkeypatch.setattr(where, name, remove_after(getattr(where, name)))

    return arm


def test_no_read_shows_less(table: HoodieTable, first: Path, harm: Callable[[Path], None], rows_of: RowsOf) -> None:
    begin = table.table.timeline().completed()[0].completion or ""
    sound = first.read_bytes()
    reads: dict[str, Callable[[], Any]] = {
        "read": table.read,
        "as_of": lambda: table.as_of(begin),
        "incremental": lambda: table.incremental("0"),
        "change_data": lambda: table.change_data("0"),
        "where": lambda: table.read(where="month = '1'"),
        "options": lambda: hudi_locks.spark.read(table.spark, table.path),
    }
    harm(first)
    for name, read in reads.items():
        with pytest.raises(FAILURES, match=first.name):
            pytest.fail(f"{name} shows {read().collect()}")
        if not first.exists():
            first.write_bytes(sound)
    assert rows_of(table.read(where="month = '2'"), "id") == [("c",)]


@pytest.mark.parametrize(
    "write",
    [
        lambda table, frame: table.upsert(frame([("a", "1", 2, 2.0)])),
        lambda table, frame: table.delete(frame([("a", "1")], "id string, month string")),
        lambda table, frame: table.clustering.run(sort_by=["ts"]),
    ],
    ids=["upsert", "delete", "clustering"],
)
def test_no_write_rests_on_what_was_passed_over(
    table: HoodieTable,
    first: Path,
    harm: Callable[[Path], None],
    frame: Frame,
    rows_of: RowsOf,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[HoodieTable, Frame], Any],
) -> None:
    sound, before = first.read_bytes(), rows_of(table)
    harm(first)
    with pytest.raises(FAILURES, match=first.name):
        write(table, frame)
    monkeypatch.undo()
    first.write_bytes(sound)
    assert rows_of(table) == before
    assert not [i for i in table.table.timeline().completed() if i.action not in ("commit", "rollback")]


def test_an_upsert_names_a_damaged_file(table: HoodieTable, first: Path, frame: Frame) -> None:
    spoil(first)
    with pytest.raises(DamagedTable, match=first.name):
        table.upsert(frame([("a", "1", 2, 2.0)]))


def test_a_merge_on_read_table_shows_no_less_with_logs_and_without(
    create: Create, frame: Frame, harm: Callable[[Path], None], rows_of: RowsOf
) -> None:
    table = create(table_type="MERGE_ON_READ", options=BUCKETS)
    table.upsert(frame([("a", "1", 1, 1.0), ("b", "2", 1, 1.0)]))
    assert table.compaction.run() is not None
    table.upsert(frame([("b", "2", 2, 2.0)]))
    [plain], [below] = (list(Path(table.path, month).glob("*.parquet")) for month in "12")
    sound = plain.read_bytes()
    harm(plain)
    reads: list[Callable[[], Any]] = [
        table.read,
        lambda: table.read(read_optimized=True),
        lambda: table.change_data("0"),
    ]
    for read in reads:
        with pytest.raises(FAILURES, match=plain.name):
            pytest.fail(f"shown: {read().collect()}")
        plain.write_bytes(sound if not plain.exists() else plain.read_bytes())
    plain.write_bytes(sound)
    spoil(below)
    acts: list[Callable[[], Any]] = [lambda: table.read(partitions="2").collect(), table.compaction.run]
    for act in acts:
        with pytest.raises(FAILURES, match=below.name):
            pytest.fail(f"done: {act()}")


@pytest.mark.parametrize("name", ["ignoreCorruptFiles", "ignoremissingfiles"])
def test_the_option_of_a_read_is_refused_with_the_way_out(table: HoodieTable, name: str) -> None:
    for value in (True, "TRUE"):
        with pytest.raises(ConfigError, match=rf"{name}=\w+ is not offered.*hudi-locks verify") as caught:
            hudi_locks.spark.read(table.spark, table.path, {name: value})
        assert caught.value.key == name
    assert hudi_locks.spark.read(table.spark, table.path, {name: "false"}).count() == 3
