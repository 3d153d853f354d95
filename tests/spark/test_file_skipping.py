"""Where a metadata table keeps statistics, a read opens only files in which its condition may hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_metadata import read_golden

from hudi_locks.format import METADATA_FOLDER
from hudi_locks.spark import HoodieTable
from hudi_locks.spark.reading.reader import Reader
from hudi_locks.table import PROPERTIES_PATH

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
ROWS = [("k1", "a", 1, 1.0), ("k2", "b", 20, 2.0), ("k3", "c", None, 3.0)]


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request: pytest.FixtureRequest, create: Create, load: Create, frame: Frame) -> HoodieTable:
    """One with the metadata table of another, which a JVM made; its own writes are added there, but for the first."""
    made = create(table_type=request.param, ordering="value", options=BUCKETS)
    made.upsert(frame([("k0", "z", 3, 0.5)]))
    storage, golden = made.table.storage, read_golden("1.0.2")
    for path, data in golden.items():
        if path.startswith("cow/"):
            target = Path(made.path, METADATA_FOLDER, path.removeprefix("cow/"))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    indexes = Path(made.path, ".hoodie", ".index_defs", "index.json")
    indexes.parent.mkdir()
    indexes.write_bytes(golden["cow.index_defs/index.json"])
    names = "files,column_stats,partition_stats"
    properties = storage.read(PROPERTIES_PATH) or b""
    storage.replace(PROPERTIES_PATH, properties + f"hoodie.table.metadata.partitions={names}\n".encode())
    opened = load(options=BUCKETS)
    opened.upsert(frame(ROWS))
    return opened


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Partitions of the slices that were read since."""
    found: list[str] = []
    merge = Reader._merge

    def spy(self: Reader, slices: Any, *given: Any, **more: Any) -> Any:
        found.extend(piece.partition for piece in slices)
        return merge(self, slices, *given, **more)

    monkeypatch.setattr(Reader, "_merge", spy)
    return found


@pytest.mark.parametrize(
    ("where", "keys", "files"),
    [
        ("ts > 5", ["k2"], "bz"),
        ("ts = 20 or ts < 0", ["k2"], "bz"),
        ("ts is null", ["k3"], "cz"),
        ("ts is not null", ["k0", "k1", "k2"], "abz"),
        ("month <> 'b' and ts < 100", ["k0", "k1"], "abz"),
        ("not (ts < 4)", ["k2"], "bz"),
        ("value > 1.5", ["k2", "k3"], "abcz"),
        ("abs(ts) > 5", ["k2"], "abz"),
    ],
)
def test_slices_without_room_for_a_row_are_not_read(
    table: HoodieTable, chosen: list[str], where: str, keys: list[str], files: str
) -> None:
    assert sorted(row.id for row in table.read(where=where).collect()) == keys
    assert "".join(sorted(chosen)) == files


@pytest.mark.parametrize("option", ["hoodie.enable.data.skipping", "hoodie.metadata.enable"])
def test_no_slice_is_passed_over_where_an_option_says_so(
    load: Create, table: HoodieTable, chosen: list[str], option: str
) -> None:
    found = load(options={**BUCKETS, option: "false"}).read(where="ts > 5")
    assert [row.id for row in found.collect()] == ["k2"]
    assert sorted(chosen) == ["a", "b", "c", "z"]


def test_the_option_gives_a_table_of_ours_one_that_its_writes_keep(
    create: Create, load: Create, frame: Frame, chosen: list[str]
) -> None:
    made = create(options={"hoodie.metadata.enable": "true"})
    made.insert(frame(ROWS))
    made.upsert(frame([("k4", "d", 30, 4.0)]))
    assert [row.id for row in load().read(where="ts > 25").collect()] == ["k4"]
    assert chosen == ["d"]
    assert made.services.make_metadata_table() is None, "there is one"
