"""A moment whose files are being cleaned is refused already, instead of shown with fewer rows."""

from __future__ import annotations

from typing import Any

import pytest
from service_harness import ServiceHarness

from hudi_locks.errors import TableError
from hudi_locks.table import refuse_cleaned
from hudi_locks.transaction import StopPoint


def look(harness: ServiceHarness, **moment: str) -> None:
    refuse_cleaned(harness.storage, harness.timeline(), **moment)


def put_four(harness: ServiceHarness) -> list[str]:
    return [harness.put("p/g-0") for _ in range(4)]


def test_a_clean_under_way_counts(harness: ServiceHarness, at: Any) -> None:
    puts = put_four(harness)
    seen: list[TableError] = []

    def try_it() -> None:
        look(harness, completed=puts[2])
        with pytest.raises(TableError, match=f"as of {puts[0]} is not whole any more") as caught:
            look(harness, completed=puts[0])
        seen.append(caught.value)

    harness.cleaner(trace=at(StopPoint.SERVICE_INFLIGHT, try_it), commits__retained=2).run()
    [found] = seen
    [clean] = harness.timeline().completed(("clean",))
    assert (found.time, found.earliest, found.clean) == (puts[0], puts[2], clean.requested)


def test_what_cleans_by_versions_keep_is_not_known(harness: ServiceHarness) -> None:
    puts = put_four(harness)
    assert harness.cleaner(policy="KEEP_LATEST_FILE_VERSIONS", fileversions__retained=1).run().deleted == 3
    look(harness, requested=puts[0])
