"""Keys of few rows are searched for in each file, those of many are joined: both find the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hudi_locks.errors import DamagedTable
from hudi_locks.spark import HoodieTable
from hudi_locks.table import RECORD_KEY

pytestmark = pytest.mark.spark

Create = Callable[..., HoodieTable]
Frame = Callable[..., Any]
RowsOf = Callable[..., list[tuple[Any, ...]]]
APART = {"hoodie.parquet.small.file.limit": "0"}
"""Each write has file groups of its own."""
KEYS = ("a", "bc", "zürich", "東京", "\U0001f680", "k" * 40, "~")
INDEXES = ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM")


@pytest.fixture(params=["searched", "joined"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "joined":
        monkeypatch.setattr("hudi_locks.spark.index.simple_index.MOST_KEYS", -1)
    return str(request.param)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("index", INDEXES)
def test_both_ways_find_every_key_of_a_partition_or_of_the_table(
    create: Create, frame: Frame, rows_of: RowsOf, way: str, index: str, kind: str
) -> None:
    table = create(table_type=kind, options={**APART, "hoodie.index.type": index})
    regions = ("eu",) if index.startswith("GLOBAL") else ("eu", "us")
    expected: dict[tuple[str, str], tuple[Any, ...]] = {}
    for ts in (1, 2, 3):
        rows = [(key, region, ts, float(ts)) for key in KEYS[: 2 * ts + 1] for region in regions]
        expected |= {row[:2]: row for row in rows}
        table.upsert(frame(rows))
    table.delete(frame([("a", "eu", 4, 0.0), ("nobody", "eu", 4, 0.0)]))
    expected.pop(("a", "eu"))
    result = table.upsert(frame([("a", "eu", 5, 5.0), ("~", "eu", 5, 5.0), ("new", "asia", 5, 5.0)]))
    expected |= {("a", "eu"): ("a", "eu", 5, 5.0), ("~", "eu"): ("~", "eu", 5, 5.0)}
    expected[("new", "asia")] = ("new", "asia", 5, 5.0)
    assert rows_of(table) == sorted(expected.values())
    assert result.rows_updated >= 1
    assert result.rows_inserted == 2 if kind == "COPY_ON_WRITE" else result.rows_inserted >= 1


def break_keys(table: HoodieTable, key: str) -> None:
    """Overwrite the keys of the file that has this one."""
    for file in Path(table.path).rglob("*.parquet"):
        metadata = pq.read_metadata(file)
        if key in pq.read_table(file, columns=[RECORD_KEY]).column(0).to_pylist():
            column = metadata.row_group(0).column(metadata.schema.names.index(RECORD_KEY))
            data = bytearray(file.read_bytes())
            start = column.dictionary_page_offset or column.data_page_offset
            data[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
            file.write_bytes(data)


@pytest.mark.parametrize("index", INDEXES)
def test_a_file_that_cannot_have_them_is_not_read(create: Create, frame: Frame, index: str) -> None:
    """Out of range for all indexes; under a bloom index also what its filter rules out."""
    table = create(options={**APART, "hoodie.index.type": index})
    for rows in (("k10", "k30"), ("k05", "k20", "k40"), ("p1", "p9")):
        table.upsert(frame([(key, "eu", 1, 1.0) for key in rows]))
    break_keys(table, "k20")
    assert table.upsert(frame([("p1", "eu", 2, 2.0)])).rows_updated == 1
    within = frame([("k10", "eu", 2, 2.0)])
    if index.endswith("BLOOM"):
        assert table.upsert(within).rows_updated == 1
        return
    with pytest.raises(DamagedTable, match=r"^eu/.*\.parquet: a base file cannot be read as Parquet"):
        table.upsert(within)
    assert [instant.action for instant in table.table.timeline().completed()] == [*["commit"] * 4, "rollback"]
