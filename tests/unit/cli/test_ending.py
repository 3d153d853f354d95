"""What is left of a command that is told to end."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable

WORK = """
import sys, time
from hudi_locks.cli import main
def work(words):
    try:
        print("begun", flush=True)
        time.sleep(60)  # real time: it is told to end before
    finally:
        print("tidied up")
sys.modules["hudi_locks.cli.main"]._run = work
main([])
"""
Run = Callable[..., tuple[int, str, str]]


def test_a_command_that_is_told_to_end_tidies_up(start: Callable[..., subprocess.Popen[str]]) -> None:
    working = start(WORK)
    assert working.stdout
    assert working.stdout.readline() == "begun\n"
    working.send_signal(signal.SIGTERM)
    rest, _ = working.communicate(timeout=60)
    assert (working.returncode, rest) == (143, "tidied up\n")


def test_a_program_that_calls_it_keeps_its_own_ways_with_signals(hudi_locks: Run) -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert hudi_locks("--help")[0] == 0
    assert signal.getsignal(signal.SIGTERM) is before


def test_it_may_be_called_beside_the_main_thread(hudi_locks: Run) -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(hudi_locks("--help")[0]))
    thread.start()
    thread.join()
    assert found == [0]
