"""Spans of writes by Spark: one for a call, for each try, and for the steps of a try; services are a part of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import shared_table
from spans import keep_spans, told

from hudi_locks.observe import Gauge, SpanName
from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.spark

Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
Frame = Callable[..., Any]
TRACED = {**shared_table.SHARED, "hudi_locks.tracing": "true"}
ROWS = [("a", "1", 1, 1.0), ("b", "1", 1, 1.0)]
STEPS = {"hudi.begin", "hudi.place", "hudi.write_files", "hudi.publish"}


def test_a_write_that_met_a_conflict_tells_of_both_tries(
    create: Create, load: Load, frame: Frame, after_job: Any
) -> None:
    table = create(options={**TRACED, "hoodie.write.num.retries.on.conflict.failures": "1"})
    table.insert_overwrite(frame(ROWS))
    other = load(shared_table.SHARED)
    after_job(lambda: other.insert_overwrite(frame(ROWS)))
    with keep_spans() as spans:
        table.close()
        table = load({**TRACED, "hoodie.write.num.retries.on.conflict.failures": "1"})
        result = table.insert_overwrite(frame(ROWS))
    first, second = map(told, spans.named(SpanName.ATTEMPT))
    assert first["hudi.conflict_with"] == result.conflicts[0].other
    assert (first["hudi.outcome"], second["hudi.outcome"]) == ("ABORTED", "COMMITTED")
    [whole] = map(told, spans.named(SpanName.WRITE))
    assert (whole["hudi.operation"], whole["hudi.attempts"]) == ("insert_overwrite", 2)
    assert (whole["hudi.rows_written"], whole["hudi.instant"]) == (2, result.instant)
    tree = spans.tree()
    assert {(step, "hudi.write.attempt") for step in STEPS} <= tree
    assert {("hudi.write", ""), ("hudi.lock", "hudi.publish"), ("hudi.conflict_check", "hudi.publish")} <= tree
    assert isinstance(table.metrics.snapshot()["index.lookup.duration"], Gauge)


def test_services_after_a_write_are_a_part_of_it(create: Create, frame: Frame) -> None:
    options = {**TRACED, "hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    index = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    with keep_spans() as spans:
        table = create(table_type="MERGE_ON_READ", options={**options, **index})
        table.upsert(frame(ROWS))
        table.services.clean()
    tree = spans.tree()
    assert {("hudi.compaction", "hudi.write"), ("hudi.write_files", "hudi.compaction"), ("hudi.clean", "")} <= tree
    [compacted] = map(told, spans.named(SpanName.COMPACTION))
    assert (compacted["hudi.file_groups_planned"], compacted["hudi.rows_written"]) == (1, 2)
