"""What is remembered of other writes never hides one of their markers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from early_conflict_marks import EARLIER, marker
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks import ManualClock
from hudi_locks.early_conflict.marker_reader import MarkerCache, MarkerReader
from hudi_locks.format import IOType, LogFileName, MarkerName
from hudi_locks.format.claim import FileGroupId
from hudi_locks.markers import DirectMarkers, MarkerIndex, ServerFiles
from hudi_locks.storage import LocalStorage, MemoryStorage

FOLDER = f".hoodie/.temp/{EARLIER}"
GROUPS = [
    FileGroupId(partition, file_id)
    for partition in ("", "p", "dt=2026_01_01/us_west", "a.b", "a.marker")
    for file_id in ("f-0", "f-00", "f", "f.parquet", "00000003-a-0", "00000003-b-0", "00000004")
]
NAMES = [
    text
    for group in GROUPS
    for text in (
        str(marker(EARLIER, group)),
        str(MarkerName(group.partition, str(LogFileName(group.file_id, EARLIER)), IOType.CREATE)),
        f"{group.partition}/{group.file_id}.marker.APPEND",
    )
]


def lines() -> st.SearchStrategy[str]:
    """A server file: whole lines, joined ones, and what is cut off anywhere."""
    pieces = st.lists(
        st.tuples(st.sampled_from(["", ","]), st.sampled_from(NAMES), st.sampled_from(["\n", ","])), max_size=4
    )
    whole = st.lists(st.sampled_from(NAMES), max_size=4).map(lambda names: "".join(f"{name}\n" for name in names))
    joined = pieces.map(lambda made: "".join(map("".join, made)))
    return st.tuples(whole | joined, st.integers(0, 9)).map(lambda made: made[0][: len(made[0]) - made[1]])


def announced(storage: Any) -> frozenset[FileGroupId]:
    server = ServerFiles(storage, FOLDER)
    return server.read_groups(entry.name for entry in server.list_files())


def expect_nothing_ruled_out(text: str) -> None:
    storage = MemoryStorage(ManualClock())
    storage.replace(f"{FOLDER}/MARKERS0", text.encode())
    exact, bucketed = (MarkerIndex.of(text, ServerFiles.parse_line, is_bucketed=kind) for kind in (False, True))
    for group in announced(storage):
        assert exact.may_hold(MarkerIndex.hash_groups([group]))
        assert bucketed.may_hold(MarkerIndex.hash_groups([group.bucket]))


@pytest.mark.parametrize("form", ["{0}\n", "{0}", ",{0}\n", "{0},{0}\n", "{0}\n\n", "{0}\n{0}", "{0}\np/cut_1"])
def test_an_index_holds_each_kind_of_name(form: str) -> None:
    for name in NAMES:
        expect_nothing_ruled_out(form.format(name))


@given(text=lines())
def test_an_index_rules_out_nothing_that_is_there(text: str) -> None:
    expect_nothing_ruled_out(text)


@given(
    steps=st.lists(st.tuples(st.sampled_from(["write", "write", "wait", "remove"]), st.integers(0, 1), lines())),
    limit=st.sampled_from([0, 3, 1_000]),
    is_bucketed=st.booleans(),
)
def test_a_check_that_remembers_answers_as_one_that_does_not(steps: Any, limit: int, is_bucketed: bool) -> None:
    asked = {group.bucket if is_bucketed else group for group in GROUPS}
    clock = ManualClock()
    storage, cache = MemoryStorage(clock), MarkerCache(limit)
    storage.replace(f"{FOLDER}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    for deed, number, text in steps:
        if deed == "write":
            storage.replace(f"{FOLDER}/MARKERS{number}", text.encode())
        elif deed == "remove":
            storage.delete(f"{FOLDER}/MARKERS{number}")
        else:
            clock.advance(3)
        there = {group.bucket if is_bucketed else group for group in announced(storage)}
        found = {key for key in asked if MarkerReader(storage, cache, is_bucketed=is_bucketed).find(EARLIER, {key})}
        assert found == there & asked


class Reading(LocalStorage):
    """Counts what is read."""

    reads = 0

    def read(self, path: str) -> bytes | None:
        self.reads += "MARKERS" in path and not path.endswith(".type")
        return super().read(path)


def look(storage: Reading, cache: MarkerCache, group: FileGroupId) -> int:
    """Files read by a check that finds the group announced no more than it is; -1 if it is."""
    before, found = storage.reads, MarkerReader(storage, cache).find(EARLIER, {group})
    return -1 if found else storage.reads - before


def test_only_what_was_changed_is_read_again(tmp_path: Path) -> None:
    storage, cache = Reading(str(tmp_path)), MarkerCache()
    storage.replace(f"{FOLDER}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    for number in range(3):
        storage.replace(f"{FOLDER}/MARKERS{number}", f"{marker(EARLIER, FileGroupId('p', f'f{number}'))}\n".encode())
    wanted = FileGroupId("q", "g-0")
    assert [look(storage, cache, wanted) for _ in range(2)] == [3, 3], "changed a moment ago: not to be relied on"
    storage.now_ms = lambda: LocalStorage.now_ms(storage) + 3_000  # type: ignore[method-assign]
    assert [look(storage, cache, wanted) for _ in range(2)] == [3, 0]
    storage.replace(f"{FOLDER}/MARKERS1", f"{marker(EARLIER, wanted)}\n".encode())
    assert look(storage, cache, wanted) == -1
    assert look(storage, cache, FileGroupId("q", "h-0")) == 0
    storage.replace(f"{FOLDER}/MARKERS1", b"")
    assert look(storage, cache, wanted) == 1 + 3, "what it once announced is looked for in all files, and forgotten"
    assert [look(storage, cache, wanted) for _ in range(2)] == [3, 0]


@pytest.mark.parametrize("partition", ["", "p"])
def test_direct_markers_are_listed_anew_each_time(partition: str) -> None:
    storage, cache, group = MemoryStorage(ManualClock()), MarkerCache(), FileGroupId(partition, "f-0")
    assert not MarkerReader(storage, cache).find(EARLIER, {group})
    DirectMarkers(storage, EARLIER).create_all([marker(EARLIER, group)])
    assert MarkerReader(storage, cache).find(EARLIER, {group}) == {group}
