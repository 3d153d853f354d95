"""Positions of streams: found in commits, in the archive, by another process, and never another stream's."""

from __future__ import annotations

from dataclasses import replace

import pytest
from transaction_harness import Harness

from hudi_locks.errors import DamagedTable
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import Outcome, StreamLog, StreamPosition, Unless

HINT = ".hoodie/.hudi_locks/streams/clicks.json"


def open_log(harness: Harness, identifier: str = "clicks") -> StreamLog:
    return StreamLog(harness.storage, LAYOUT_2, identifier)


def commit(harness: Harness, notes: dict[str, str], group: str, unless: Unless | None = None) -> str | None:
    """The completion time; None if it was aborted."""
    with harness.open().begin("commit", "UPSERT") as tx:
        metadata = harness.write(tx, group)
        metadata = replace(metadata, extra={**metadata.extra, **notes})
        return tx.publish(metadata, unless=unless).completion_time


def test_a_table_without_the_stream_has_no_position(harness: Harness) -> None:
    commit(harness, open_log(harness, "views").notes(4, "q"), "g-0")
    harness.commit("h-0")
    assert open_log(harness).find(harness.timeline()) is None


def test_the_last_batch_is_found_among_commits_of_others(harness: Harness) -> None:
    log = open_log(harness)
    commit(harness, log.notes(0, "q"), "g-0")
    assert log.find(harness.timeline()) is not None
    last = commit(harness, log.notes(1, "q"), "g-0")
    commit(harness, open_log(harness, "views").notes(9, "r"), "h-0")
    expected = StreamPosition(1, "q", str(last))
    assert log.find(harness.timeline()) == expected
    assert open_log(harness).find(harness.timeline()) == expected


def test_a_position_of_a_jvm_stream_has_no_query(harness: Harness) -> None:
    commit(harness, {"_hudi_streaming_sink_checkpoint": '{"clicks":"7"}'}, "g-0")
    found = open_log(harness).find(harness.timeline())
    assert found is not None
    assert (found.batch, found.query) == (7, "")


@pytest.mark.parametrize("note", ["no json", "[]", '{"clicks":"seven"}', '{"clicks":null}'])
def test_a_note_that_is_no_position_is_passed_over(harness: Harness, note: str) -> None:
    commit(harness, {"_hudi_streaming_sink_checkpoint": note}, "g-0")
    assert open_log(harness).find(harness.timeline()) is None


@pytest.mark.parametrize("hinted", [False, True])
def test_an_archived_batch_is_found_by_another_process(harness: Harness, hinted: bool) -> None:
    log = open_log(harness)
    commit(harness, log.notes(0, "q"), "g-0")
    assert log.find(harness.timeline())
    if hinted:
        log.remember()
    commit(harness, log.notes(1, "q"), "g-0")
    for instant in harness.timeline().completed():
        harness.archive(instant.requested)
    harness.commit("h-0")
    found = open_log(harness).find(harness.timeline())
    assert found is not None
    assert found.batch == 1


def test_a_batch_that_came_and_was_archived_between_two_looks_is_found(harness: Harness) -> None:
    log = open_log(harness)
    harness.commit("h-0")
    assert log.find(harness.timeline()) is None
    commit(harness, open_log(harness).notes(3, "q"), "g-0")
    for instant in harness.timeline().completed():
        harness.archive(instant.requested)
    harness.commit("h-0")
    found = log.find(harness.timeline())
    assert found is not None
    assert found.batch == 3


def test_a_broken_hint_is_named(harness: Harness) -> None:
    harness.storage.replace(HINT, b"{}")
    with pytest.raises(DamagedTable, match="remove it") as raised:
        open_log(harness).find(harness.timeline())
    assert raised.value.facts["path"] == HINT


def test_identifiers_that_differ_in_odd_characters_have_hints_of_their_own(harness: Harness) -> None:
    for identifier in ("a/b", "a%b", "a.b", "ä"):
        log = open_log(harness, identifier)
        commit(harness, log.notes(0, "q"), "g-0")
        assert log.find(harness.timeline())
        log.remember()
    assert len(harness.names(".hoodie/.hudi_locks/streams")) == 4


def test_a_publish_asks_inside_the_lock_whether_it_is_still_wanted(harness: Harness) -> None:
    """A driver that was taken for dead wakes up: its batch was written by the one that took its place."""
    sleeper, successor = harness.open().begin("commit", "INSERT"), open_log(harness)
    metadata = harness.write(sleeper, "g-0")
    assert commit(harness, successor.notes(5, "q"), "h-0")
    log = open_log(harness)

    def unless(timeline: object) -> str:
        found = log.find(harness.timeline())
        return f"batch {found.batch} is there" if found else ""

    result = sleeper.publish(metadata, unless=unless)
    assert result.outcome is Outcome.ABORTED
    assert result.reason == "batch 5 is there"
    assert harness.timeline().get(sleeper.instant) is None
