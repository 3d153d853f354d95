"""Bad input gets a clear error, and the table stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.errors import (
    BadInput,
    DamagedTable,
    NotATable,
    OutcomeUnknown,
    StorageError,
    TableExists,
    UnsupportedTable,
    WriteAborted,
)
from hudi_locks.spark import HoodieTable
from hudi_locks.storage import LocalStorage
from hudi_locks.table import PROPERTIES_PATH
from hudi_locks.transaction import Outcome

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
FilesOf = Callable[[], dict[str, bytes]]
RowsOf = Callable[..., list[tuple[Any, ...]]]
FIRST = [("a", "1", 1, 1.0)]


def list_bad_rows(frame: Frame, spark: Any) -> list[tuple[Any, str]]:
    """Rows that a table refuses, and what its error says."""
    return [
        (frame([("1", 1, 1.0)], "month string, ts long, value double"), "'id'"),
        (frame([("a", 1, 1.0)], "id string, ts long, value double"), "'month'"),
        (frame([("a", "1", 1.0)], "id string, month string, value double"), "'ts'"),
        (frame([("a", "1", 1)], "id string, month string, ts long"), "value"),
        (frame([("a", "1", 1, "x")], "id string, month string, ts long, value string"), "value"),
        (frame([("a", "1", 1, 1)], "id string, month string, ts long, value long"), "value"),
        (frame([("a", "1", 1, 1.0), (None, "1", 1, 1.0), ("", "2", 1, 1.0)]), "2 rows have no record key"),
        (frame([("a", "..", 1, 1.0)]), "partition path"),
        (frame([("a", "../x", 1, 1.0)]), "partition path"),
        (frame([("a", ".hoodie", 1, 1.0)]), "partition path"),
        (frame([("a", "x" * 300, 1, 1.0)]), "300 bytes"),
        (spark.sql("select 'a' id, '1' month, 1L ts, 1.0d value, 2.0d value"), "occur twice"),
        (spark.sql("select 'a' id, '1' month, 1L ts, 1.0d value, interval 1 day i"), "i"),
        (spark.sql("select 'a' id, '1' month, 1L ts, 1.0d value, 1 `né e`"), "né e"),
        (frame([("a", "1", 1, 1.0, 2.0)], "id string, month string, ts long, value double, VALUE double"), "twice"),
        (
            frame(
                [("a", "1", 1, 1.0, "x")], "id string, month string, ts long, value double, _hudi_locks_group string"
            ),
            "names that are taken",
        ),
        (
            frame(
                [("a", "1", 1, 1.0, "x")], "id string, month string, ts long, value double, _HOODIE_RECORD_KEY string"
            ),
            "names that are taken",
        ),
        (frame([("a", "1", [1], 1.0)], "id string, month string, ts array<int>, value double"), "has no order"),
    ]


def test_rows_that_do_not_fit_are_refused_and_the_table_is_untouched(
    create: Create, frame: Frame, files_of: FilesOf, spark: Any
) -> None:
    table = create()
    table.upsert(frame(FIRST))
    before = files_of()
    for rows, match in list_bad_rows(frame, spark):
        with pytest.raises(BadInput, match=match):
            table.upsert(rows)
        assert files_of() == before, match
    with pytest.raises(BadInput, match="2 rows") as caught:
        table.delete(frame([(None, "1"), (None, "2"), ("a", "1")], "id string, month string"))
    assert (caught.value.count, caught.value.fields) == (2, ["id"])
    assert files_of() == before


def test_a_bulk_insert_into_buckets_refuses_bad_rows_before_it_writes(
    create: Create, frame: Frame, files_of: FilesOf
) -> None:
    table = create(options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"})
    table.bulk_insert(frame(FIRST))
    before = files_of()
    for rows in ([("b", "1", 1, 1.0), (None, "1", 1, 1.0)], [("b", "1", 1, 1.0), ("c", "../x", 1, 1.0)]):
        with pytest.raises(BadInput, match=r"record key|partition path"):
            table.bulk_insert(frame(rows))
        assert files_of() == before


def test_paths_that_hold_no_table_or_one_already(create: Create, spark: Any, path: str, tmp_path: Path) -> None:
    with pytest.raises(NotATable, match="create one or check the path"):
        HoodieTable.load(spark, path)
    (tmp_path / "file").write_text("no folder")
    with pytest.raises((NotATable, StorageError)):
        HoodieTable.load(spark, str(tmp_path / "file"))
    create()
    with pytest.raises(TableExists, match="load it"):
        create()


@pytest.mark.parametrize(
    ("old", "new", "error", "match"),
    [
        ("hoodie.table.version=8", "hoodie.table.version=7", DamagedTable, "layout.version=2 contradicts"),
        ("hoodie.table.version=8", "hoodie.table.version=99", UnsupportedTable, "hoodie.table.version=99"),
        ("hoodie.table.version=8", "hoodie.table.version=eight", DamagedTable, "hoodie.table.version"),
        ("hoodie.table.name=t\n", "", DamagedTable, "hoodie.table.name"),
        ("hoodie.table.name=t", "hoodie.table.name=\\\\u00zz", DamagedTable, "hoodie.properties"),
        ("COPY_ON_WRITE", "SIDEWAYS", DamagedTable, "hoodie.table.type=SIDEWAYS"),
        (
            "hoodie.metadata.enable=false",
            "hoodie.table.metadata.partitions=files,secondary_index_name",
            UnsupportedTable,
            r"hudi-locks metadata drop",
        ),
    ],
)
def test_tables_that_must_not_be_written_are_refused(
    create: Create,
    load: Load,
    frame: Frame,
    path: str,
    files_of: FilesOf,
    old: str,
    new: str,
    error: type[Exception],
    match: str,
) -> None:
    create()
    file = Path(path) / PROPERTIES_PATH
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    before = files_of()
    with pytest.raises(error, match=match):
        load().upsert(frame(FIRST))
    assert files_of() == before


def test_a_failing_disk_in_mid_write_aborts_and_the_next_write_recovers(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create()
    table.upsert(frame(FIRST))
    create_if_absent, failing = LocalStorage.create_if_absent, list[str]()

    def fail_from_the_first_claim_on(self: LocalStorage, name: str, data: bytes) -> bool:
        if failing or "claim" in name:
            failing.append(name)
            raise StorageError(f"{name}: No space left on device", path=name)
        return create_if_absent(self, name, data)

    monkeypatch.setattr(LocalStorage, "create_if_absent", fail_from_the_first_claim_on)
    with pytest.raises(OutcomeUnknown) as caught:
        table.upsert(frame([("b", "1", 1, 1.0)]))
    assert failing
    monkeypatch.undo()
    assert rows_of(load()) == FIRST
    assert load().resolve(caught.value.instant) is Outcome.ABORTED
    load().upsert(frame([("c", "1", 1, 1.0)]))
    assert rows_of(load()) == [*FIRST, ("c", "1", 1, 1.0)]


def test_a_task_that_cannot_write_aborts_the_write(create: Create, frame: Frame, rows_of: RowsOf, path: str) -> None:
    """The partition's name is taken by a file, so that no folder can be made there: tasks fail on every attempt."""
    table = create()
    table.upsert(frame(FIRST))
    (Path(path) / "2").write_text("in the way")
    with pytest.raises((StorageError, WriteAborted)) as caught:
        table.upsert(frame([("b", "2", 1, 1.0), ("a", "1", 5, 5.0)]))
    assert "2" in str(caught.value)
    assert rows_of(table) == FIRST
    assert len(list(Path(path).rglob("*.parquet"))) == 1
    (Path(path) / "2").unlink()
    table.upsert(frame([("b", "2", 1, 1.0)]))
    assert rows_of(table) == [*FIRST, ("b", "2", 1, 1.0)]
