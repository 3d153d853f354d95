"""A table whose rows have no meta columns, as JVM Hudi makes it with `hoodie.populate.meta.fields=false`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import META_COLUMNS, CommitMetadata, decode_properties, encode_properties
from hudi_locks.spark import HoodieTable
from hudi_locks.table import PROPERTIES_PATH, read_commit
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.spark

KEY = "hoodie.populate.meta.fields"
ROWS = [("a", "eu", 1, 1.0), ("b", "eu", 1, 2.0), ("c", "us", 1, 3.0)]


@pytest.fixture
def table(create: Callable[..., HoodieTable], frame: Callable[..., Any]) -> HoodieTable:
    """Ours, made over as the JVM writes it: files have these columns, and nulls in them."""
    made = create()
    made.upsert(frame(ROWS))
    path = Path(shutil.copytree(made.path, f"{made.path}-theirs"))  # nobody remembers what its files were before
    for file in path.rglob("*.parquet"):
        rows = pq.read_table(file)
        for name in META_COLUMNS:
            rows = rows.set_column(rows.schema.get_field_index(name), name, pa.nulls(rows.num_rows, pa.string()))
        pq.write_table(rows, file)
    timeline = made.table.timeline()
    [instant] = timeline.instants
    commit = read_commit(made.table.storage, timeline, requested=instant.requested)
    sized = [replace(stat, file_size_bytes=(path / str(stat.path)).stat().st_size) for stat in commit.stats]
    said_now = CommitMetadata.of(sized, "UPSERT", schema=commit.schema)
    (path / timeline.paths[instant]).write_bytes(said_now.encode("commit", layout_version=2))
    said = decode_properties((path / PROPERTIES_PATH).read_bytes(), PROPERTIES_PATH)
    (path / PROPERTIES_PATH).write_bytes(encode_properties({**said, KEY: "false"}))
    return HoodieTable.load(made.spark, str(path), options=made.options)


def test_it_is_read(table: HoodieTable) -> None:
    shown = [tuple(row) for row in table.read().collect()]
    assert sorted(row[5:] for row in shown) == ROWS
    assert {row[:5] for row in shown} == {(None,) * 5}
    assert [tuple(row) for row in table.read(meta_columns=False, where="value > 2").collect()] == ROWS[2:]
    [instant] = table.table.timeline().instants
    assert table.as_of(instant.completion, columns="id").count() == 3
    damages = verify_table(table.table.storage).damages
    assert {one.kind for one in damages} == {"timeline"}  # the claim log knows the commit as it was


def test_what_needs_to_know_who_wrote_a_row_is_refused(table: HoodieTable) -> None:
    for read in (table.incremental, table.change_data):
        with pytest.raises(UnsupportedTable, match=rf"{KEY}=false: no row of the table tells.*as_of") as caught:
            read("0")
        assert caught.value.key == KEY


def test_it_is_not_written(table: HoodieTable, frame: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedTable, match=rf"{KEY}=false: rows without meta columns tell no key.*JVM Hudi"):
        table.upsert(frame(ROWS))
    assert len(table.table.timeline().instants) == 1
