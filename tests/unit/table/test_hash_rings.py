"""Which ring of a partition counts, and who makes the first."""

from __future__ import annotations

from typing import Any

import pytest
from transaction_harness import HarnessClock

from hudi_locks.errors import DamagedTable, WriteAborted
from hudi_locks.format import ArchiveRow, CommitMetadata, Instant, State
from hudi_locks.format.consistent_hashing import HashRing
from hudi_locks.format.ring_change import RingChange, RingNode
from hudi_locks.storage import MemoryStorage
from hudi_locks.table.hash_rings import (
    change_hash_rings,
    find_hash_ring,
    load_hash_rings,
    remove_hash_rings,
    remove_ring_marks,
)
from hudi_locks.timeline import LAYOUT_1, LAYOUT_2, Timeline, create_instant
from hudi_locks.timeline.history import ArchivedHistory

FOLDER = ".hoodie/.bucket_index/consistent_hashing_metadata"
SPLIT = "20231114221330000"
LATER = HashRing((5, 10), ("x-0", "y-0"))


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage(HarnessClock())


def load(storage: MemoryStorage, partition: str = "p", buckets: int = 2) -> HashRing:
    timeline = Timeline.load(storage, LAYOUT_2)
    return load_hash_rings(storage, timeline, [partition], buckets=buckets)[partition]


def resize(storage: MemoryStorage, state: State | None) -> None:
    storage.create_if_absent(f"{FOLDER}/p/{SPLIT}.hashing_meta", LATER.encode("p"))
    if state is None:
        return
    begun = Instant(SPLIT, "clustering", State.REQUESTED)
    done = CommitMetadata.of([], "CLUSTER", schema=None).encode("replacecommit", layout_version=2)
    for instant, data in ((begun, b""), (begun.as_inflight(), b""), (begun.as_completed("20231114221340000"), done)):
        if instant.state <= state:
            create_instant(storage, LAYOUT_2, instant=instant, data=data)


def test_a_partition_without_a_ring_gets_its_first(storage: MemoryStorage) -> None:
    assert load(storage) == HashRing.create("p", 2)
    assert load(storage, buckets=7) == HashRing.create("p", 2), "and keeps it"
    assert load(storage, "") == HashRing.create("", 2)
    assert storage.exists(f"{FOLDER}/00000000000000.hashing_meta"), "without partitions"


def test_one_that_another_made_first_counts(storage: MemoryStorage) -> None:
    storage.create_if_absent(f"{FOLDER}/p/00000000000000.hashing_meta", LATER.encode("p"))
    assert load(storage) == LATER


@pytest.mark.parametrize(
    ("state", "counts"), [(State.REQUESTED, False), (State.INFLIGHT, False), (State.COMPLETED, True), (None, False)]
)
def test_a_ring_counts_once_the_clustering_that_made_it_is_completed(
    storage: MemoryStorage, state: State | None, counts: bool
) -> None:
    first = load(storage)
    resize(storage, state)
    assert load(storage) == (LATER if counts else first)


def test_a_mark_or_the_archive_tells_that_it_was_completed(storage: MemoryStorage) -> None:
    load(storage)
    resize(storage, None)
    ArchivedHistory(storage, LAYOUT_2).add([ArchiveRow(SPLIT, "20231114221340000", "replacecommit", b"")])
    assert find_hash_ring(storage, Timeline.load(storage, LAYOUT_2), "p") == LATER
    storage.delete_folder(LAYOUT_2.archive)
    assert load(storage) != LATER
    storage.create_if_absent(f"{FOLDER}/p/{SPLIT}.commit", b"")
    assert load(storage) == LATER


def test_whoever_takes_a_ring_for_one_marks_it(storage: MemoryStorage) -> None:
    first = load(storage)
    resize(storage, State.INFLIGHT)
    load(storage)
    assert not storage.exists(f"{FOLDER}/p/{SPLIT}.commit")
    resize(storage, State.COMPLETED)
    assert load(storage) == LATER
    assert storage.exists(f"{FOLDER}/p/{SPLIT}.commit")
    assert not storage.exists(f"{FOLDER}/p/00000000000000.commit"), "of the first everybody knows that it counts"
    remove_hash_rings(storage, SPLIT)
    assert storage.list_names(f"{FOLDER}/p") == ["00000000000000.hashing_meta"]
    assert load(storage) == first


def test_in_version_6_nothing_is_marked(storage: MemoryStorage) -> None:
    storage.create_if_absent(f"{FOLDER}/p/{SPLIT}.hashing_meta", LATER.encode("p"))
    begun = Instant(SPLIT, "replacecommit", State.REQUESTED)
    for instant in (begun, begun.as_inflight(), begun.as_completed(SPLIT)):
        create_instant(storage, LAYOUT_1, instant=instant)
    assert load_hash_rings(storage, Timeline.load(storage, LAYOUT_1), ["p"], buckets=2) == {"p": LATER}
    assert storage.list_names(f"{FOLDER}/p") == [f"{SPLIT}.hashing_meta"]


@pytest.mark.parametrize("state", [State.COMPLETED, State.INFLIGHT, None])
def test_a_mark_goes_where_the_clustering_is_known_to_be_completed(storage: MemoryStorage, state: State | None) -> None:
    load(storage)
    resize(storage, state)
    storage.create_if_absent(f"{FOLDER}/p/{SPLIT}.commit", b"")
    remove_ring_marks(storage, Timeline.load(storage, LAYOUT_2))
    is_kept = storage.exists(f"{FOLDER}/p/{SPLIT}.commit")
    assert is_kept is (state is not State.COMPLETED), "it alone tells"
    assert find_hash_ring(storage, Timeline.load(storage, LAYOUT_2), "p") == LATER


def test_marks_are_looked_for_where_there_are_rings(storage: MemoryStorage) -> None:
    remove_ring_marks(storage, Timeline.load(storage, LAYOUT_2))
    load(storage)
    remove_ring_marks(storage, Timeline.load(storage, LAYOUT_2))
    assert storage.list_names(f"{FOLDER}/p") == ["00000000000000.hashing_meta"]


def test_a_ring_is_changed_for_those_who_know_the_one_before(storage: MemoryStorage) -> None:
    first, timeline = load(storage), Timeline.load(storage, LAYOUT_2)
    change = RingChange("p", 0, (RingNode(first.values[0]), RingNode(first.values[1], "x-0")))
    change_hash_rings(storage, timeline, {"p": [change]}, instant=SPLIT)
    change_hash_rings(storage, timeline, {"p": [change]}, instant=SPLIT)
    assert load(storage) == first, "until the clustering is completed"
    storage.create_if_absent(f"{FOLDER}/p/{SPLIT}.commit", b"")
    assert load(storage) == HashRing(first.values[1:], ("x-0",), 1)
    with pytest.raises(WriteAborted, match="planned from ring 0 of partition 'p', and ring 1 counts now"):
        change_hash_rings(storage, timeline, {"p": [change]}, instant="20261121000000000")
    with pytest.raises(WriteAborted, match="partition 'q', and none counts now"):
        change_hash_rings(storage, timeline, {"q": [change]}, instant=SPLIT)


def test_rings_of_which_none_counts_are_damage(storage: MemoryStorage) -> None:
    resize(storage, State.INFLIGHT)
    with pytest.raises(DamagedTable, match="none of a completed clustering") as caught:
        load(storage)
    assert caught.value.facts["partition"] == "p"


def test_one_that_cannot_be_read_is_named(storage: MemoryStorage) -> None:
    storage.create_if_absent(f"{FOLDER}/p/00000000000000.hashing_meta", b"half")
    with pytest.raises(DamagedTable, match=r"p/00000000000000\.hashing_meta"):
        load(storage)


def test_several_are_loaded_at_once(storage: MemoryStorage) -> None:
    found: Any = load_hash_rings(storage, Timeline.load(storage, LAYOUT_2), ["a", "b/c"], buckets=3)
    assert found == {"a": HashRing.create("a", 3), "b/c": HashRing.create("b/c", 3)}
