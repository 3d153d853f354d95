"""One look at the markers of other writes, and the making of one's own."""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from hudi_locks_conformance.servers import fetch_bundle

from benchmarks.early_conflict_field import NOW, Field, name_groups, name_instants
from benchmarks.figures import Figure
from benchmarks.sides import run_side
from hudi_locks.early_conflict import (
    BloomDirectMarkerBased,
    EarlyConflictDetectionStrategy,
    GuardedMarkers,
    SimpleDirectMarkerBased,
)
from hudi_locks.format import MarkerName
from hudi_locks.format.claim import FileGroupId
from hudi_locks.markers import DirectMarkers
from hudi_locks.storage import LocalStorage

__all__ = ["run"]

_FILES = 20
_MARKERS = 1_500
_CROWD, _CROWD_MARKERS = 50, 1_000_000
_ASKED = 20
_CHANGED_SHARE = 100
_RFC_MS = 179.0
_JVM = "JVM Hudi 1.2.0's class"


def run(*, quick: bool) -> list[Figure]:
    """All of it on files that are in memory already, as those of writes under way are."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        figures = _few(Field.make(folder / "few"), 20 if quick else 200)
        figures += _crowd(Field.make(folder / "crowd"), _CROWD_MARKERS // (50 if quick else 1))
        figures += _blooms(Field.make(folder / "blooms"), _CROWD_MARKERS // (500 if quick else 50))
        figures += _calls(Field.make(folder / "calls"))
        return figures + _creation(folder / "made", 2_000 if quick else 20_000)


def _few(field: Field, checks: int) -> list[Figure]:
    """The RFC's own measure: 1,500 markers of another writer in 20 files."""
    [other] = name_instants(1)
    _lay(field, other, _MARKERS)
    asked = frozenset(name_groups(_ASKED))
    for requested in (other, NOW):
        field.beat(requested)
    field.write_server_file(NOW, 0, sorted(asked))
    look = field.look(SimpleDirectMarkerBased, cold=False)
    cold_ms = _median_ms(lambda: field.look(SimpleDirectMarkerBased, cold=True).find_conflict(asked), checks)
    same_ms = _median_ms(lambda: look.find_conflict(asked), checks)
    jvm_first_ms, jvm_ms = _time_jvm(field, checks)
    what = f"check over {_MARKERS:,} markers in {_FILES} files"
    return [
        Figure(f"{what}, nothing known", cold_ms, _JVM, jvm_ms, "ms", "lower"),
        Figure(f"{what}, the first of a process", cold_ms, f"{_JVM}, first", jvm_first_ms, "ms", "lower"),
        Figure(f"{what}, nothing known", cold_ms, "RFC-56, its machine", _RFC_MS, "ms", "lower"),
        Figure(f"{what}, nothing changed", same_ms, _JVM, jvm_ms, "ms", "lower"),
    ]


def _time_jvm(field: Field, checks: int) -> tuple[float, float]:
    first_ms, median_ms = run_side("early_conflict_jvm", fetch_bundle("1.2.0"), field.root, NOW, checks)
    return round(first_ms, 2), round(median_ms, 2)


def _crowd(field: Field, markers: int) -> list[Figure]:
    """Fifty writers; then one file in a hundred is written anew."""
    others = name_instants(_CROWD)
    for requested in others:
        field.beat(requested)
        _lay(field, requested, markers // _CROWD)
    asked = frozenset(name_groups(_ASKED))
    read_ms = _median_ms(lambda: [path.read_bytes() for path in field.root.glob(".hoodie/.temp/*/MARKERS*")], 3)
    cold_ms = _median_ms(lambda: field.look(SimpleDirectMarkerBased, cold=True).find_conflict(asked), 3)
    look = field.look(SimpleDirectMarkerBased, cold=False)
    look.find_conflict(asked)
    same_ms = _median_ms(lambda: look.find_conflict(asked), 20)
    changed_ms = statistics.median(_change_and_look(field, others, look, asked, markers) for _ in range(10))
    what = f"check over {markers:,} markers of {_CROWD} writers"
    return [
        Figure(f"{what}, nothing known", cold_ms, "reading the files", read_ms, "ms", "lower"),
        Figure(f"{what}, 1 % changed", round(changed_ms, 2), "nothing known", cold_ms, "ms", "lower"),
        Figure(f"{what}, nothing changed", same_ms, "nothing known", cold_ms, "ms", "lower"),
    ]


def _change_and_look(
    field: Field,
    others: Sequence[str],
    look: EarlyConflictDetectionStrategy,
    asked: frozenset[FileGroupId],
    markers: int,
) -> float:
    lines = markers // _CROWD // _FILES
    for requested in random.sample(others, _CROWD * _FILES // _CHANGED_SHARE):
        field.write_server_file(requested, random.randrange(_FILES), name_groups(lines))
    return _median_ms(lambda: look.find_conflict(asked), 1)


def _lay(field: Field, requested: str, markers: int) -> None:
    groups = name_groups(markers)
    for number in range(_FILES):
        field.write_server_file(requested, number, groups[number::_FILES])


class _Watched(LocalStorage):
    """Counts bytes that are read or listed, and calls."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.bytes: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def read(self, path: str) -> bytes | None:
        data = super().read(path)
        self.calls["read"] += 1
        self.bytes["blooms" if "/blooms/" in path else "other"] += len(data or b"")
        return data

    def list_names(self, folder: str) -> list[str]:
        names = super().list_names(folder)
        self.calls["list"] += 1
        self.bytes["markers" if "/.temp/" in folder else "other"] += sum(map(len, names))
        return names


def _blooms(field: Field, markers: int) -> list[Figure]:
    """What a task reads of a write that announced so many files in tasks of a hundred, with a filter and without."""
    [other] = name_instants(1)
    field.beat(other)
    groups = name_groups(markers)
    theirs = field.look(BloomDirectMarkerBased, cold=False, requested=other).context
    maker = GuardedMarkers(DirectMarkers(theirs.storage, other), theirs, BloomDirectMarkerBased)
    for start in range(0, markers, 100):
        maker.create_all([field.name(other, group) for group in groups[start : start + 100]])
    read = {}
    for kind in (SimpleDirectMarkerBased, BloomDirectMarkerBased):
        storage = _Watched(str(field.root))
        assert field.look(kind, cold=False, storage=storage).find_conflict(frozenset(name_groups(28))) is None
        read[kind] = storage.bytes["markers"] + storage.bytes["blooms"]
    what = f"read of {markers:,} markers in 28 partitions by strategy bloom"
    ours, theirs_bytes = read[BloomDirectMarkerBased], read[SimpleDirectMarkerBased]
    return [Figure(what, ours, "strategy simple", theirs_bytes, "bytes", "lower")]


def _calls(field: Field) -> list[Figure]:
    """Lists of one check of a task that shares a partition with each of five live writes."""
    others = name_instants(5)
    for requested in others:
        field.beat(requested)
        DirectMarkers(LocalStorage(str(field.root)), requested).create_all(
            [field.name(requested, FileGroupId("p", f"{requested}-0"))]
        )
    storage = _Watched(str(field.root))
    field.look(SimpleDirectMarkerBased, cold=False, storage=storage).find_conflict({FileGroupId("p", "f-0")})
    return [Figure("lists of one direct check, 5 writers", storage.calls["list"], "the least", 6, "lists", "lower")]


def _creation(root: Path, markers: int) -> list[Figure]:
    """Direct markers beside files that are made by the bare call, in turns of a hundred."""
    [requested] = name_instants(1)
    maker, field, turn = DirectMarkers(LocalStorage(str(root / "ours")), requested), Field(root), count()
    spent: dict[str, float] = {"ours": 0.0, "bare": 0.0}
    for _ in range(markers // 100):
        names = [field.name(requested, FileGroupId("p", f"{next(turn)}-0")) for _ in range(100)]
        spent["ours"] += _time_s(lambda names=names: maker.create_all(names))  # type: ignore[misc]
        spent["bare"] += _time_s(lambda names=names: _create_bare(root / "bare" / "p", names))  # type: ignore[misc]
    ours, bare = (round(spent[side] / markers * 1e6, 1) for side in ("ours", "bare"))
    return [Figure("making a direct marker", ours, "O_CREAT and O_EXCL, bare", bare, "µs", "lower")]


def _create_bare(folder: Path, names: Sequence[MarkerName]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        os.close(
            os.open(f"{folder}/{name.data_file}.marker.{name.io_type.value}", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        )


def _median_ms(work: Callable[[], object], times: int) -> float:
    return round(statistics.median(_time_s(work) for _ in range(times)) * 1e3, 3)


def _time_s(work: Callable[[], object]) -> float:
    start_s = time.perf_counter()
    work()
    return time.perf_counter() - start_s
