"""Table services beside writers: in the process of a single writer, and beside a backfill."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from paused_writes import DEADLINE_S, paused
from shared_table import SHARED

from hudi_locks.errors import WriteConflict
from hudi_locks.services.met_conflicts import list_conflicts
from hudi_locks.spark import HoodieTable
from hudi_locks.spark.services.clustering import ClusteringJob
from hudi_locks.transaction import StopPoint

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]
BESIDE = {"hoodie.clustering.async.enabled": "true", "hoodie.clustering.async.max.commits": "2"}
PREFER_WRITER = {"hoodie.write.lock.conflict.resolution.strategy": "prefer_writer"}
SMALL = {"hoodie.parquet.small.file.limit": "0"}


class Pause:
    """The clustering thread waits in the middle of its job."""

    def __init__(self) -> None:
        self.reached, self._go_on = threading.Event(), threading.Event()

    def wait(self) -> None:
        self.reached.set()
        assert self._go_on.wait(DEADLINE_S)

    def end(self) -> None:
        self._go_on.set()


@pytest.fixture
def clustering(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pause]:
    pause, run_job = Pause(), ClusteringJob._run_job

    def run(self: ClusteringJob, *args: Any) -> Any:
        pause.wait()
        return run_job(self, *args)

    monkeypatch.setattr(ClusteringJob, "_run_job", run)
    yield pause
    pause.end()


def test_a_single_writer_writes_on_while_its_process_clusters(
    create: Create, frame: Frame, rows_of: RowsOf, clustering: Pause
) -> None:
    """Without any lock: what does not touch the file groups of the plan goes on, and both are there in the end."""
    table = create(options={**BESIDE, **SMALL})
    table.upsert(frame([("a", "1", 1, 1.0)]))
    table.upsert(frame([("b", "1", 1, 1.0)]))
    assert clustering.reached.wait(DEADLINE_S)
    before = table.table.timeline().newest_time()
    beside = [table.upsert(frame([("c", "2", ts, 1.0)])) for ts in (1, 2)]
    assert [result.retries for result in beside] == [0, 0]
    clustering.end()
    [done] = table.clustering.wait()
    assert done.file_groups_replaced == 2
    assert rows_of(table, "id", "ts") == [("a", 1), ("b", 1), ("c", 2)]
    assert rows_of(table.incremental(str(before)), "id", "ts") == [("c", 2)]
    table.upsert(frame([("a", "1", 2, 2.0)]))
    assert rows_of(table, "id", "ts") == [("a", 2), ("b", 1), ("c", 2)]


def test_writers_that_are_preferred_never_wait_for_clustering(
    create: Create, frame: Frame, rows_of: RowsOf, clustering: Pause
) -> None:
    """What was planned before the write is taken back, and may be planned anew."""
    table = create(options={**BESIDE, **SMALL, **PREFER_WRITER})
    table.upsert(frame([("a", "1", 1, 1.0)]))
    table.upsert(frame([("b", "1", 1, 1.0)]))
    assert clustering.reached.wait(DEADLINE_S)
    [planned] = table.table.timeline().pending(("clustering",))
    assert table.upsert(frame([("a", "1", 2, 2.0)])).retries == 0
    clustering.end()
    assert planned.requested not in [result.instant for result in table.clustering.wait()]
    assert table.table.timeline().get(planned.requested) is None
    assert rows_of(table, "id", "ts") == [("a", 2), ("b", 1)]


def test_clustering_gives_way_to_a_living_writer_that_is_preferred(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    """The writer has announced its file, and is about to publish, when the clustering wants to."""
    options = {**SHARED, **SMALL, **PREFER_WRITER}
    table = create(options=options)
    for key in "ab":
        table.bulk_insert(frame([(key, "1", 1, 1.0)]))
    gave_way: list[WriteConflict] = []

    def cluster() -> None:
        with pytest.raises(WriteConflict, match="once the other has ended") as caught:
            load(options).clustering.run()
        gave_way.append(caught.value)

    after_job(cluster)
    result = table.upsert(frame([("a", "1", 2, 2.0)]))
    assert [(error.other, error.other_is_pending) for error in gave_way] == [(result.instant, True)]
    assert result.retries == 0
    [kept] = list_conflicts(table.table, last=9).conflicts
    assert (kept.service, kept.other, kept.gave_up) == ("clustering", result.instant, True)
    assert rows_of(table, "id", "ts") == [("a", 2), ("b", 1)]


def test_a_stream_with_services_of_its_own_and_a_backfill_share_a_table(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, clustering: Pause
) -> None:
    """The backfill begins before the plan of the stream's process, and ends while that is carried out."""
    stream, backfill = create(options={**SHARED, **SMALL, **BESIDE}), load({**SHARED, **SMALL})
    rows = [("x", "7", 1, 1.0), ("y", "8", 1, 1.0)]
    with paused(backfill, StopPoint.BEGIN_INFLIGHT, lambda: backfill.bulk_insert(frame(rows))) as old:
        for number, key in enumerate("ab"):
            stream.upsert(frame([(key, "1", number, 1.0)]))
        assert clustering.reached.wait(DEADLINE_S)
        assert old.finish().retries == 0
    stream.upsert(frame([("y", "8", 2, 2.0)]))
    clustering.end()
    assert [result.file_groups_replaced for result in stream.clustering.wait()][:1] == [2]
    assert rows_of(stream, "id", "ts") == [("a", 0), ("b", 1), ("x", 1), ("y", 2)]
