"""Fetching the JVM bundle: once, whole, and with a reason where it cannot be had."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hudi_locks_conformance.servers import ServerUnavailable, fetch_bundle

NAME = "hudi-spark3.5-bundle_2.12-1.0.2.jar"


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    (tmp_path / "bin").mkdir()
    return tmp_path / "cache/hudi-locks/jars"


def make_maven(tmp_path: Path, *lines: str) -> Path:
    """A Maven that notes that it was called and then does as told; `$folder` is its output directory."""
    script = tmp_path / "bin/mvn"
    head = ["#!/bin/sh", f'echo called >>"{tmp_path}/calls"', 'for word in "$@"; do case "$word" in']
    head += ['-DoutputDirectory=*) folder="${word#*=}";; esac; done']
    script.write_text("\n".join([*head, *lines]) + "\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return tmp_path / "calls"


def test_it_is_fetched_once_and_appears_whole(jars: Path, tmp_path: Path) -> None:
    calls = make_maven(tmp_path, f'printf jar >"$folder/{NAME}"')
    assert fetch_bundle("1.0.2") == fetch_bundle("1.0.2") == jars / NAME
    assert (jars / NAME).read_text() == "jar"
    assert calls.read_text() == "called\n"
    assert [file.name for file in jars.iterdir()] == [NAME]


def test_a_second_process_that_fetched_it_meanwhile_does_no_harm(jars: Path, tmp_path: Path) -> None:
    make_maven(tmp_path, f'printf theirs >"{jars}/{NAME}"', f'printf ours >"$folder/{NAME}"')
    assert fetch_bundle("1.0.2").read_text() == "ours"
    assert [file.name for file in jars.iterdir()] == [NAME]


def test_a_failing_maven_is_quoted_and_leaves_nothing(jars: Path, tmp_path: Path) -> None:
    make_maven(tmp_path, "echo no route to host >&2", "exit 1")
    with pytest.raises(ServerUnavailable, match="no route to host") as caught:
        fetch_bundle("1.0.2")
    assert "hudi-spark3.5-bundle_2.12:1.0.2" in caught.value.command
    assert list(jars.iterdir()) == []


def test_without_maven_the_reason_names_the_command_that_installs_it(
    jars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(ServerUnavailable, match="apt-get install maven"):
        fetch_bundle("1.0.2")
    assert list(jars.iterdir()) == []
