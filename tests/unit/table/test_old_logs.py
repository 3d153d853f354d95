"""Logs of version 6: where the next one belongs, and what a rollback takes out of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_locks.clock import SystemClock
from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import LogFileName, LogPlace
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, encode_block
from hudi_locks.format.log_deletes import encode_deletes_again
from hudi_locks.storage import LocalStorage, MemoryStorage
from hudi_locks.table import Table, latest_file_slices
from hudi_locks.table.log_rows import encode_rollback, find_undone
from hudi_locks.table.old_logs import find_blocks, find_log_places, list_planned_barriers

B, T1, T2, T3 = "20261129120000000", "20261129120001000", "20261129120002000", "20261129120003000"


def block(requested: str) -> bytes:
    header = {BlockHeader.INSTANT_TIME: requested, BlockHeader.SCHEMA: "{}"}
    return encode_block(LogBlock(BlockType.DELETE, header, encode_deletes_again([], "p")))


def add(storage: MemoryStorage, version: int, *blocks: bytes, group: str = "g-0", folder: str = "p") -> str:
    path = f"{folder}/{LogFileName(group, B, version)}".lstrip("/")
    storage.replace(path, b"".join(blocks))
    return path


def test_the_next_log_comes_behind_those_above_the_same_base_file(golden: Callable[[str], LocalStorage]) -> None:
    storage = golden("v6_logs")
    table = Table.load(storage)
    timeline = table.timeline()
    slices = latest_file_slices(storage, timeline)
    planned = list_planned_barriers(storage, timeline)
    (compaction,) = timeline.pending(("compaction",))
    assert set(planned.values()) == {compaction.requested}
    for piece in slices:
        group = piece.partition, piece.file_id
        place = find_log_places(slices, planned)[group]
        assert place.barrier == planned.get(group, piece.barrier)
        same = [log.version for log in piece.logs if log.instant == place.barrier]
        assert place.version == max(same, default=0) + 1
    without = find_log_places(slices, {})
    assert {place.barrier for place in without.values()} == {piece.barrier for piece in slices}


def test_parts_of_a_log_follow_each_other() -> None:
    place = LogPlace(B, 3)
    names = [str(place.name("g-0", T1, part)) for part in (1, 2)]
    assert names == [f".g-0_{B}.log.3_20261129-120001000-6", f".g-0_{B}.log.4_20261129-120001000-6"]


@pytest.mark.parametrize("folder", ["p", ""])
def test_a_log_of_one_write_goes_as_a_whole_and_of_a_shared_one_the_blocks(folder: str) -> None:
    storage = MemoryStorage(SystemClock())
    kept = add(storage, 1, block(T1), folder=folder)
    alone = add(storage, 2, block(T2), folder=folder)
    shared = add(storage, 3, block(T1), block(T2), folder=folder)
    other = add(storage, 1, block(T2), group="h-0", folder=folder)
    found = find_blocks(storage, [folder], T2)
    assert found.alone == {alone, other}
    assert list(found.mixed) == [shared]
    with pytest.raises(UnsupportedTable, match=r"has blocks of the write .* and of others: let") as refused:
        found.refuse_mixed()
    assert refused.value.path == shared
    found.take_out(storage)
    (added,) = set(storage.list_names(folder)) - {path.rpartition("/")[2] for path in (kept, alone, shared, other)}
    assert LogFileName.parse(added) == LogFileName("g-0", B, 4, "20261129-120002000-6")
    data = storage.read(f"{folder}/{added}".lstrip("/")) or b""
    assert find_undone(data, added) == {T2}
    again = find_blocks(storage, [folder], T2)
    assert not again.mixed, "the blocks were taken out already"
    assert (again.alone, again.undone) == (frozenset({other}), frozenset({alone}))
    again.refuse_mixed()


def test_a_write_without_blocks_leaves_all_as_it_is() -> None:
    storage = MemoryStorage(SystemClock())
    add(storage, 1, block(T1), block(T2))
    add(storage, 2, encode_rollback(T2))
    for requested in (T2, T3):
        found = find_blocks(storage, ["p", "nowhere"], requested)
        assert (found.alone, found.undone, found.mixed) == (frozenset(), frozenset(), {})
