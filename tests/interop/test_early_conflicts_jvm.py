"""Early conflict detection with direct markers beside a JVM writer that does the same."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from other_readers import DEADLINE_S, OURS
from paused_writes import paused
from waiting import until

from hudi_locks import LockManager
from hudi_locks.errors import HoodieEarlyConflictDetectionException
from hudi_locks.observe import EARLY_CONFLICT_MARKER
from hudi_locks.spark import HoodieTable
from hudi_locks.transaction import StopPoint

pytestmark = [pytest.mark.interop, pytest.mark.parametrize("jvm", [("1.2.0", 9)], indirect=True, ids=["1.2.0-v9"])]

Row = tuple[Any, ...]
Create = Callable[..., HoodieTable]
Frame = Callable[..., Any]
AllRead = Callable[[HoodieTable], list[Row]]
DETECTION = "hoodie.write.concurrency.early.conflict.detection."
EARLY = {f"{DETECTION}enable": "true", "hoodie.write.markers.type": "DIRECT"}
THEIR_EARLY = {key.replace(".", "__"): value for key, value in EARLY.items()}
A, B, C = [(name, region, 1, 1.0, "first") for name, region in (("a", "us"), ("b", "us"), ("c", "eu"))]


def newer(row: Row, label: str) -> Row:
    return (*row[:2], 2, 2.0, label)


def await_true(what: str, is_true: Callable[[], object]) -> None:
    assert until(is_true, DEADLINE_S), what


def find_markers(table: HoodieTable) -> set[str]:
    return {path.parts[-3] for path in Path(table.path, ".hoodie/.temp").glob("*/region=us/*.marker.MERGE")}


def test_a_jvm_writer_that_comes_later_gives_up_at_our_marker(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead, after_job: Callable[..., None]
) -> None:
    table = create(options=EARLY)
    table.bulk_insert(frame([A, B, C]))
    met: list[BaseException] = []

    def meet() -> None:
        jvm.write(table, [newer(C, "theirs")], **THEIR_EARLY)  # another file group: it goes on
        with pytest.raises(Exception, match="HoodieEarlyConflictDetectionException") as caught:
            jvm.write(table, [newer(B, "theirs")], **THEIR_EARLY)
        met.append(caught.value)

    after_job(meet)
    result = table.upsert(frame([newer(A, "ours")]))
    assert result.conflicts == ()
    assert len(met) == 1
    assert all_read(table) == [newer(A, "ours"), B, newer(C, "theirs")]


def test_our_writer_that_comes_later_gives_up_at_the_marker_of_a_jvm_writer(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead, gate: Any
) -> None:
    table = create(options=EARLY)
    table.bulk_insert(frame([A, B, C]))
    theirs = jvm.begin_write(table, [newer(B, "theirs")], gate=gate.path, **THEIR_EARLY)
    with ExitStack() as stack:
        locks = stack.enter_context(LockManager.from_options({**OURS, "hoodie.base.path": table.path}))
        with gate.closed():
            write = lambda: table.upsert(frame([newer(A, "ours")]))  # noqa: E731
            mine = stack.enter_context(paused(table, StopPoint.BEGIN_INFLIGHT, write))
            stack.enter_context(locks.lock())  # so that they write, and cannot publish
        await_true("their marker", lambda: find_markers(table))
        [other] = find_markers(table)
        mine.resume()
        await_true("we meet it", lambda: table.metrics.counter(EARLY_CONFLICT_MARKER))
    assert isinstance(mine.error, HoodieEarlyConflictDetectionException)
    assert (mine.error.partition, mine.error.other, mine.error.other_is_pending) == ("region=us", other, True)
    assert theirs.result(DEADLINE_S) is None
    assert all_read(table) == [A, newer(B, "theirs"), C]
