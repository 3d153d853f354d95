"""How long it takes to learn the files of a table on a store 20 ms away: by its metadata table, and by its folders."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.commits_side import Place, prepare
from benchmarks.contention import distant_s3
from benchmarks.figures import Figure, measure_together
from hudi_locks.format import BaseFileName, CommitMetadata, Instant, State, WriteStat
from hudi_locks.metadata_table import MetadataTable, make_metadata_table
from hudi_locks.storage import map_in_threads, open_storage
from hudi_locks.table import Table, create_partition_metadata, list_data_files
from hudi_locks.timeline import create_instant

__all__ = ["run"]

_TIME = "20260101000000000"
_THREADS = 64
_SHAPES = ((100, 100), (2_000, 5))
"""Partitions, and files in each."""


def run(*, quick: bool) -> list[Figure]:
    """On versitygw, an S3 service of this machine."""
    figures = []
    with tempfile.TemporaryDirectory() as made, distant_s3() as (near, far):
        for partitions, files in ((10, 10),) if quick else _SHAPES:
            folder = Path(made, f"t-{partitions}")
            prepare("ours", Place(folder, near))
            _fill(_open(Place(folder, near)), partitions, files)
            figures.append(_compare(_open(Place(folder, far)), partitions * files, partitions))
    return figures


def _open(place: Place) -> Table:
    return Table.load(open_storage(place.base, options={"hoodie.base.path": place.base, **place.service}))


def _fill(table: Table, partitions: int, files: int) -> None:
    """Empty files, whose names and metadata table are those of a table with rows."""
    storage = table.storage
    named = [f"region=r{number}" for number in range(partitions)]
    map_in_threads(lambda one: create_partition_metadata(storage, one, instant=_TIME), named, threads=_THREADS)
    stats = [_describe(one, f"{one}-{number}-0") for one in named for number in range(files)]
    map_in_threads(lambda stat: storage.replace(str(stat.path), b""), stats, threads=_THREADS)
    written = CommitMetadata.of(stats, "INSERT", schema=None)
    begun = Instant(_TIME, "commit", State.REQUESTED)
    for state in (begun, begun.as_inflight(), begun.as_inflight().as_completed(_TIME)):
        content = written.encode("commit", layout_version=table.layout.version) if state.is_completed else b""
        create_instant(storage, table.layout, instant=state, data=content)
    make_metadata_table(storage, table.config, written, columns=(), completed=_TIME)


def _describe(partition: str, group: str) -> WriteStat:
    group = group.replace("=", "-")
    return WriteStat(partition, group, f"{partition}/{BaseFileName(group, _TIME)}", file_size_bytes=1)


def _compare(table: Table, files: int, partitions: int) -> Figure:
    storage, timeline = table.storage, table.timeline()
    known = MetadataTable(storage, frozenset({"files"}), table.config.version, table.config.version)

    def by_metadata() -> None:
        assert len(known.view(timeline).data_files().bases) == files

    def by_folders() -> None:
        assert len(list_data_files(storage).bases) == files

    found = measure_together({"metadata": by_metadata, "folders": by_folders}, rounds=5, repeats=1)
    title = f"names of {files:,} files in {partitions:,} partitions, by the metadata table"
    ours, theirs = (round(found[name] / 1000, 1) for name in ("metadata", "folders"))
    return Figure(title, ours, "by the folders", theirs, "ms", "lower")
