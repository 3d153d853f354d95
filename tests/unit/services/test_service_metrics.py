"""Services tell what they did: under JVM Hudi's names, and as spans with the steps of their writes."""

from __future__ import annotations

from contextlib import suppress

from compaction_harness import CompactionHarness
from service_harness import ServiceHarness
from spans import keep_spans, told

from hudi_locks import ManualClock
from hudi_locks.format import epoch_ms
from hudi_locks.observe import COMPACTION_COMPLETED, COMPACTION_REQUESTED, Gauge, Metrics, SpanName, Timing
from hudi_locks.services import TableServices

KEEP = {
    "hoodie.clean.commits.retained": 1,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
}


def test_a_clean_an_archival_and_a_rollback_are_told(harness: ServiceHarness) -> None:
    transactions = harness.open()
    services = TableServices(transactions, KEEP)
    for _ in range(5):
        harness.put("p/g-0")
    harness.clock.advance(3601)
    lost = transactions.begin("commit", "UPSERT")
    harness.rewrite(lost, "p/g-1")
    lost.abort("a test")
    cleaned, archived = services.clean(), services.archive()
    shown = transactions.metrics.snapshot()
    assert cleaned.deleted > 0
    assert shown["clean.numFilesDeleted"] == Gauge(cleaned.deleted)
    assert archived.archived > 0
    assert shown["archive.numInstantsArchived"] == Gauge(archived.archived)
    assert shown["rollback.numFilesDeleted"] == Gauge(0), "a staged file has no name yet"
    for action in ("clean", "archive", "rollback"):
        assert isinstance(shown[f"{action}.duration"], Gauge)
        timer = shown[f"{action}.timer"]
        assert isinstance(timer, Timing)
        assert timer.count == 1


def test_a_commit_tells_what_waits_and_a_compaction_that_it_was_done(harness: ServiceHarness) -> None:
    compacted = CompactionHarness.at(harness)
    compacted.append("g-0")
    compaction = compacted.compaction()
    metrics = compaction.transactions.metrics
    planned = compaction.schedule()
    tx = compaction.transactions.begin("deltacommit", "UPSERT")
    assert tx.publish(compacted.log(tx, "g-0")).is_committed
    waiting = metrics.snapshot()
    assert waiting["compaction.pendingCompactionInstantCount"] == Gauge(1)
    assert waiting["compaction.earliestInflightCompactionInstant"] == Gauge(int(planned or 0))
    assert metrics.counter(COMPACTION_REQUESTED) == 1
    assert metrics.counter(COMPACTION_COMPLETED) == 0
    assert compacted.run(compaction) is not None
    done = metrics.snapshot()
    assert done["compaction.pendingCompactionInstantCount"] == Gauge(0)
    assert done["compaction.commitTime"] == Gauge(epoch_ms(planned or ""))
    assert metrics.counter(COMPACTION_COMPLETED) == 1


def test_what_fails_has_no_duration() -> None:
    metrics = Metrics()
    with suppress(OSError), metrics.measure(SpanName.CLEAN, "clean", ManualClock()) as values:
        values["numFilesDeleted"] = 3
        raise OSError
    assert metrics.snapshot() == {}


def test_writes_and_services_are_spans_with_their_steps(harness: ServiceHarness) -> None:
    with keep_spans() as spans:
        transactions = harness.open(hudi_locks__tracing="true")
        for _ in range(3):
            harness.clock.advance(1)
            tx = transactions.begin("commit", "UPSERT")
            assert tx.publish(harness.rewrite(tx, "p/g-0")).is_committed
        result = TableServices(transactions, KEEP).clean()
        transactions.begin("commit", "UPSERT").abort("a test")
    assert spans.tree() == {
        ("hudi.begin", ""),
        ("hudi.publish", ""),
        ("hudi.conflict_check", "hudi.publish"),
        ("hudi.finalize", "hudi.publish"),
        ("hudi.clean", ""),
        ("hudi.rollback", ""),
    }
    published = spans.named(SpanName.PUBLISH)[-1]
    assert told(published)["hudi.outcome"] == "COMMITTED"
    assert told(published)["hudi.commit.totalFilesUpdate"] == 1
    assert {"publish:claimed", "publish:completed"} <= {
        event.name for span in (published, spans.named(SpanName.FINALIZE)[-1]) for event in span.events
    }
    [cleaned] = spans.named(SpanName.CLEAN)
    assert told(cleaned)["hudi.clean.numFilesDeleted"] == result.deleted > 0
    assert "service:claimed" in {event.name for event in cleaned.events}
    assert "rollback:claimed" not in {event.name for span in spans.named(SpanName.PUBLISH) for event in span.events}
