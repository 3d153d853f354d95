"""Cleans and archival of a table that keeps a metadata table."""

from __future__ import annotations

from typing import Any

import pytest
from metadata_harness import MetadataHarness, rollback_of_the_jvm
from transaction_harness import Harness, Killed, kill

from hudi_locks.errors import SavepointRefused
from hudi_locks.format import Instant, State
from hudi_locks.metadata_table import METADATA_LAYOUT
from hudi_locks.services.archival import Archiver
from hudi_locks.services.restoring import Restorer
from hudi_locks.services.settings import ArchiveSettings, CleanSettings
from hudi_locks.transaction import StopPoint

POINTS = [point for point in StopPoint if point.value.startswith("service:")]


@pytest.fixture
def kept(harness: Harness) -> MetadataHarness:
    return MetadataHarness.of(harness, 9)


def stop_at(point: StopPoint, action: Any = kill) -> Any:
    left = [action]

    def trace(reached: StopPoint) -> None:
        if reached is point and left:
            left.pop()()

    return trace


def archiver(kept: MetadataHarness) -> Archiver:
    options = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    coordinator = kept.open().coordinator
    return Archiver(coordinator, ArchiveSettings.of(options), clean_settings=CleanSettings.of(options))


def test_a_clean_is_a_delta_commit_that_takes_its_files_out(kept: MetadataHarness) -> None:
    times = [kept.put("p/g-0") for _ in range(3)]
    result = kept.cleaner(commits__retained=1).run()
    assert result.deleted == 1
    kept.check()
    told = kept.metadata_table.view(kept.timeline()).files["p"]
    assert {name.split("_")[-1].split(".")[0] for name in told} == set(times[1:])
    own = kept.own_timeline().get(result.instants[0])
    assert own is not None
    assert own.action == "deltacommit"


@pytest.mark.parametrize("point", POINTS)
def test_wherever_a_clean_dies_the_next_one_brings_both_tables_in_step(kept: MetadataHarness, point: StopPoint) -> None:
    for _ in range(3):
        kept.put("p/g-0")
    with pytest.raises(Killed):
        kept.cleaner(trace=stop_at(point), commits__retained=1).run()
    kept.clock.advance(4_000)
    kept.cleaner(commits__retained=1).run()
    kept.check()
    assert kept.timeline().pending() == ()
    assert len(kept.timeline().completed(("clean",))) == 1


def test_a_clean_whose_delta_commit_a_jvm_writer_took_back_is_carried_out_by_the_next(
    kept: MetadataHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        kept.put("p/g-0")
    make = "hudi_locks.metadata_table.delta_commits.DeltaCommits.make_logs"
    monkeypatch.setattr(make, lambda _, commit: rollback_of_the_jvm(kept, commit.requested))
    assert kept.cleaner(commits__retained=1).run().instants == ()
    monkeypatch.undo()
    kept.clock.advance(4_000)
    assert kept.cleaner(commits__retained=1).run().deleted == 1
    kept.check()


def test_nothing_later_than_the_last_compaction_of_the_metadata_table_is_archived(kept: MetadataHarness) -> None:
    """As JVM Hudi: its readers go by the timeline for what is not compacted yet."""
    times = [kept.put("p/g-0") for _ in range(6)]
    kept.cleaner(commits__retained=1).run()
    kept.clock.advance(4_000)
    assert archiver(kept).run().archived == 0
    compaction = Instant(f"{times[2][:-1]}9", "compaction", State.INFLIGHT)
    kept.storage.replace(METADATA_LAYOUT.path(compaction.as_completed(times[5])), b"")
    assert archiver(kept).run().archived >= 1
    assert kept.timeline().first_active is not None
    assert str(kept.timeline().first_active) <= times[3]


def test_a_restore_is_refused_with_the_way_out(kept: MetadataHarness) -> None:
    time = kept.put("p/g-0")
    before = kept.timeline()
    with pytest.raises(SavepointRefused, match="hudi-locks metadata drop"):
        Restorer(kept.open().coordinator).run(time)
    assert kept.timeline() == before
