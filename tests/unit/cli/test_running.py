"""A command that runs while a lock is held ends with it, whoever dies, and its lock ends with the command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_locks import Holder, LockManager, LockScope, Owner
from hudi_locks.lock import load_provider_class
from hudi_locks.storage import LocalStorage
from hudi_locks.table import Table, TableConfig

Run = Callable[..., tuple[int, str, str]]
Start = Callable[..., subprocess.Popen[str]]
MAIN = "import sys; from hudi_locks.cli import main; main(sys.argv[1:])"
SLEEP = "import time; print('begun', flush=True); time.sleep(60)"  # real time: it is stopped before
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"
TIDY = "[signal.signal(number, lambda *_: sys.exit(print('tidied up'))) for number in (signal.SIGTERM, signal.SIGINT)]"
OBEDIENT = f"import signal, sys; {TIDY}; {SLEEP}"
QUICK = ("-o", "hoodie.write.lock.heartbeat_interval_ms=50")


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "table")
    Table.create(LocalStorage(path), TableConfig("t", ("id",)))
    return path


@pytest.fixture
def manager(path: str) -> Iterator[LockManager]:
    with LockManager("filesystem", {"hoodie.base.path": path}, application="nightly etl") as manager:
        yield manager


@pytest.fixture
def begin(start: Start, path: str) -> Callable[..., subprocess.Popen[str]]:
    """`hudi-locks run` of a Python program that prints `begun`, in a process of its own."""

    def make(code: str, *words: str) -> subprocess.Popen[str]:
        running = start(MAIN, "run", path, "-p", "filesystem", *words, "--", sys.executable, "-c", code)
        assert running.stdout
        assert running.stdout.readline() == "begun\n"
        return running

    return make


def test_the_status_of_the_command_is_passed_on_and_its_lock_is_told(
    hudi_locks: Run, path: str, tmp_path: Path, manager: LockManager
) -> None:
    told = tmp_path / "told"
    code = (
        "import os, sys; names = ['HUDI_LOCKS_KEY', 'HUDI_LOCKS_TOKEN', 'HUDI_LOCKS_FENCING_TOKEN'];"
        f"open({str(told)!r}, 'w').write(' '.join(os.environ[name] for name in names)); sys.exit(7)"
    )
    assert hudi_locks("run", path, "-p", "filesystem", "--", sys.executable, "-c", code) == (7, "", "")
    key, token, fencing = told.read_text().split()
    assert key == f"{path}/.hoodie/lock"
    assert token.endswith(f"-{fencing}")
    assert manager.holder() is None


def test_what_follows_the_dashes_is_the_commands(hudi_locks: Run, path: str, tmp_path: Path) -> None:
    told = tmp_path / "told"
    code = f"import sys; open({str(told)!r}, 'w').write(' '.join(sys.argv[1:]))"
    words = ("run", "-p", "filesystem", "-o", f"hoodie.base.path={path}", "--", sys.executable, "-c", code)
    assert hudi_locks(*words, "-n", "--", "-p", "x")[0] == 0
    assert told.read_text() == "-n -- -p x"


def test_a_lock_that_is_held_is_a_status_of_its_own(hudi_locks: Run, path: str, manager: LockManager) -> None:
    with manager.lock():
        status, _, err = hudi_locks("run", path, "-p", "filesystem", "-n", "--", "false")
        assert (status, "it is held by nightly etl" in err) == (1, True)
        assert hudi_locks("run", path, "-p", "filesystem", "-w", "0.1", "-E", "9", "--", "false")[0] == 9
        other = LockScope.file_group("p", "f-0")
        assert hudi_locks("run", path, "-p", "filesystem", "-n", "--file-group", str(other), "--", "true")[0] == 0


@pytest.mark.parametrize(
    ("command", "status"),
    [(["no-such-command"], 127), (["/etc/hostname"], 126), (["sh", "-c", "kill -9 $$"], 137), ([], 2)],
    ids=["not-found", "no-program", "signalled", "none"],
)
def test_a_command_that_cannot_run_or_is_killed_has_the_status_that_shells_give(
    hudi_locks: Run, path: str, manager: LockManager, command: list[str], status: int
) -> None:
    assert hudi_locks("run", path, "-p", "filesystem", "--", *command)[0] == status
    assert manager.holder() is None


@pytest.mark.parametrize(("code", "grace"), [(OBEDIENT, "60"), (STUBBORN, "0.3")], ids=["obedient", "stubborn"])
def test_the_command_is_stopped_when_its_lock_is_lost(
    begin: Callable[..., subprocess.Popen[str]], manager: LockManager, code: str, grace: str
) -> None:
    running = begin(code, *QUICK, "--grace", grace)
    holder = manager.holder()
    assert holder is not None
    assert manager.break_if(holder.token)
    rest, _ = running.communicate(timeout=60)
    assert (running.returncode, rest) == (75, "tidied up\n" if code is OBEDIENT else "")


@pytest.mark.parametrize(
    ("tell", "number", "status"),
    [(os.kill, signal.SIGTERM, 143), (os.killpg, signal.SIGINT, 130)],
    ids=["scheduler", "terminal"],
)
def test_whoever_ends_it_ends_the_command_and_frees_the_lock(
    begin: Callable[..., subprocess.Popen[str]],
    manager: LockManager,
    tell: Callable[[int, int], None],
    number: signal.Signals,
    status: int,
) -> None:
    running = begin(OBEDIENT, "--grace", "60")
    tell(running.pid, number)
    rest, _ = running.communicate(timeout=60)
    assert (running.returncode, rest) == (status, "tidied up\n")
    assert manager.holder() is None


@pytest.mark.skipif(sys.platform != "linux", reason="unsupported: other kernels do not end a process with its parent")
def test_a_command_does_not_outlive_who_renews_its_lock(begin: Callable[..., subprocess.Popen[str]]) -> None:
    running = begin(STUBBORN)
    running.kill()
    rest, _ = running.communicate(timeout=60)  # its end of the pipe closes when the command is gone
    assert (running.returncode, rest) == (-signal.SIGKILL, "")


def test_a_folder_that_is_no_table_is_warned_about(hudi_locks: Run, tmp_path: Path) -> None:
    status, _, err = hudi_locks("run", str(tmp_path), "-p", "filesystem", "--", "true")
    assert status == 0
    assert f"warning: {tmp_path} holds no Hudi table" in err


def test_wait_ends_when_the_lock_is_free(hudi_locks: Run, path: str, manager: LockManager) -> None:
    words = ("wait", path, "-p", "filesystem")
    assert hudi_locks(*words) == (0, "", "")
    held = manager.lock()
    status, _, err = hudi_locks(*words, "-w", "0.1")
    assert (status, "held by nightly etl" in err) == (1, True)
    timer = threading.Timer(0.2, held.release)
    timer.start()
    assert hudi_locks(*words)[0] == 0
    timer.join()


def test_wait_takes_a_hold_that_ran_out_for_none(hudi_locks: Run, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = Holder("key", Owner("1", "host", 7, "main", "a job that died"), expires_in_ms=1)
    kind = load_provider_class("filesystem")
    monkeypatch.setattr(kind, "holder", lambda *_: holder)
    words = ("wait", path, "-p", "filesystem", "-w", "0")
    assert hudi_locks(*words)[0] == 1
    monkeypatch.setattr(kind, "holder", lambda *_: replace(holder, expires_in_ms=-1))
    assert hudi_locks(*words)[0] == 0


def test_wait_refuses_a_folder_that_is_no_table(hudi_locks: Run, tmp_path: Path) -> None:
    status, _, err = hudi_locks("wait", str(tmp_path), "-p", "filesystem")
    assert (status, "holds no Hudi table" in err) == (1, True)
