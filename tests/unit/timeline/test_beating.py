"""Whose heartbeat a file is, and who is certainly dead."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.clock import ManualClock
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline import heartbeat as module
from hudi_locks.timeline.heartbeat import Beating, WriterHeartbeat, find_alive, heartbeat_path

T = "20231114221320000"
LIMIT_MS = 120_000
pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="tells processes apart on Linux alone")


@pytest.fixture
def mine() -> Iterator[Beating]:
    beating = Beating.begin()
    yield beating
    beating.end()


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def beating_of(mine: Beating, process: subprocess.Popen[bytes]) -> Beating:
    started = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
    return replace(mine, pid=process.pid, started=started)


def is_over(beating: Beating) -> bool:
    """Asked anew each time, since the answer changes with the world."""
    return beating.is_over


def test_one_of_this_process_is_over_once_it_is_ended(mine: Beating) -> None:
    assert not is_over(mine)
    mine.end()
    assert is_over(mine)


def test_one_that_another_copy_of_this_code_keeps_is_not_over(mine: Beating) -> None:
    assert not replace(mine, id="ffff.0").is_over


def test_a_killed_process_is_gone_at_once_and_a_living_one_is_not(
    mine: Beating, child: subprocess.Popen[bytes]
) -> None:
    """Also while its parent has not asked how it ended."""
    theirs = beating_of(mine, child)
    assert not is_over(theirs)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_over(theirs)
    child.wait()
    assert is_over(theirs)


def test_a_process_that_got_the_id_of_a_dead_one_is_not_taken_for_it(
    mine: Beating, child: subprocess.Popen[bytes]
) -> None:
    theirs = beating_of(mine, child)
    assert replace(theirs, started=str(int(theirs.started) - 1)).is_over
    assert replace(mine, started=str(int(mine.started) - 1)).is_over


@pytest.mark.parametrize("what", ["host", "machine"])
@pytest.mark.parametrize("value", ["elsewhere", ""])
def test_nothing_is_told_of_other_machines_boots_and_namespaces(
    mine: Beating, child: subprocess.Popen[bytes], what: str, value: str
) -> None:
    theirs = beating_of(mine, child)
    child.kill()
    child.wait()
    elsewhere: Any = {what: value}
    assert not replace(theirs, **elsewhere).is_over


def test_nothing_is_told_of_a_process_that_cannot_be_looked_at(
    mine: Beating, child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = beating_of(mine, child)
    assert not is_over(theirs)
    monkeypatch.setattr(module, "_read_stat", lambda _: ())
    assert not replace(theirs, started="1").is_over


def test_a_process_whose_first_thread_ended_alone_is_not_dead(mine: Beating, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = replace(mine, pid=os.getppid(), started="77")
    for threads, expected in ((2, False), (1, True)):
        stat = ["Z", *["0"] * 16, str(threads), "0", "77"]
        monkeypatch.setattr(module, "_read_stat", lambda _, stat=stat: stat)
        assert is_over(theirs) is expected


@pytest.mark.parametrize("data", [None, b"", b"\x00", b"[]", b'{"pid": 1}', b'{"pid": "x"}', b'{"pid": 1, "other": 2}'])
def test_a_file_that_does_not_tell_is_left_to_its_time(data: bytes | None) -> None:
    assert Beating.decode(data) is None


def test_the_content_of_a_file_says_who_beats(mine: Beating) -> None:
    assert Beating.decode(mine.encode()) == mine
    assert mine.pid == os.getpid()
    assert all(dataclasses.asdict(mine).values())


@pytest.mark.parametrize("content", [b"", b"theirs"])
def test_those_of_the_jvm_live_by_their_time_alone(content: bytes) -> None:
    clock = ManualClock()
    storage = MemoryStorage(clock)
    storage.replace(heartbeat_path(T), content)
    clock.advance(120)
    assert find_alive(storage, [T], limit_ms=LIMIT_MS) == {T: LIMIT_MS}
    clock.advance(0.001)
    assert find_alive(storage, [T], limit_ms=LIMIT_MS) == {}


def test_what_this_process_stopped_beating_is_dead_at_once() -> None:
    clock = ManualClock()
    storage = MemoryStorage(clock)
    heartbeat = WriterHeartbeat(storage, T, interval_ms=60_000, tolerable_misses=2, clock=clock)
    assert heartbeat.start()
    assert find_alive(storage, [T], limit_ms=LIMIT_MS) == {T: 0}
    heartbeat.pause()
    assert find_alive(storage, [T], limit_ms=LIMIT_MS) == {}
    assert storage.exists(heartbeat_path(T))
