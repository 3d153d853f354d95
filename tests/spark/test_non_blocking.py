"""Several writers on the same file groups at once, none of which meets another (RFC-66)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import shared_table

from hudi_locks.errors import ConfigError
from hudi_locks.format import LogFileName
from hudi_locks.spark import HoodieTable
from hudi_locks.spark.writing.writer import Writer

pytestmark = pytest.mark.spark

Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
Frame = Callable[..., Any]
RowsOf = Callable[..., list[tuple[Any, ...]]]
TOGETHER = {**shared_table.SHARED, "hoodie.write.concurrency.mode": "non_blocking_concurrency_control"}
ONE_BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
FIRST = [("a", "1", 1, 1.0), ("b", "1", 1, 1.0)]
DEADLINE_S = 240


@pytest.fixture
def create_mor(create: Create) -> Create:
    def make(*, options: dict[str, str] | None = None, **changes: Any) -> HoodieTable:
        return create(
            **{"table_type": "MERGE_ON_READ", **changes}, options={**TOGETHER, **ONE_BUCKET, **(options or {})}
        )

    return make


def logs_of(path: str) -> list[str]:
    """Their names, without markers and checksums."""
    return sorted(file.name for file in Path(path).rglob(".0*.log.*") if LogFileName.parse(file.name))


def test_a_writer_that_completes_inside_another_is_no_conflict(
    create_mor: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None], path: str
) -> None:
    """Both change every row and each wins where its ordering value is the greater, whoever completed last."""
    ours = create_mor()
    ours.insert(frame(FIRST))
    theirs: list[Any] = []
    changes = [("a", "1", 5, 5.0), ("b", "1", 2, 2.0), ("n", "1", 1, 1.0)]
    after_job(lambda: theirs.append(load(TOGETHER).upsert(frame(changes))))
    result = ours.upsert(frame([("a", "1", 3, 3.0), ("b", "1", 9, 9.0), ("m", "1", 1, 1.0)]))
    [inner] = theirs
    assert (result.conflicts, inner.conflicts, result.retries) == ((), (), 0)
    assert result.instant < inner.instant < inner.completion_time < result.completion_time
    assert rows_of(ours) == [changes[0], ("b", "1", 9, 9.0), ("m", "1", 1, 1.0), changes[2]]
    assert rows_of(ours.as_of(inner.completion_time)) == [*changes[:2], changes[2]]
    assert len(logs_of(path)) == 3


def test_a_delete_beside_an_upsert_goes_by_the_order_of_their_begin(
    create_mor: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    """A delete has no ordering value: it takes out what was begun before, and the row of a later write stays."""
    ours = create_mor()
    ours.insert(frame(FIRST))
    after_job(lambda: load(TOGETHER).delete(frame([("a", "1")], "id string, month string")))
    ours.upsert(frame([("a", "1", 3, 3.0)]))
    assert rows_of(ours) == [FIRST[1]]
    after_job(lambda: load(TOGETHER).upsert(frame([("b", "1", 0, 0.0)])))
    ours.delete(frame([("b", "1")], "id string, month string"))
    assert rows_of(ours) == [("b", "1", 0, 0.0)]


def test_without_ordering_column_the_write_that_began_last_wins_if_the_table_says_so(
    create_mor: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    ours = create_mor(ordering=None, options={"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"})
    after_job(lambda: load(TOGETHER).upsert(frame([("a", "1", 1, 1.0)])))
    ours.upsert(frame([("a", "1", 9, 9.0)]))
    assert rows_of(load(TOGETHER)) == [("a", "1", 1, 1.0)]


def test_writers_that_publish_at_once_all_get_through(
    create_mor: Create, load: Load, frame: Frame, rows_of: RowsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, count = create_mor(), 3
    barrier, run_job = threading.Barrier(count), Writer._run_job

    def meet(self: Writer, *args: Any) -> Any:
        found = run_job(self, *args)
        barrier.wait(DEADLINE_S)
        return found

    monkeypatch.setattr(Writer, "_run_job", meet)
    changes = [frame([("a", "1", number, float(number)), (f"k{number}", "1", 1, 0.0)]) for number in range(count)]
    results: list[Any] = []
    threads = [threading.Thread(target=lambda c=c: results.append(load(TOGETHER).upsert(c))) for c in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert [(result.retries, result.conflicts) for result in results] == [(0, ())] * count
    assert rows_of(table, "id", "ts") == [("a", 2), ("k0", 1), ("k1", 1), ("k2", 1)]


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"table_type": "COPY_ON_WRITE"}, {}, "needs a MERGE_ON_READ table, and this one is COPY_ON_WRITE"),
        ({"ordering": None}, {}, "needs a column that orders rows of one key"),
        ({}, {"hoodie.index.type": "SIMPLE"}, r"needs hoodie\.index\.type=BUCKET"),
        ({}, {"hoodie.clean.failed.writes.policy": "EAGER"}, "would remove files of living writers"),
        ({}, {"hoodie.write.lock.provider": ""}, "needs a lock"),
        ({}, {"hoodie.write.concurrency.early.conflict.detection.enable": "true"}, "not with NON_BLOCKING"),
    ],
)
def test_what_it_needs_is_looked_at_before_a_table_is_made(
    create_mor: Create, path: str, changes: dict[str, Any], options: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        create_mor(options=options, **changes)
    assert not Path(path, ".hoodie").exists()


def test_a_table_that_is_not_fit_is_refused_when_it_is_written(create: Create, load: Load, frame: Frame) -> None:
    create(options=shared_table.SHARED).insert(frame(FIRST))
    with pytest.raises(ConfigError, match="needs a MERGE_ON_READ table"):
        load(TOGETHER).upsert(frame(FIRST))


@pytest.mark.parametrize("operation", ["bulk_insert", "insert_overwrite", "insert_overwrite_table"])
def test_what_would_lose_rows_of_other_writers_is_refused(create_mor: Create, frame: Frame, operation: str) -> None:
    with pytest.raises(ConfigError, match=f"operation={operation} is not offered"):
        getattr(create_mor(), operation)(frame(FIRST))


def test_two_streams_share_a_table(create_mor: Create, load: Load, frame: Frame, rows_of: RowsOf) -> None:
    first, second = create_mor(), load(TOGETHER)
    sinks = first.stream_sink(identifier="one"), second.stream_sink(identifier="two")
    for number, sink in enumerate((*sinks, *sinks)):
        sink(frame([("a", "1", number, 0.0), (f"k{number}", "1", 1, 0.0)]), number // 2)
    sinks[0](frame([("z", "1", 99, 0.0)]), 0)
    assert rows_of(first, "id", "ts") == [("a", 3), ("k0", 1), ("k1", 1), ("k2", 1), ("k3", 1)]
