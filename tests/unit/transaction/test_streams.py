"""Positions of streams: found in commits, in the archive, by another process, and never another stream's."""

from __future__ import annotations

from dataclasses import replace

import pytest
from transaction_desk import Desk

from hudi_locks.errors import DamagedTable
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import Outcome, StreamLog, StreamPosition, Unless

HINT = ".hoodie/.hudi_locks/streams/clicks.json"


def open_log(desk: Desk, identifier: str = "clicks") -> StreamLog:
    return StreamLog(desk.storage, LAYOUT_2, identifier)


def commit(desk: Desk, notes: dict[str, str], group: str, unless: Unless | None = None) -> str | None:
    """The completion time; None if it was aborted."""
    with desk.open().begin("commit", "UPSERT") as tx:
        metadata = desk.write(tx, group)
        metadata = replace(metadata, extra={**metadata.extra, **notes})
        return tx.publish(metadata, unless=unless).completion_time


def test_a_table_without_the_stream_has_no_position(desk: Desk) -> None:
    commit(desk, open_log(desk, "views").notes(4, "q"), "g-0")
    desk.commit("h-0")
    assert open_log(desk).find(desk.timeline()) is None


def test_the_last_batch_is_found_among_commits_of_others(desk: Desk) -> None:
    log = open_log(desk)
    commit(desk, log.notes(0, "q"), "g-0")
    assert log.find(desk.timeline()) is not None
    last = commit(desk, log.notes(1, "q"), "g-0")
    commit(desk, open_log(desk, "views").notes(9, "r"), "h-0")
    expected = StreamPosition(1, "q", str(last))
    assert log.find(desk.timeline()) == expected
    assert open_log(desk).find(desk.timeline()) == expected


def test_a_position_of_a_jvm_stream_has_no_query(desk: Desk) -> None:
    commit(desk, {"_hudi_streaming_sink_checkpoint": '{"clicks":"7"}'}, "g-0")
    found = open_log(desk).find(desk.timeline())
    assert found is not None
    assert (found.batch, found.query) == (7, "")


@pytest.mark.parametrize("note", ["no json", "[]", '{"clicks":"seven"}', '{"clicks":null}'])
def test_a_note_that_is_no_position_is_passed_over(desk: Desk, note: str) -> None:
    commit(desk, {"_hudi_streaming_sink_checkpoint": note}, "g-0")
    assert open_log(desk).find(desk.timeline()) is None


@pytest.mark.parametrize("hinted", [False, True])
def test_an_archived_batch_is_found_by_another_process(desk: Desk, hinted: bool) -> None:
    log = open_log(desk)
    commit(desk, log.notes(0, "q"), "g-0")
    assert log.find(desk.timeline())
    if hinted:
        log.remember()
    commit(desk, log.notes(1, "q"), "g-0")
    for instant in desk.timeline().completed():
        desk.archive(instant.requested)
    desk.commit("h-0")
    found = open_log(desk).find(desk.timeline())
    assert found is not None
    assert found.batch == 1


def test_a_batch_that_came_and_was_archived_between_two_looks_is_found(desk: Desk) -> None:
    log = open_log(desk)
    desk.commit("h-0")
    assert log.find(desk.timeline()) is None
    commit(desk, open_log(desk).notes(3, "q"), "g-0")
    for instant in desk.timeline().completed():
        desk.archive(instant.requested)
    desk.commit("h-0")
    found = log.find(desk.timeline())
    assert found is not None
    assert found.batch == 3


def test_a_broken_hint_is_named(desk: Desk) -> None:
    desk.storage.replace(HINT, b"{}")
    with pytest.raises(DamagedTable, match="remove it") as raised:
        open_log(desk).find(desk.timeline())
    assert raised.value.facts["path"] == HINT


def test_identifiers_that_differ_in_odd_characters_have_hints_of_their_own(desk: Desk) -> None:
    for identifier in ("a/b", "a%b", "a.b", "ä"):
        log = open_log(desk, identifier)
        commit(desk, log.notes(0, "q"), "g-0")
        assert log.find(desk.timeline())
        log.remember()
    assert len(desk.names(".hoodie/.hudi_locks/streams")) == 4


def test_a_publish_asks_inside_the_lock_whether_it_is_still_wanted(desk: Desk) -> None:
    """A driver that was taken for dead wakes up: its batch was written by the one that took its place."""
    sleeper, successor = desk.open().begin("commit", "INSERT"), open_log(desk)
    metadata = desk.write(sleeper, "g-0")
    assert commit(desk, successor.notes(5, "q"), "h-0")
    log = open_log(desk)

    def unless(timeline: object) -> str:
        found = log.find(desk.timeline())
        return f"batch {found.batch} is there" if found else ""

    result = sleeper.publish(metadata, unless=unless)
    assert result.outcome is Outcome.ABORTED
    assert result.reason == "batch 5 is there"
    assert desk.timeline().get(sleeper.instant) is None
