"""Looking at direct markers, and those of a server, before a file is announced."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from early_conflict_marks import EARLIER, LATER, NOW, marker, markers

from hudi_locks.early_conflict import (
    BloomDirectMarkerBased,
    SimpleDirectMarkerBased,
    SimpleTransactionDirectMarkerBased,
    find_reported,
)
from hudi_locks.errors import HoodieEarlyConflictDetectionException
from hudi_locks.format import IOType
from hudi_locks.format.claim import FileGroupId
from hudi_locks.timeline.heartbeat import HEARTBEAT_FOLDER, heartbeat_path

GROUP = FileGroupId("dt=2026_01_01/us_west", "f_1".replace("_", "") + "-0")
LOCAL = {"hoodie.write.lock.provider": "in_process", "hoodie.base.path": "/t"}
ALL = [SimpleDirectMarkerBased, SimpleTransactionDirectMarkerBased, BloomDirectMarkerBased]


@pytest.fixture(params=ALL)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def try_to_announce(ground: Any, kind: Any, *groups: FileGroupId, requested: str = NOW, **given: Any) -> Any:
    """None if the markers were made, else the error."""
    guarded = ground.guarded(kind, requested, lock_options=LOCAL, **given)
    try:
        guarded.create_all(markers(requested, groups))
    except HoodieEarlyConflictDetectionException as error:
        return error
    return None


def test_a_file_group_of_an_earlier_write_is_refused_by_name(ground: Any, kind: Any) -> None:
    ground.announce(EARLIER, GROUP)
    error = try_to_announce(ground, kind, GROUP)
    assert (error.partition, error.file_id, error.other, error.kind) == (*GROUP, EARLIER, "marker")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert EARLIER in str(error)
    assert not [path for path in ground.storage._files if path.startswith(f".hoodie/.temp/{NOW}")]


def test_the_driver_finds_what_the_task_reported(ground: Any, kind: Any) -> None:
    ground.announce(EARLIER, GROUP)
    assert find_reported(ground.storage, NOW) is None
    try_to_announce(ground, kind, GROUP)
    found = find_reported(ground.storage, NOW)
    assert found is not None
    assert (found.group, found.other, found.is_pending) == (GROUP, EARLIER, True)


@pytest.mark.parametrize(
    "other",
    [
        FileGroupId(GROUP.partition, "f1-00"),
        FileGroupId("dt=2026_01_02/us_west", GROUP.file_id),
        FileGroupId("dt=2026", GROUP.file_id),
        FileGroupId("", GROUP.file_id),
        FileGroupId(f"{GROUP.partition}/deeper", GROUP.file_id),
    ],
)
def test_keys_are_exact(ground: Any, kind: Any, other: FileGroupId) -> None:
    """JVM Hudi compares what comes before the first underscore of the path, or a part of the file's path."""
    ground.announce(EARLIER, other)
    assert try_to_announce(ground, kind, GROUP) is None
    assert ground.storage.exists(f".hoodie/.temp/{NOW}/{marker(NOW, GROUP)}")


def test_log_files_and_base_files_of_a_group_conflict(ground: Any, kind: Any) -> None:
    ground.begin(EARLIER)
    name = f".{GROUP.file_id}_{EARLIER}.log.1_0-0-0.marker.CREATE"
    ground.storage.create_if_absent(f".hoodie/.temp/{EARLIER}/{GROUP.partition}/{name}", b"")
    assert try_to_announce(ground, kind, GROUP) is not None


@pytest.mark.parametrize("begun", [EARLIER, LATER])
def test_the_smaller_instant_goes_on(ground: Any, kind: Any, begun: str) -> None:
    ground.announce(begun, GROUP)
    assert (try_to_announce(ground, kind, GROUP) is None) is (begun == LATER)


@pytest.mark.parametrize("why", ["dead", "silent", "exempt", "seen"])
def test_whose_markers_do_not_count(ground: Any, kind: Any, why: str) -> None:
    ground.announce(EARLIER, GROUP)
    if why == "dead":
        ground.clock.advance(121)
    if why == "silent":
        ground.end(EARLIER)
    given: dict[str, Any] = {"exempt": {"exempt": {EARLIER}}, "seen": {"known": {EARLIER}}}.get(why, {})
    assert try_to_announce(ground, kind, GROUP, **given) is None


def test_a_peer_with_a_timeline_server_is_seen(ground: Any, kind: Any) -> None:
    ground.announce_by_server(EARLIER, f"a/x-0_0-0-0_1.parquet.marker.CREATE\n{marker(EARLIER, GROUP)}\n")
    assert try_to_announce(ground, kind, GROUP) is not None


def test_a_peers_half_written_file_counts_as_far_as_it_is_whole(ground: Any, kind: Any) -> None:
    """The reader of RFC-56 that meets an exception takes the file for empty, and looks again."""
    text = f"{marker(EARLIER, FileGroupId('p', 'g-0'))}\n{marker(EARLIER, GROUP)}"
    ground.announce_by_server(EARLIER, text[: len(text) - 9])
    assert try_to_announce(ground, kind, GROUP) is None
    assert try_to_announce(ground, kind, FileGroupId("p", "g-0")) is not None
    ground.announce_by_server(EARLIER, f"{text}\n")
    assert try_to_announce(ground, kind, GROUP) is not None


def test_a_check_lists_each_folder_once(ground: Any) -> None:
    groups = [FileGroupId(f"p{number % 3}", f"g{number}-0") for number in range(30)]
    ground.announce(EARLIER, *(FileGroupId(group.partition, f"x{group.file_id}") for group in groups))
    ground.announce(LATER, *groups)
    ground.storage.calls.clear()
    assert try_to_announce(ground, SimpleDirectMarkerBased, *groups) is None
    assert ground.lists() == [".hoodie/.temp", *(f".hoodie/.temp/{EARLIER}/p{number}" for number in range(3))]


def test_a_check_asks_for_nothing_else(ground: Any) -> None:
    """Of each live writer its heartbeat, and which kind of markers it makes; of the dead and the later ones nothing."""
    dead, alive = [f"2026010100000000{number}" for number in (0, 1)]
    group = FileGroupId("p", "g-0")
    for requested in (dead, alive, LATER):
        ground.announce(requested, FileGroupId("p", "x-0"))
    ground.end(dead)
    ground.storage.calls.clear()
    assert try_to_announce(ground, SimpleDirectMarkerBased, group) is None
    assert ground.lists() == [".hoodie/.temp", f".hoodie/.temp/{alive}/p"]
    assert [path for verb, path in ground.storage.calls if verb == "read"] == [f".hoodie/.temp/{alive}/MARKERS.type"]
    asked = {path for verb, path in ground.storage.calls if verb == "stat" and HEARTBEAT_FOLDER in path}
    assert asked == {heartbeat_path(dead), heartbeat_path(alive)}


@pytest.mark.parametrize("others", [0, 3])
def test_files_of_new_groups_are_announced_without_a_look(ground: Any, kind: Any, others: int) -> None:
    for number in range(others):
        ground.announce(f"2026010100000000{number}", GROUP)
    ground.storage.calls.clear()
    new = marker(NOW, GROUP, IOType.CREATE)
    assert ground.guarded(kind, lock_options=LOCAL).create_all([new]) == 0.0
    assert not ground.lists()
    assert ground.storage.exists(f".hoodie/.temp/{NOW}/{new}")


def announce_bucket(ground: Any, kind: Any, file_id: str, *, is_bucketed: bool = True, requested: str = NOW) -> Any:
    """None if a new file group could be announced, else the error."""
    ground.begin(requested)
    guarded = ground.guarded(kind, requested, lock_options=LOCAL, is_bucketed=is_bucketed)
    try:
        guarded.create_all([marker(requested, FileGroupId("p", file_id), IOType.CREATE)])
    except HoodieEarlyConflictDetectionException as error:
        return error
    return None


def test_two_new_file_groups_of_one_bucket_conflict(ground: Any, kind: Any) -> None:
    assert announce_bucket(ground, kind, "00000003-theirs-0", requested=EARLIER) is None
    assert announce_bucket(ground, kind, "00000004-ours-0") is None
    error = announce_bucket(ground, kind, "00000003-ours-0")
    assert (error.partition, error.file_id, error.other) == ("p", "00000003-ours-0", EARLIER)


def test_ids_that_begin_alike_are_no_bucket_without_a_bucket_index(ground: Any, kind: Any) -> None:
    assert announce_bucket(ground, kind, "00000003-theirs-0", requested=EARLIER, is_bucketed=False) is None
    assert announce_bucket(ground, kind, "00000003-ours-0", is_bucketed=False) is None


def test_a_new_bucket_of_a_timeline_servers_writer_conflicts(ground: Any, kind: Any) -> None:
    theirs = marker(EARLIER, FileGroupId("p", "00000003-theirs-0"), IOType.CREATE)
    ground.announce_by_server(EARLIER, f"{theirs}\n")
    assert announce_bucket(ground, kind, "00000003-ours-0") is not None
    assert announce_bucket(ground, kind, "00000004-ours-0") is None


def test_a_bloom_that_rules_everything_out_saves_the_listing(ground: Any) -> None:
    assert try_to_announce(ground, BloomDirectMarkerBased, GROUP, requested=EARLIER) is None
    ground.begin(EARLIER)
    ground.storage.calls.clear()
    assert try_to_announce(ground, BloomDirectMarkerBased, FileGroupId("p", "other-0")) is None
    assert not [path for path in ground.lists() if path.startswith(f".hoodie/.temp/{EARLIER}")]
    assert try_to_announce(ground, BloomDirectMarkerBased, GROUP, requested=LATER) is not None
