"""What a lock service needs before the first writer, found or made from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hudi_locks_providers.noop import NoopLockProvider

from hudi_locks import BackendUnavailable, LockManager
from hudi_locks.lock import SetupStep, SetupTerms
from hudi_locks.storage import open_storage
from hudi_locks.table import Table, TableConfig

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "all locks" / "trips"


def outcomes(out: str) -> list[tuple[str, str]]:
    return [(step["name"], step["outcome"]) for step in json.loads(out)]


def test_a_folder_is_made_once(hudi_locks: Run, folder: Path) -> None:
    words = ("init", "-p", "filesystem", "-o", f"path={folder}", "--json")
    status, out, err = hudi_locks(*words)
    assert (status, outcomes(out), err) == (0, [("lock-folder", "made")], "")
    assert folder.is_dir()
    status, out, _ = hudi_locks(*words)
    assert (status, outcomes(out)) == (0, [("lock-folder", "there")])
    with LockManager("filesystem", {"hoodie.write.lock.filesystem.path": str(folder)}) as manager:
        manager.lock().release()


def test_a_dry_run_makes_nothing_and_tells_by_its_status(hudi_locks: Run, folder: Path) -> None:
    words = ("init", "-p", "filesystem", "-o", f"path={folder}", "--dry-run")
    status, out, _ = hudi_locks(*words)
    assert status == 3
    assert "to make" in out
    assert str(folder) in out
    assert not folder.exists()
    folder.mkdir(parents=True)
    assert hudi_locks(*words)[0] == 0


def test_the_folder_of_a_table_comes_with_the_table(hudi_locks: Run, tmp_path: Path) -> None:
    """JVM writers take a path with `.hoodie` in it for a table."""
    base = str(tmp_path / "t")
    for more in ((), ("-o", f"path={base}/.hoodie/locks")):
        status, out, _ = hudi_locks("init", base, "-p", "filesystem", *more, "--json")
        assert (status, outcomes(out)) == (0, [("lock-folder", "not needed")])
    assert not Path(base).exists()
    Table.create(open_storage(base), TableConfig("t", ("id",)))
    status, out, _ = hudi_locks("init", base, "-p", "filesystem", "--json")
    assert (status, outcomes(out)) == (0, [("lock-folder", "there")])


def test_what_cannot_be_made_is_told_with_the_reason(hudi_locks: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    status, out, err = hudi_locks("init", "-p", "filesystem", "-o", f"path={tmp_path}/file/locks", "--json")
    [step] = json.loads(out)
    assert (status, step["name"], step["outcome"], err) == (1, "reached", "failed", "")
    assert "Not a directory" in step["found"]


def test_a_provider_without_needs_says_so(hudi_locks: Run) -> None:
    assert hudi_locks("init", "-p", "noop") == (0, "this lock provider needs nothing to be made\n", "")
    assert hudi_locks("init", "-p", "noop", "--json") == (0, "[]\n", "")


def test_both_locks_of_a_chain_are_seen_to(hudi_locks: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = f"memory://init-{folder.parents[1].name}/t"
    words = ("-p", "chain", "-o", "providers=storage,filesystem", "-o", f"hoodie.write.lock.filesystem.path={folder}")
    status, out, _ = hudi_locks("init", "-o", f"hoodie.base.path={base}", *words, "--json")
    assert (status, outcomes(out)) == (0, [("storage: bucket", "there"), ("filesystem: lock-folder", "made")])
    monkeypatch.setattr("hudi_locks_providers.storage.StorageLockProvider.set_up", Deaf.set_up)
    status, out, _ = hudi_locks("init", "-o", f"hoodie.base.path={base}", *words, "--json")
    assert (status, outcomes(out)) == (1, [("storage: reached", "failed"), ("filesystem: lock-folder", "there")])


class Deaf(NoopLockProvider):
    def set_up(self, terms: SetupTerms) -> tuple[SetupStep, ...]:
        raise BackendUnavailable("nobody answers")


class Stranger(NoopLockProvider):
    """Of somebody else, with a step of its own and an advice."""

    def set_up(self, terms: SetupTerms) -> tuple[SetupStep, ...]:
        made = SetupStep.to_make("rows", "a table") if terms.dry_run else SetupStep.made("rows", "a table")
        return (made, SetupStep.advised("backup", "none", "make one a day"))


def test_a_provider_of_somebody_else_may_have_steps(hudi_locks: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NoopLockProvider, "set_up", Stranger.set_up)
    status, out, _ = hudi_locks("init", "-p", "noop")
    assert status == 0
    assert "→ make one a day" in out
    assert hudi_locks("init", "-p", "noop", "--dry-run")[0] == 3
    monkeypatch.setattr(NoopLockProvider, "set_up", Deaf.set_up)
    status, out, _ = hudi_locks("init", "-p", "noop")
    assert status == 1
    assert "nobody answers" in out


def test_wrong_options_are_a_wrong_command_line(hudi_locks: Run) -> None:
    status, out, err = hudi_locks("init", "/t", "-p", "zookeeper")
    assert (status, out) == (2, "")
    assert "hoodie.write.lock.zookeeper.url is required" in err
