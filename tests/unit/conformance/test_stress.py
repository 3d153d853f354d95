"""Contenders that are paused at random for as long as one likes: what is told, and how it ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from hudi_locks_conformance import Harness, History, NotRun
from hudi_locks_conformance.cli import command
from hudi_locks_conformance.sample import SampleLockProvider
from hudi_locks_conformance.stress import StressPlan, StressResult, render_result, run_stress, stress_values
from json_checks import check_json

from hudi_locks import LockScope

Stress = Callable[..., tuple[int, str]]


@pytest.fixture
def stress(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Stress:
    def run(provider: str, seconds: str, *more: str) -> tuple[int, str]:
        words = ["-p", provider, "-o", f"folder={tmp_path}/locks", "--history", f"{tmp_path}/out", "--processes", "2"]
        with pytest.raises(SystemExit) as ended:
            command(args=[*words, "--stress", seconds, "--seed", "5", *more])
        return int(ended.value.code or 0), capsys.readouterr().out

    return run


@pytest.mark.verdicts
def test_a_sound_provider_stands_it(stress: Stress) -> None:
    status, out = stress("hudi_locks_conformance.sample:SampleLockProvider", "0.3")
    assert status == 0, out
    assert "2 processes   seed 5" in out
    assert "overlaps   0 harmful of 0" in out
    assert out.endswith("verdict    CONFORMANT (stress)\n")


@pytest.mark.verdicts
def test_a_lock_that_is_not_atomic_is_found_and_the_history_is_kept(stress: Stress, tmp_path: Path) -> None:
    status, out = stress("hudi_locks_conformance.broken:GrantsAlways", "0.3")
    assert status == 1, out
    assert "FAIL  two holders for" in out
    assert "verdict    NOT CONFORMANT (stress)" in out
    assert (tmp_path / "out" / "stress.history.jsonl").stat().st_size
    assert "two holders" in (tmp_path / "out" / "stress.history.txt").read_text()


@pytest.mark.verdicts
def test_a_run_is_told_as_one_json_object(stress: Stress, tmp_path: Path) -> None:
    file = tmp_path / "out" / "stress.json"
    _, out = stress("hudi_locks_conformance.sample:SampleLockProvider", "0.3", "--json", "--json-file", str(file))
    told = check_json(["conformance"], out)
    assert (told["ok"], told["processes"], told["harmful"], told["link"]) == (True, 2, [], {})
    assert told["holds"] > 0
    assert json.loads(file.read_text()) == told


def test_a_provider_that_contenders_cannot_import_is_said_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here_only = ModuleType("here_only")
    vars(here_only)["Sample"] = type("Sample", (SampleLockProvider,), {"__module__": "here_only"})
    monkeypatch.setitem(sys.modules, "here_only", here_only)
    with pytest.raises(NotRun, match="cannot import the provider"):
        run_stress(Harness("here_only:Sample", {"hoodie.sample.folder": str(tmp_path)}, contenders=2), 5)


def test_threads_alone_cannot_be_stressed(tmp_path: Path) -> None:
    with pytest.raises(NotRun, match="needs processes"):
        run_stress(Harness("in_process", {"hoodie.base.path": str(tmp_path)}), 1)


def result(history: History) -> StressResult:
    scope = LockScope.file_group("conformance/stress", "x")
    plan = StressPlan(
        "any", {}, scope, contenders=2, duration_s=10, seed=1, lease_s=2.0, longest_pause_s=3, kills=True, fenced=True
    )
    return StressResult(plan, history, kills=[4.0], pauses=[0.5, 1.0])


def test_what_is_told_of_a_run() -> None:
    history = History()
    for token, (name, begin_s, end_s) in enumerate([("a", 1.0, 2.0), ("b", 2.002, 3.0), ("a", 3.5, 4.0)], 7):
        history.add(name, "acquire", "invoke", t_s=begin_s - 0.5)
        history.add(name, "acquire", "ok", t_s=begin_s, token=token)
        history.add(name, "release", "invoke", t_s=end_s, token=token)
    history.add("b", "write", "fail", t_s=5, token=8)
    lines = render_result(result(history)).splitlines()
    assert lines == [
        "stress     10 s   2 processes   seed 1   lease 2.0 s   2 pauses   1 kills",
        "holds      3   0.3/s",
        "hand-over  median 251.0 ms   worst 500 ms",
        "overlaps   0 harmful of 0   0 losses noticed   1 late writes refused",
        "verdict    CONFORMANT (stress)",
    ]


def test_a_link_that_broke_is_told() -> None:
    broken = replace(result(History()), broken=("cut", "slow", "cut"))
    assert "link       2 x cut   1 x slow" in render_result(broken)
    assert stress_values(broken)["link"] == {"cut": 2, "slow": 1}


def test_a_token_that_two_holds_had_is_a_violation() -> None:
    history = History()
    for name, begin_s in (("a", 1.0), ("b", 2.0)):
        history.add(name, "acquire", "ok", t_s=begin_s, token=3)
        history.add(name, "release", "invoke", t_s=begin_s + 0.5)
    assert result(history).ok is False
    assert "FAIL  token 3 was given to more than one hold" in render_result(result(history))


def test_a_run_without_holds_is_not_judged() -> None:
    assert result(History()).ok is None
    assert "NOT JUDGED: nobody held the lock" in render_result(result(History()))
