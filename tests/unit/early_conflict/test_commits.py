"""What was completed while a write was under way: its markers are gone (Figure 4 of RFC-56)."""

from __future__ import annotations

from typing import Any

import pytest
from early_conflict_marks import EARLIER, NOW, markers

from hudi_locks.early_conflict import SimpleDirectMarkerBased
from hudi_locks.errors import HoodieEarlyConflictDetectionException
from hudi_locks.format import BaseFileName, CommitMetadata, Instant, State, WriteStat
from hudi_locks.format.claim import FileGroupId
from hudi_locks.timeline import LAYOUT_2, create_instant

GROUP = FileGroupId("p", "f-0")


def complete(
    ground: Any, requested: str, *, written: str = "", replaced: str = "", action: str = "commit", **how: Any
) -> None:
    stats = [WriteStat("p", written, f"p/{BaseFileName(written, requested)}")] if written else []
    replaced_ids = {"p": (replaced,)} if replaced else {}
    metadata = CommitMetadata.of(stats, "UPSERT", schema="{}", replaced_file_ids=replaced_ids, **how)
    instant = Instant(requested, action, State.COMPLETED, f"{int(requested) + 50}")
    data = metadata.encode(action, layout_version=2)
    assert create_instant(ground.storage, LAYOUT_2, instant=instant, data=data)


def look(ground: Any, **given: Any) -> Any:
    try:
        ground.guarded(SimpleDirectMarkerBased, **given).create_all(markers(NOW, [GROUP]))
    except HoodieEarlyConflictDetectionException as error:
        return error
    return None


def test_writer_2_of_figure_4_meets_what_writer_1_committed_and_whose_markers_are_gone(ground: Any) -> None:
    ground.announce(EARLIER, GROUP)
    complete(ground, EARLIER, written=GROUP.file_id)
    ground.storage.delete_folder(f".hoodie/.temp/{EARLIER}")
    ground.end(EARLIER)
    assert look(ground) is None  # left to the publish, unless asked for
    error = look(ground, checks_commits=True)
    assert (error.other, error.kind, error.other_is_pending) == (EARLIER, "commit", False)


@pytest.mark.parametrize("action", ["commit", "deltacommit"])
def test_what_merged_the_logs_of_a_file_group_is_no_conflict(ground: Any, action: str) -> None:
    """The publish passes it too: what is logged beside it lies on top."""
    complete(ground, EARLIER, written=GROUP.file_id, action=action, compacted=True)
    assert look(ground, checks_commits=True) is None


@pytest.mark.parametrize("action", ["replacecommit"])
def test_file_groups_that_were_replaced_count(ground: Any, action: str) -> None:
    """JVM Hudi looks at written ones alone, so that a clustered file group passes its check."""
    complete(ground, EARLIER, written="new-0", replaced=GROUP.file_id, action=action)
    assert look(ground, checks_commits=True) is not None


def test_another_file_group_of_the_same_bucket_counts_under_a_bucket_index(ground: Any) -> None:
    group = FileGroupId("p", "00000003-ours-0")
    complete(ground, EARLIER, written="00000003-theirs-0")
    announce = ground.guarded(SimpleDirectMarkerBased, checks_commits=True, is_bucketed=True).create_all
    with pytest.raises(HoodieEarlyConflictDetectionException, match=group.file_id):
        announce(markers(NOW, [group]))


@pytest.mark.parametrize("why", ["seen before", "another file group"])
def test_what_is_no_conflict(ground: Any, why: str) -> None:
    complete(ground, EARLIER, written="g-0" if why == "another file group" else GROUP.file_id)
    known = frozenset({EARLIER}) if why == "seen before" else frozenset[str]()
    assert look(ground, checks_commits=True, known=known) is None


def test_a_later_instant_that_completed_counts_too(ground: Any) -> None:
    """The earlier completion wins at the publish, whatever the requested times."""
    complete(ground, "20260101000000009", written=GROUP.file_id)
    assert look(ground, checks_commits=True) is not None
