"""Two archivers at one history, of which one sleeps for hours between any two of its steps: nothing is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from transaction_harness import HarnessClock

from hudi_locks.format import ArchiveRow, PartName, add_ms
from hudi_locks.storage import Entry, MemoryStorage
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.timeline.archive import is_archived
from hudi_locks.timeline.history import ArchivedHistory

FIRST = "20231114221318000"
HOURS_S = 7201


class SleepyStorage(MemoryStorage):
    """Shares the files of another storage; before call number `awake` its process sleeps, and others are at work."""

    def __init__(self, files: MemoryStorage, awake: int, others: Callable[[], None]) -> None:
        super().__init__(files._clock, base=files.base)
        self._files = files._files
        self.awake = awake
        self.missing: set[str] = set()
        self._others = others

    def _pass(self) -> None:
        self.awake -= 1
        if self.awake == -1:
            self._others()

    def list(self, folder: str) -> list[Entry]:
        self._pass()
        return super().list(folder)

    def read(self, path: str) -> bytes | None:
        self._pass()
        return super().read(path)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        self._pass()
        made = super().create_if_absent(path, data)
        self.missing |= find_missing(self)
        return made

    def delete(self, path: str) -> bool:
        self._pass()
        return super().delete(path)


@pytest.fixture
def clock() -> HarnessClock:
    return HarnessClock()


@pytest.fixture
def files(clock: HarnessClock) -> MemoryStorage:
    return MemoryStorage(clock)


def archive(storage: MemoryStorage, clock: HarnessClock, numbers: range) -> None:
    """Add instants one by one, and merge and drop as much as possible, each two hours after the one before."""
    for number in numbers:
        history = ArchivedHistory(storage, LAYOUT_2)
        time = add_ms(FIRST, number)
        history.add([ArchiveRow(time, add_ms(time, 1), "commit", b"data")])
        clock.advance(HOURS_S)
        history.compact(batch=2, keep_versions=1)


def find_missing(storage: MemoryStorage) -> set[str]:
    """Parts that the newest manifest names and that are not there, on a store that nobody watches."""
    plain = MemoryStorage(storage._clock)
    plain._files = storage._files
    return {
        name
        for name in ArchivedHistory(plain, LAYOUT_2).read_manifest()[1]
        if not plain.exists(f"{LAYOUT_2.archive}/{name}")
    }


def named(storage: MemoryStorage) -> set[str]:
    """Instants in the parts that the newest manifest names, as a JVM finds them."""
    history = ArchivedHistory(storage, LAYOUT_2)
    parts = [PartName.parse(name) for name in history.read_manifest()[1]]
    return {row.requested for part in parts if part for row in history._read(part) or ()}


@pytest.mark.parametrize(
    ("theirs", "awake"), [(theirs, awake) for theirs, first in ((1, 23), (5, 0)) for awake in range(first, 36)]
)
def test_an_archiver_that_sleeps_among_others_loses_nothing(
    files: MemoryStorage, clock: HarnessClock, awake: int, theirs: int
) -> None:
    archive(files, clock, range(3))
    sleepy = SleepyStorage(files, awake, lambda: archive(files, clock, range(10, 10 + theirs)))
    archive(sleepy, clock, range(3, 5))
    assert sleepy.awake < 0
    wanted = {add_ms(FIRST, number) for number in (*range(5), *range(10, 10 + theirs))}
    assert named(files) == wanted
    assert all(is_archived(files, LAYOUT_2, requested=time) for time in wanted)


@pytest.mark.parametrize("awake", range(44))
@pytest.mark.parametrize("theirs", [range(3, 5), range(3, 4), range(3, 9)])
def test_no_manifest_names_a_part_that_was_dropped(
    files: MemoryStorage, clock: HarnessClock, awake: int, theirs: range
) -> None:
    """Others archive the same instants while one sleeps: whoever reads meanwhile finds every part, also if it dies."""
    archive(files, clock, range(3))
    sleepy = SleepyStorage(files, awake, lambda: archive(files, clock, theirs))
    archive(sleepy, clock, range(3, 5))
    assert sleepy.awake < 0
    assert sleepy.missing == set()
    assert named(files) >= {add_ms(FIRST, number) for number in range(5)}


def test_a_part_that_a_jvm_left_half_written_is_written_anew(files: MemoryStorage, clock: HarnessClock) -> None:
    path = f"{LAYOUT_2.archive}/{PartName(FIRST, FIRST)}"
    files.create_if_absent(path, b"PAR1")
    archive(files, clock, range(1))
    assert named(files) == {FIRST}
    assert files.read(path) != b"PAR1"
