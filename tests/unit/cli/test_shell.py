"""The command line in a shell: version, completion, pipes, and what exit codes tell."""

from __future__ import annotations

import importlib.metadata
import os
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

from hudi_locks.errors import NoEffectWarning
from hudi_locks.lock import available_providers

Run = Callable[..., tuple[int, str, str]]
Complete = Callable[..., list[str]]
MAIN = "import sys; sys.argv[0] = 'hudi-locks'; from hudi_locks.cli import main; main()"
COMMANDS = {
    "clean",
    "cluster",
    "compact",
    "config",
    "conformance",
    "demo",
    "doctor",
    "explain",
    "ingest",
    "init",
    "providers",
    "restore",
    "savepoint",
    "serve",
    "show",
    "unlock",
}


def run_piped(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "TERM")}
    environment = {**kept, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    command = [sys.executable, "-c", MAIN, *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def complete(hudi_locks: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """What a shell offers in place of the last word."""

    def ask(*typed: str) -> list[str]:
        monkeypatch.setenv("_HUDI_LOCKS_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(("hudi-locks", *typed)))
        monkeypatch.setenv("COMP_CWORD", str(len(typed)))
        return hudi_locks()[1].split()

    return ask


def test_the_version_is_that_of_the_distribution(hudi_locks: Run) -> None:
    assert hudi_locks("--version") == (0, f"hudi-locks {importlib.metadata.version('hudi-locks')}\n", "")


def test_every_command_is_completed(complete: Complete) -> None:
    assert set(complete("")) >= COMMANDS
    assert complete("cl") == ["clean", "cluster"]


@pytest.mark.parametrize("command", sorted(COMMANDS - {"demo", "conformance"}))
def test_options_of_every_command_are_completed(complete: Complete, command: str) -> None:
    found = complete(command, "--")
    assert "--help" in found
    assert len(found) > 1


def test_names_of_providers_are_completed(complete: Complete) -> None:
    assert complete("show", "--provider", "") == list(available_providers())
    assert complete("doctor", "-p", "zoo") == ["zookeeper", "zookeeper_implicit"]


def test_piped_output_is_never_cut() -> None:
    """Without a terminal there is no width."""
    value = "v" * 300
    out = run_piped("config", "/t", "-p", "filesystem", "-o", f"hoodie.write.lock.app_id={value}").stdout
    [line] = [line for line in out.splitlines() if "app_id" in line]
    assert value in line
    listed = run_piped("providers").stdout.splitlines()
    assert len(listed) == 1 + len(available_providers())
    assert not any("…" in line for line in listed)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("-p", "filesystem"), 0),
        (("-p", "zookeeper"), 2),
        (("-p", "zookeeper", "-o", "url=h:1", "-o", "base_path=/l", "-o", "lock_key=k"), 0),
        (("-p", "storage"), 2),
        (("-p", "filesystem", "-o", "expire=soon"), 2),
        (("-p", "noop", "-o", "hoodie.write.concurrency.mode=optimistic_concurrency_control"), 2),
        (("-p", "filesystem", "-o", "hoodie.bulkinsert.sort.mode=GLOBAL_SORT"), 2),
        (("-p", "filesystem", "-o", "hoodie.index.bucket.engine=CONSISTENT_HASHING"), 0),
    ],
)
def test_the_status_of_config_tells_whether_the_options_would_be_accepted(
    hudi_locks: Run, words: tuple[str, ...], status: int
) -> None:
    found, out, err = hudi_locks("config", "/t", *words)
    assert found == status
    assert err.count("\n") == (1 if status else 0)
    assert bool(out) == (status == 0)


def test_config_warns_of_an_option_without_effect(hudi_locks: Run) -> None:
    with pytest.warns(NoEffectWarning, match=r"hoodie\.parquet\.compression\.ratio has no effect"):
        assert hudi_locks("config", "/t", "-p", "filesystem", "-o", "hoodie.parquet.compression.ratio=0.5")[0] == 0


def test_a_zookeeper_out_of_reach_is_one_line() -> None:
    """The lines that its library logs are off, unless the user's program sets up logging."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{free.getsockname()[1]}"
        options = {"url": where, "base_path": "/l", "lock_key": "k", "connection_timeout_ms": "300"}
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        done = run_piped("doctor", "-p", "zookeeper", *words)
        shown = run_piped("show", "-p", "zookeeper", *words)
    assert done.stderr == ""
    assert "could be reached" in done.stdout
    assert shown.returncode == 1
    assert shown.stderr.count("\n") == 1
    assert where in shown.stderr
