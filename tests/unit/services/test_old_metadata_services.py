"""Services of the metadata table of a table of version 6, whose logs are named by what is below them."""

from __future__ import annotations

import pytest
from metadata_harness import MetadataHarness
from metadata_services import HOUR_S, logs, plan_wrongly, put, records, services
from transaction_harness import Harness, Killed, stop_at

from hudi_locks.errors import WriteAborted
from hudi_locks.format import METADATA_FOLDER, CompactionPlan
from hudi_locks.metadata_table import plan_compaction
from hudi_locks.transaction import StopPoint


@pytest.fixture
def kept(harness: Harness) -> MetadataHarness:
    return MetadataHarness.of(harness, 6)


def test_a_plan_stays_and_what_lies_below_it_is_merged_and_told(kept: MetadataHarness) -> None:
    put(kept, 4)
    begun = plan_wrongly(kept, "files-0000-0")
    above = kept.put("p/g-9")
    assert services(kept).run().compactions == (begun.requested,)
    assert logs(kept) > 0, "what came later, and file groups that the plan does not name, are not part of it"
    assert any(above in name for name in kept.metadata_table.view(kept.timeline()).files["p"])
    planned = CompactionPlan.decode(kept.storage.read(kept.own_layout.path(begun)) or b"", "plan")
    assert [len(operation.log_names) > 3 for operation in planned.groups] == [True]
    kept.check()


def test_a_write_that_missed_the_plan_is_merged_or_given_up(kept: MetadataHarness) -> None:
    """It named its logs before the plan was there, and claims before whoever runs the plan."""
    put(kept, 4)
    service = services(kept)

    def plan() -> None:
        view = kept.open().coordinator.look()
        own, found = kept.own_timeline(), kept.metadata_table
        content = plan_compaction(found.view(view.timeline)).encode()
        assert service._plans.begin(view, "compaction", plan=content, own=own) is not None

    tx = kept.open(trace=stop_at(StopPoint.PUBLISH_PREPARED, plan)).begin("commit", "UPSERT")
    try:
        done = tx.publish(kept.rewrite(tx, "p/g-0")).is_committed
    except WriteAborted:
        done = False
    kept.clock.advance(HOUR_S)
    assert len(service.run().compactions) == 1
    assert logs(kept) == 0
    names = kept.metadata_table.view(kept.timeline()).files["p"]
    assert any(tx.instant in name for name in names) is done
    kept.check()


def test_nothing_is_planned_beside_an_earlier_write_that_is_under_way(kept: MetadataHarness) -> None:
    """JVM Hudi takes it for compacted, and cannot roll it back."""
    put(kept, 3)
    tx = kept.open().begin("commit", "UPSERT")
    put(kept, 1)
    assert services(kept).run().compactions == ()
    assert tx.publish(kept.rewrite(tx, "p/g-8")).is_committed
    [done] = services(kept).run().compactions
    newest = max(one.requested for one in kept.own_timeline().completed(("deltacommit",)))
    assert done == f"{newest}001"
    assert logs(kept) == 0
    kept.check()


def test_base_files_of_a_compaction_that_is_not_done_are_not_read(kept: MetadataHarness) -> None:
    put(kept, 4)
    before = records(kept)
    with pytest.raises(Killed):
        services(kept, trace=stop_at(StopPoint.SERVICE_INFLIGHT)).run()
    begun = kept.own_timeline().pending(("compaction",))[0]
    kept.storage.replace(f"{METADATA_FOLDER}/files/files-0000-0_3-7-7_{begun.requested}.hfile", b"half of it")
    assert records(kept) == before
