"""The archive of version 6, as Hudi 0.15.0 leaves it."""

from __future__ import annotations

import pytest
from old_archive_files import GOLDEN, encode_archive

from hudi_locks.clock import SystemClock
from hudi_locks.errors import DamagedTable
from hudi_locks.format import FIRST_TIME, CommitMetadata, Instant, RollbackMetadata, State
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline import LAYOUT_1, Timeline
from hudi_locks.timeline.archive import (
    find_archived_completions,
    find_archived_content,
    has_archived,
    is_archived,
    list_archived_since,
    list_archived_times,
    read_instant,
)

FIRST, SECOND = "20261129173413583", "20261129173416525"
DONE = {FIRST: "20261129173416357", SECOND: "20261129173417681"}
FILE = f"{LAYOUT_1.archive}/.commits_.archive.1_1-0-1"


@pytest.fixture
def storage() -> MemoryStorage:
    found = MemoryStorage(SystemClock())
    found.replace(FILE, GOLDEN.read_bytes())
    return found


def test_completed_instants_are_told_with_what_they_wrote(storage: MemoryStorage) -> None:
    found = list_archived_since(storage, LAYOUT_1, completed_after=FIRST_TIME)
    assert {one.requested: one.completion for one in found} == DONE
    assert {one.action for one in found} == {"commit"}
    for one in found:
        metadata = CommitMetadata.decode(one.metadata, FILE)
        assert metadata.operation == "UPSERT"
        assert all(stat.path and stat.path.endswith(f"{one.requested}.parquet") for stat in metadata.stats)
        assert metadata.schema is not None


def test_times_and_contents_are_found_one_by_one(storage: MemoryStorage) -> None:
    assert has_archived(storage, LAYOUT_1)
    assert is_archived(storage, LAYOUT_1, requested=FIRST)
    assert not is_archived(storage, LAYOUT_1, requested="20261129173413584")
    assert list_archived_times(storage, LAYOUT_1, completed_after=DONE[FIRST]) == {SECOND}
    between = list_archived_times(storage, LAYOUT_1, completed_after=FIRST_TIME, completed_before=DONE[SECOND])
    assert between == {FIRST}
    assert find_archived_completions(storage, LAYOUT_1, requested=[FIRST]) == {}
    instant = Instant(FIRST, "commit", State.COMPLETED, DONE[FIRST])
    data = find_archived_content(storage, LAYOUT_1, instant=instant)
    assert CommitMetadata.decode(data or b"", FILE).operation == "UPSERT"
    assert find_archived_content(storage, LAYOUT_1, instant=Instant(FIRST, "clean", State.COMPLETED)) is None
    assert read_instant(storage, Timeline(LAYOUT_1, ()), instant=instant) == data


def test_without_an_archive_nothing_is_found() -> None:
    storage = MemoryStorage(SystemClock())
    assert not has_archived(storage, LAYOUT_1)
    assert not is_archived(storage, LAYOUT_1, requested=FIRST)
    assert list_archived_since(storage, LAYOUT_1, completed_after=FIRST_TIME) == []


def test_a_file_that_was_written_before_is_not_read() -> None:
    storage = MemoryStorage(SystemClock())
    storage.replace(FILE, b"nothing that can be read")
    later = "29991231235959999"
    assert list_archived_since(storage, LAYOUT_1, completed_after=later) == []
    with pytest.raises(DamagedTable, match=r"\.commits_\.archive\.1_1-0-1"):
        list_archived_since(storage, LAYOUT_1, completed_after=FIRST_TIME)


def test_a_rollback_tells_what_it_undid(storage: MemoryStorage) -> None:
    undone = {
        "startRollbackTime": "20261129180000000", "timeTakenInMillis": 1, "totalFilesDeleted": 0,
        "commitsRollback": [FIRST], "partitionMetadata": {}, "version": 1,
        "instantsRollback": [{"commitTime": FIRST, "action": "commit"}],
    }  # fmt: skip
    entries = [
        {"hoodieRollbackMetadata": undone, "commitTime": time, "actionType": "rollback", "actionState": state}
        for time, state in (("20261129180000000", "COMPLETED"), ("20261129180000001", "REQUESTED"))
    ]
    storage.replace(FILE.replace("archive.1", "archive.2"), encode_archive(entries))
    (rollback,) = list_archived_since(storage, LAYOUT_1, completed_after=DONE[SECOND])
    assert rollback.completion == rollback.requested == "20261129180000000"
    assert RollbackMetadata.decode(rollback.metadata, FILE).rolled_back == ((FIRST, "commit"),)
