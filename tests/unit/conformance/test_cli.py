"""`hudi-locks conformance`: what it says and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_conformance import CHECKS, Harness, Level, Outcome, Status, runner, select_checks
from hudi_locks_conformance._output import exit_status
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Violation
from hudi_locks_conformance.cli import command
from json_checks import check_json

Run = Callable[..., tuple[int, str, str]]
BROKEN = "hudi_locks_conformance.broken:"


@pytest.fixture
def conformance(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            command(args=list(words))
        return (int(caught.value.code or 0), *capsys.readouterr())

    return run


def test_a_conformant_provider_ends_with_0(conformance: Run, tmp_path: Path) -> None:
    options = ("--provider", "filesystem", "--option", f"hoodie.write.lock.filesystem.path={tmp_path / 'locks'}")
    status, out, _ = conformance(*options, "--only", "A1,A2,C7,E1,E2,E5,I5,I6")
    assert status == 0
    assert "8 pass" not in out.splitlines()[3]
    assert "core     3 pass   0 fail" in out
    assert "lease    4 pass   0 fail   1 unsupported" in out
    assert "badge      hudi-locks " in out
    assert f" · no level · 0 failed\nnext       core: only 3 of its {len(select_checks())} checks" in out
    assert "verdict    CONFORMANT (core lease)" in out


def test_a_provider_that_is_not_atomic_ends_with_1_and_evidence(conformance: Run, tmp_path: Path) -> None:
    words = ("-p", f"{BROKEN}NotAtomic", "-o", f"folder={tmp_path / 'locks'}")
    status, out, _ = conformance(*words, "--only", "B2,A1", "--seed", "9")
    assert status == 1
    assert "FAIL  B2 threads-of-one-client" in out
    assert "why it matters  two writers would both complete instants" in out
    assert f"--option hoodie.sample.folder={tmp_path / 'locks'} --only B2 --seed 9" in out
    assert "verdict    NOT CONFORMANT" in out


def test_evidence_is_judged_again_to_the_same_end(conformance: Run, tmp_path: Path) -> None:
    words = ("-p", "noop", "--only", "B8", "--history", str(tmp_path / "out"))
    status, out, _ = conformance(*words)
    assert status == 1
    evidence = tmp_path / "out" / "B8.history.jsonl"
    assert f"--recheck {evidence}" in out
    status, out, _ = conformance("--recheck", str(evidence))
    assert status == 1
    assert "linearizable: False" in out
    assert (tmp_path / "out" / "B8.history.txt").read_text() in out
    assert "◀" in out
    assert (tmp_path / "out" / "B8.history.svg").read_text().startswith("<svg ")
    status, out, _ = conformance("--recheck", str(evidence), "--model", "mutex")
    assert (status, "(model mutex)" in out) == (1, True)


def test_checks_that_cannot_be_judged_end_with_3(conformance: Run) -> None:
    status, out, _ = conformance("-p", "noop", "--only", "C8,H2")
    assert status == 3
    assert "not-run     C8 record-is-what-holder-tells: the provider offers no hook 'peek'" in out
    assert "verdict    NOT JUDGED IN FULL" in out


def test_what_is_not_claimed_is_unsupported_and_no_fault(conformance: Run, tmp_path: Path) -> None:
    status, out, _ = conformance("-p", "in_process", "-o", f"path={tmp_path}", "--only", "E,B4,C2", "-v")
    assert status == 0
    assert "unsupported E1 dead-holder-frees-after-bound: LEASE is not claimed" in out
    assert "only exclusion among threads is claimed" in out


def test_an_unreachable_service_ends_with_4(conformance: Run) -> None:
    status, _, err = conformance("-p", f"{BROKEN}Unreachable", "-o", "folder=/nowhere")
    assert status == 4
    assert "cannot be reached" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-p", "noop", "--only", "Z9"), "names no check: Z9"),
        (("-p", "noop", "--level", "everything"), "--level"),
        (("--nonsense",), "nonsense"),
    ],
)
def test_a_wrong_command_line_ends_with_2(conformance: Run, words: tuple[str, ...], said: str) -> None:
    status, _, err = conformance(*words)
    assert status == 2
    assert said in err


def test_json_holds_every_check_and_no_secret(conformance: Run, tmp_path: Path) -> None:
    words = ("-p", "in_process", "-o", f"path={tmp_path}", "-o", "hoodie.aws.secret.key=abc", "--only", "A1,E1")
    status, out, _ = conformance(*words, "--json")
    told = check_json(["conformance"], out)
    assert status == told["exit"] == 0
    assert [(check["id"], check["status"]) for check in told["checks"]] == [("A1", "pass"), ("E1", "unsupported")]
    assert told["badge"]["level"] is None
    assert told["badge"]["failed"] == 0
    assert "abc" not in out


def test_list_names_every_check_or_those_of_the_level(conformance: Run) -> None:
    status, out, _ = conformance("--list", "--level", "fencing")
    assert status == 0
    assert len(out.splitlines()) == len(select_checks(Level.FENCING)) < len(CHECKS)
    status, out, _ = conformance("--list")
    assert status == 0
    assert len(out.splitlines()) == len(CHECKS)
    assert [line.split()[0] for line in out.splitlines()][:3] == ["A0", "A1", "A2"]


def test_a_fault_of_the_kit_itself_ends_with_70() -> None:
    check = CHECKS["A1"]
    assert exit_status([Outcome(check, Status.FAIL), Outcome(check, Status.ERROR)]) == 70
    assert exit_status([Outcome(check, Status.NOT_RUN), Outcome(check, Status.FAIL)]) == 1
    assert exit_status([Outcome(check, Status.PASS), Outcome(check, Status.UNSUPPORTED)]) == 0


def test_an_error_of_the_kit_is_told_from_one_of_the_provider(tmp_path: Path) -> None:
    def slip(bench: Any) -> None:
        raise KeyError("raised outside the kit")

    harness = Harness("in_process", {"hoodie.base.path": str(tmp_path)})
    check = replace(CHECKS["A1"], run=slip)
    assert runner.run_check(check, harness).status is Status.FAIL
    assert runner.run_check(replace(check, run=None), harness).status is Status.ERROR  # type: ignore[arg-type]


def test_what_a_check_found_is_not_hidden_by_a_clean_up_that_fails(tmp_path: Path) -> None:
    def find(bench: Bench) -> None:
        bench.stack.callback(int, "no number")
        raise Violation("two hold it")

    harness = Harness("in_process", {"hoodie.base.path": str(tmp_path)})
    outcome = runner.run_check(replace(CHECKS["A1"], run=find), harness)
    assert (outcome.status, outcome.message) == (Status.FAIL, "two hold it")


def test_ids_are_those_of_the_published_list() -> None:
    ids = [check.id for check in select_checks(Level.EXTRA)]
    wanted = [f"A{n}" for n in range(13)] + [f"B{n}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13)]
    wanted += [f"C{n}" for n in range(1, 12)] + [f"D{n}" for n in range(1, 10)] + [f"D10{c}" for c in "abcde"] + ["D11"]
    wanted += [f"E{n}" for n in range(1, 8)] + ["E8a", "E8b"] + [f"E{n}" for n in range(9, 19)]
    wanted += ["F1", "F2a", "F2b", "F2c", "F2d", "F2e", "F3", "F4", "F6", "F7", "F8"]
    failing = {"H3", "H4", "H6", "H7", "H9a", "H9b", "H9c", *(f"H{n}" for n in range(10, 16))}
    wanted += [f"G{n}" for n in range(1, 7)]
    wanted += sorted({"H1", "H2", "H5", "H8", *failing}, key=lambda word: (int(word[1:].rstrip("abc")), word))
    wanted += [f"I{n}" for n in range(1, 8)]
    wanted += ["J1", "J2", "J3a", "J3b", "J4", "J5", "J6", "J7", "J8", "J9"]
    wanted += [f"K{n}" for n in range(1, 12)] + [f"L{n}" for n in range(1, 10)]
    wanted += ["N1", "N2"]
    assert ids == wanted
    core = {check.id for check in select_checks(Level.CORE)}
    lease = {check_id for check_id in wanted if check_id[0] in "EI"} | {"B13", "J1"}
    extra = {"B10", "B11", "F7", "J3a", "J3b", "J4", "J7", "J8", "L9"}
    fencing = {"F1", "F2a", "F2b", "F2c", "F2d", "F2e", "F3", "F4", "F6", "F8"}
    assert set(wanted) - core == lease | fencing | extra | failing | {"N1", "N2", *(f"G{n}" for n in range(1, 7))}
    assert all(check.demand.endswith(".") and check.why for check in CHECKS.values())


def test_a_secret_of_the_providers_own_is_in_no_line(conformance: Run, tmp_path: Path) -> None:
    provider = "hudi_locks_conformance.broken.manners:ShowsItsPassword"
    own = ("-o", f"folder={tmp_path}", "-o", "hoodie.sample.entrance=sesame", "-o", "hoodie.sample.url=x://u:hunter2@h")
    for more in ((), ("--json",)):
        status, out, err = conformance("-p", provider, *own, "--only", "A11,H8,H5", "-v", *more)
        assert status == 1
        assert "hoodie.sample.entrance" in out
        assert "sesame" not in out + err
        assert "hunter2" not in out + err
