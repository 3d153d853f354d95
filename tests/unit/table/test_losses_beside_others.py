"""A reader beside whom others write, clean, cluster and undo sees the table before or after, at whichever step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from sized_writes import CountingStorage, Writes, made_in

from hudi_locks.table import OvertakenSnapshot, latest_file_slices


class BusyStorage(CountingStorage):
    """Does everything that is to be done at one of its calls; a listing is one step."""

    def __init__(self) -> None:
        super().__init__()
        self.left: int | None = None
        self.act: Callable[[], object] = list

    def _pass(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                self.act()

    def list(self, folder: str) -> list:  # type: ignore[type-arg]
        self._pass()
        return super().list(folder)

    def read(self, path: str) -> bytes | None:
        self._pass()
        return super().read(path)


def read_newest(writes: Writes) -> list[str]:
    """As readers do, with a storage that nobody has read through."""
    while True:
        try:
            slices = latest_file_slices(writes.storage, writes.table.timeline(), refuses_overtaken=True)
        except OvertakenSnapshot:
            continue
        return [f"{piece.file_id}@{piece.barrier[-1]}" for piece in slices]


def upsert_and_clean(writes: Writes, old: list[str], logs: list[str]) -> None:
    for n in (4, 6):
        old = [*old, *writes.put(n, "a-0", "b-0")]
    writes.clean(8, *old[:-2], *logs)


def cluster_and_clean(writes: Writes, old: list[str], logs: list[str]) -> None:
    writes.put(5, "c-0", action="replacecommit", ends=("a-0", "b-0"))
    writes.clean(8, *old, *logs)


def compact_and_clean(writes: Writes, old: list[str], logs: list[str]) -> None:
    writes.put(5, "a-0", "b-0")
    writes.clean(8, *old, *logs)


def undo(writes: Writes, old: list[str], logs: list[str]) -> None:
    writes.put(7, "a-0")
    timeline = writes.table.timeline()
    for path in (*(timeline.paths[instant] for instant in timeline.completed()[:-1]), *old, *logs):
        writes.storage.delete(path)


@pytest.mark.parametrize(
    ("work", "after"),
    [
        (upsert_and_clean, ("a-0@6", "b-0@6")),
        (cluster_and_clean, ("c-0@5",)),
        (compact_and_clean, ("a-0@5", "b-0@5")),
        (undo, ("a-0@7",)),
    ],
)
def test_whatever_is_done_at_whichever_step_of_a_reader_it_sees_the_table_before_or_after(
    work: Callable[[Writes, list[str], list[str]], None], after: tuple[str, ...]
) -> None:
    seen: list[tuple[str, ...]] = []
    storage = BusyStorage()
    while storage.left is None:
        storage = BusyStorage()
        writes = made_in(storage)
        old, logs = writes.put(1, "a-0", "b-0"), writes.put(2, logs=("a-0",), action="deltacommit", completion=3)
        storage.act = partial(work, writes, old, logs)
        storage.left = len(seen)
        seen.append(tuple(read_newest(writes)))
    assert set(seen) == {("a-0@1", "b-0@1"), after}
    assert len(seen) > 5
