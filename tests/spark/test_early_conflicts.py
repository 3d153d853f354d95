"""A write that meets an earlier one gives up before it writes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import shared_table
from waiting import until

from hudi_locks.errors import HoodieEarlyConflictDetectionException, WriteConflict
from hudi_locks.observe import (
    EARLY_CONFLICT_CHECK,
    EARLY_CONFLICT_MARKER,
    EARLY_CONFLICT_SAVED,
    TIMELINE_SERVER_FALLBACK,
    TIMELINE_SERVER_MARKERS,
    Timing,
)
from hudi_locks.services.met_conflicts import list_conflicts
from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]
FIRST = [("a", "1", 1, 1.0), ("b", "1", 1, 1.0), ("c", "2", 1, 1.0)]
DEADLINE_S = 240
PREFIX = "hoodie.write.concurrency.early.conflict."
SERVER = {"hoodie.write.markers.type": "TIMELINE_SERVER_BASED"}
SERVER_STRATEGIES = ("async", "bloom_async")


def options(strategy: str = "simple", *, retries: int = 0) -> dict[str, str]:
    return {
        **shared_table.SHARED,
        f"{PREFIX}detection.enable": "true",
        f"{PREFIX}detection.strategy": strategy,
        **(SERVER if strategy in SERVER_STRATEGIES else {}),
        "hoodie.write.num.retries.on.conflict.failures": str(retries),
    }


@pytest.mark.parametrize("strategy", ["simple", "transaction", "bloom", "async"])
def test_the_later_of_two_writers_gives_up_before_it_writes(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None], strategy: str
) -> None:
    ours = create(options=options(strategy))
    ours.bulk_insert(frame(FIRST))
    theirs = load(options(strategy))
    met: list[pytest.ExceptionInfo[WriteConflict]] = []
    # A server looks before it answers the first task, whichever that is, and at what comes later in half a minute.
    beside = [] if strategy in SERVER_STRATEGIES else [("c", "2", 2, 2.0)]

    def meet() -> None:
        with pytest.raises(HoodieEarlyConflictDetectionException) as caught:
            theirs.upsert(frame([("b", "1", 2, 2.0), *beside]))
        met.append(caught)

    after_job(meet)
    result = ours.upsert(frame([("a", "1", 2, 2.0)]))
    [caught] = met
    error = caught.value
    assert (error.partition, error.other, error.other_is_pending) == ("1", result.instant, True)
    assert "let it finish, then write again" in str(error)
    assert not [file for file in Path(ours.path).rglob("*.parquet") if error.instant in file.name]
    theirs.services.sweep()  # a task that had begun beside the one that gave up makes its marker however late
    assert not [file for file in Path(ours.path).rglob("*") if error.instant in file.parts]
    assert theirs.metrics.counter(EARLY_CONFLICT_MARKER) == 1
    [left] = list_conflicts(ours.table, last=9).conflicts
    assert (left.instant, left.other, left.found, left.gave_up) == (error.instant, result.instant, "early", True)
    assert rows_of(ours) == [("a", "1", 2, 2.0), ("b", "1", 1, 1.0), ("c", "2", 1, 1.0)]


@pytest.mark.parametrize("strategy", ["simple", "async"])
def test_of_two_writers_that_make_the_same_new_bucket_the_later_gives_up(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None], strategy: str
) -> None:
    """Their file groups have different ids."""
    create(options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"})
    ours, theirs = (load(options(strategy)) for _ in range(2))
    met: list[pytest.ExceptionInfo[WriteConflict]] = []

    def meet() -> None:
        with pytest.raises(HoodieEarlyConflictDetectionException) as caught:
            theirs.upsert(frame([("b", "1", 2, 2.0)]))
        met.append(caught)

    after_job(meet)
    result = ours.upsert(frame([("a", "1", 2, 2.0)]))
    [caught] = met
    assert (caught.value.partition, caught.value.other) == ("1", result.instant)
    assert rows_of(ours) == [("a", "1", 2, 2.0)]


def test_it_begins_anew_once_the_earlier_one_has_ended(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    ours = create(options=options(retries=1))
    ours.bulk_insert(frame(FIRST))
    theirs, results = load(options(retries=1)), list[Any]()
    thread = threading.Thread(target=lambda: results.append(theirs.upsert(frame([("b", "1", 2, 2.0)]))))

    def meet() -> None:
        thread.start()
        assert until(lambda: theirs.metrics.counter(EARLY_CONFLICT_MARKER), DEADLINE_S)

    after_job(meet)
    earlier = ours.upsert(frame([("a", "1", 2, 2.0)]))
    thread.join(DEADLINE_S)
    [result] = results
    [conflict] = result.conflicts
    assert (conflict.other, conflict.is_early, result.retries) == (earlier.instant, True, 1)
    given_up, whole = result.attempts
    saved = theirs.metrics.snapshot()[EARLY_CONFLICT_SAVED]
    assert isinstance(saved, Timing)
    assert (saved.count, saved.total_s) == (1, max(0.0, whole.duration_s - given_up.duration_s))
    assert rows_of(ours) == [("a", "1", 2, 2.0), ("b", "1", 2, 2.0), ("c", "2", 1, 1.0)]


@pytest.mark.parametrize("strategy", ["simple", "transaction", "bloom", "bloom_async"])
def test_writers_of_different_file_groups_go_on(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None], strategy: str
) -> None:
    ours = create(options=options(strategy))
    ours.bulk_insert(frame(FIRST))
    theirs = load(options(strategy))
    after_job(lambda: theirs.upsert(frame([("c", "2", 2, 2.0)])))
    assert ours.upsert(frame([("a", "1", 2, 2.0)])).conflicts == ()
    timing = theirs.metrics.snapshot()[EARLY_CONFLICT_CHECK]
    assert isinstance(timing, Timing)
    assert timing.count >= 1
    assert (theirs.metrics.counter(TIMELINE_SERVER_MARKERS) > 0) is (strategy in SERVER_STRATEGIES)
    assert theirs.metrics.counter(TIMELINE_SERVER_FALLBACK) == 0
    assert rows_of(ours) == [("a", "1", 2, 2.0), ("b", "1", 1, 1.0), ("c", "2", 2, 2.0)]
