"""What is known of file slices, and what of it is believed."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from golden_metadata import BUNDLES, read_golden

from hudi_locks.clock import ManualClock
from hudi_locks.format import METADATA_FOLDER, MetadataPartition
from hudi_locks.format.column_range import DOUBLE, INT, LONG, STRING, ColumnRange, ValueKind
from hudi_locks.metadata_table import MetadataTable, MetadataView, find_slice_ranges
from hudi_locks.storage import MemoryStorage
from hudi_locks.table import FileSlice, slice_file_groups
from hudi_locks.timeline import LAYOUT_2, Timeline

KINDS = {"ts": LONG, "qty": INT, "price": DOUBLE, "name": STRING}


@pytest.fixture(params=itertools.product(BUNDLES, ("cow", "mor")), ids="-".join)
def view(request: pytest.FixtureRequest) -> MetadataView:
    """Of a table of the JVM, with three partitions."""
    bundle, kind = request.param
    storage = MemoryStorage(ManualClock())
    for path, data in read_golden(bundle).items():
        if path.startswith(f"{kind}/"):
            storage.replace(f"{METADATA_FOLDER}/{path.removeprefix(f'{kind}/')}", data)
    names = frozenset({"files", "column_stats", "partition_stats"})
    return MetadataTable(storage, names, BUNDLES[bundle], BUNDLES[bundle]).view(Timeline(LAYOUT_2, ()))


@pytest.fixture
def slices(view: MetadataView) -> list[FileSlice]:
    files = view.data_files()
    return [found[0] for found in slice_file_groups(files.bases, files.logs, lambda time: time).values()]


def ask(view: MetadataView, piece: FileSlice, **kinds: ValueKind) -> dict[str, ColumnRange]:
    [found] = find_slice_ranges(view, [piece], kinds or KINDS)
    return found


def test_every_slice_has_a_range_of_each_column_that_is_believed(view: MetadataView, slices: list[FileSlice]) -> None:
    assert len(slices) == 3
    for piece, found in zip(slices, find_slice_ranges(view, slices, KINDS), strict=True):
        known = view.read(MetadataPartition.COLUMN_STATS).values()
        names = {path.rpartition("/")[2] for path in piece.paths}
        told = [one.statistics for one in known if one.statistics is not None and one.statistics.name in names]
        bounds = [bound.value for one in told if one.column == "ts" for bound in (one.low, one.high) if bound]
        if any(one.values == 0 for one in told if one.column == "ts"):  # a log of deletes alone
            assert found == {}
            continue
        assert found.keys() == {"ts", "qty"}
        assert (found["ts"].low, found["ts"].high) == (min(bounds), max(bounds))


def test_of_a_slice_with_a_file_of_which_nothing_is_told_nothing_is_known(
    view: MetadataView, slices: list[FileSlice]
) -> None:
    [piece, *_] = [one for one in slices if one.base is not None]
    assert piece.base is not None
    other = replace(piece.base, path=piece.base.path.replace("_", "_9", 1))
    assert ask(view, replace(piece, base=other)) == {}
    assert ask(view, replace(piece, partition="nowhere")) == {}


def test_statistics_of_another_type_are_not_believed(view: MetadataView, slices: list[FileSlice]) -> None:
    assert ask(view, slices[1], ts=INT) == {}
    assert ask(view, slices[1], qty=LONG) == {}
    assert ask(view, slices[1], ts=LONG).keys() == {"ts"}


def test_a_metadata_table_without_statistics_tells_nothing(view: MetadataView, slices: list[FileSlice]) -> None:
    bare = replace(view, table=replace(view.table, names=frozenset({"files"})))
    assert find_slice_ranges(bare, slices, KINDS) == [{} for _ in slices]
    assert find_slice_ranges(view, [], KINDS) == []
