"""What a newcomer gets wrong is said in one sentence, and what he may expect to work works."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.errors import BadInput, DamagedTable, HudiLocksError, NotATable, WriteError
from hudi_locks.spark import HoodieTable, write

pytestmark = pytest.mark.spark

Create = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]
FIRST, SECOND = [("a", "1", 1, 1.0)], [("b", "2", 1, 2.0)]


def test_the_lock_is_keyed_by_the_tables_own_name(create: Create, load: Callable[..., HoodieTable]) -> None:
    create(name="trips")
    assert load().options["hoodie.table.name"] == "trips"
    assert load({"hoodie.table.name": "other"}).options["hoodie.table.name"] == "other"


def test_a_path_may_be_a_path(spark: Any, frame: Any, tmp_path: Path, rows_of: RowsOf) -> None:
    where = tmp_path / "table"
    table = HoodieTable.create(spark, where, name="t", record_key="id", partition_by="month")
    table.upsert(frame(FIRST))
    assert rows_of(HoodieTable.load(spark, where)) == FIRST
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    write(frame(FIRST), tmp_path / "other", options)
    assert rows_of(HoodieTable.load(spark, tmp_path / "other")) == FIRST


def test_times_may_be_datetimes_and_numbers(create: Create, frame: Any, rows_of: RowsOf) -> None:
    table = create()
    time = table.upsert(frame(FIRST)).completion_time
    moment = datetime.strptime(time, "%Y%m%d%H%M%S%f").replace(tzinfo=timezone.utc)
    elsewhere = moment.astimezone(timezone(timedelta(hours=5)))
    for now in (moment, elsewhere, moment.replace(tzinfo=None)):
        assert rows_of(table.as_of(now)) == FIRST
        assert rows_of(table.as_of(now - timedelta(milliseconds=1))) == []
        assert rows_of(table.incremental(now)) == []
        assert rows_of(table.incremental(now - timedelta(days=1), now)) == FIRST
    assert rows_of(table.incremental(0)) == FIRST
    assert table.change_data(0, moment).count() == 1
    for wrong in (1.5, None, True):
        with pytest.raises(BadInput, match="is no time of this table"):
            table.incremental(wrong)  # type: ignore[arg-type]  # what a newcomer may write


def test_one_partition_may_be_a_text(create: Create, frame: Any, rows_of: RowsOf) -> None:
    table = create()
    table.upsert(frame(FIRST + SECOND))
    assert rows_of(table.read(partitions="1", columns="value"), "value") == [(1.0,)]
    table.delete_partitions("1")
    assert rows_of(table) == SECOND


def test_a_column_of_an_unsupported_type_is_named(create: Create, spark: Any, files_of: Any) -> None:
    table = create()
    before = files_of()
    for kind in ("interval '1' month", "interval '1' day", "make_interval(1, 2)", "struct(interval '1' month as x)"):
        rows = spark.sql(f"select 'a' as id, '1' as month, 1L as ts, {kind} as odd")
        with pytest.raises(BadInput, match="odd"):
            table.upsert(rows)
    assert files_of() == before


@pytest.mark.parametrize("lacking", ["recordkey.field", "partitionpath.field", "precombine.field"])
def test_a_column_that_is_not_in_the_rows_is_said_before_a_table_is_made(
    frame: Any, tmp_path: Path, lacking: str
) -> None:
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "month",
        "hoodie.datasource.write.precombine.field": "ts",
        f"hoodie.datasource.write.{lacking}": "nope",
    }
    with pytest.raises(BadInput, match="'nope'"):
        write(frame(FIRST), str(tmp_path / "table"), options)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_deleted_under_a_loaded_table_is_said_to_be_gone(create: Create, frame: Any) -> None:
    table = create()
    table.upsert(frame(FIRST))
    shutil.rmtree(table.path)
    uses: list[Callable[[], Any]] = [
        table.read,
        lambda: table.as_of("0"),
        lambda: table.incremental("0"),
        lambda: table.upsert(frame(FIRST)),
        lambda: table.delete_partitions(["1"]),
        lambda: table.clustering.run(),
    ]
    for use in uses:
        with pytest.raises(NotATable, match="is gone"):
            use()
    assert not Path(table.path).exists()


def test_a_closed_table_reads_and_does_not_write(create: Create, frame: Any, rows_of: RowsOf) -> None:
    table = create()
    table.upsert(frame(FIRST))
    table.close()
    table.close()
    assert rows_of(table) == FIRST
    uses: list[Callable[[], Any]] = [
        lambda: table.upsert(frame(FIRST)),
        lambda: table.delete_partitions(["1"]),
        lambda: table.resolve("1"),
        lambda: table.clustering.run(),
        lambda: table.compaction.run(),
    ]
    for use in uses:
        with pytest.raises(WriteError, match="was closed; load"):
            use()


@pytest.mark.parametrize("ends", [b"xxxx", b"PAR1"], ids=["no file", "no footer"])
def test_a_damaged_base_file_is_said_in_one_sentence(create: Create, frame: Any, ends: bytes) -> None:
    table = create()
    table.upsert(frame(FIRST))
    [file] = Path(table.path).rglob("*.parquet")
    size = file.stat().st_size
    file.write_bytes(ends + b"x" * (size - 8) + ends)
    with pytest.raises(DamagedTable, match=rf"{file.name}.*bring it back from a copy, or restore the table") as caught:
        table.upsert(frame(FIRST))
    assert "\n" not in str(caught.value)
    file.write_bytes(ends)
    with pytest.raises(DamagedTable, match=f"{file.name} has 4 bytes"):
        table.upsert(frame(FIRST))


@pytest.mark.parametrize("ends", [b"xxxx", b"PAR1"], ids=["no file", "no footer"])
@pytest.mark.parametrize("options", [{}, {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}])
def test_a_damaged_file_of_the_input_is_not_called_damage_of_the_table(
    spark: Any, create: Create, frame: Any, rows_of: RowsOf, tmp_path: Path, options: dict[str, str], ends: bytes
) -> None:
    """Of a wrong footer Spark's reader names no file."""
    table = create(options=options)
    table.upsert(frame(FIRST))
    source = tmp_path / "the input"
    frame(FIRST).write.parquet(str(source))
    rows = spark.read.parquet(str(source))
    [file] = source.glob("*.parquet")
    file.write_bytes(ends + b"x" * (file.stat().st_size - 8) + ends)
    (source / f".{file.name}.crc").unlink(missing_ok=True)
    shown = "one of its files, which Spark does not name," if ends == b"PAR1" else file.name
    with pytest.raises(BadInput, match=f"the input cannot be read: .*{shown} is no whole Parquet file") as caught:
        table.upsert(rows)
    assert "restore the table" not in str(caught.value)
    assert caught.value.path is None or file.name in caught.value.path
    assert rows_of(table) == FIRST


def test_options_of_writers_refuse_no_reader(create: Create, load: Any, frame: Any, rows_of: RowsOf) -> None:
    create().upsert(frame(FIRST))
    for option in (
        {"hoodie.index.type": "INMEMORY"},
        {"hoodie.index.type": "BUCKET"},
        {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"},
        {"hoodie.write.lock.provider": "noop", "hoodie.write.concurrency.mode": "optimistic_concurrency_control"},
    ):
        table = load(option)
        assert rows_of(table) == FIRST
        with pytest.raises(HudiLocksError):
            table.upsert(frame(FIRST))
