"""Run the parts, and say what came of them."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from test_run.plan import COVERAGE, Plan, read_plan
from test_run.reports import read_part, read_result
from test_run.summary import render_summary
from test_run.wheels import build_wheels

_ROOT = Path(__file__).parents[2]
_WORK = _ROOT / ".tox"
_MEASURED = _WORK / "coverage" / "data"
_NIGHTLY = {"HUDI_LOCKS_NIGHTLY": "1", "HUDI_LOCKS_HISTORIES": "1000", "HUDI_LOCKS_EXAMPLES": "thorough"}
_LITTLE_GB = {"quick": 4.0, "whole": 10.0, "nightly": 25.0}
"""With less on the disk a run of that kind may end in the middle; a whole one was measured."""


def main(words: Sequence[str]) -> int:
    """Run what the words ask for; 0 if all is well."""
    asked, extra = _split(words)
    options = _parse(asked)
    plan = read_plan(options.kind, options.part, measured=options.coverage)
    warn_of_full_disk(plan.kind)
    began_s = time.monotonic()
    told = run_tox(plan, extra, options.seed)
    parts = [read_part(name, told.get(name, {}), _log_of(name)) for name in plan.parts]
    print(render_summary(plan, parts, minutes=(time.monotonic() - began_s) / 60, seed=options.seed), flush=True)
    warn_of_full_disk("quick")
    return 0 if all(part.ok for part in parts) else 1


def warn_of_full_disk(kind: str) -> None:
    """Say in one line that a run of this kind may want for room, if it may; tests then fail in a hundred ways."""
    free_gb = shutil.disk_usage(_ROOT).free / 1e9
    if free_gb < _LITTLE_GB[kind]:
        print(f"WARNING: {free_gb:.1f} GB are free on the disk of {_ROOT}; a {kind} run wants {_LITTLE_GB[kind]:g} GB")


def _split(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Ours, and what follows `--`, which is pytest's."""
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run test", description="all that guards main, in about half an hour")
    kinds = parser.add_mutually_exclusive_group()
    parser.set_defaults(kind="whole")
    for kind, what in {"quick": "five minutes: a part of everything", "nightly": "hours: all there is"}.items():
        kinds.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind, help=what)
    parser.add_argument(
        "--seed", type=int, default=random.getrandbits(31), help="of the order of tests and what they draw"
    )
    parser.add_argument("--coverage", action="store_true", help="say at last which lines and branches ran; slower")
    parser.add_argument("part", nargs="*", help="only these; words after -- are pytest's")
    return parser.parse_args(words)


def run_tox(plan: Plan, extra: Sequence[str], seed: int) -> dict[str, Any]:
    """Run all parts; what tox tells of each."""
    result = _WORK / "result.json"
    for old in (result, *map(_log_of, plan.parts)):
        old.unlink(missing_ok=True)
    how = ["run-parallel", "-p", str(plan.side_by_side), "--parallel-no-spinner"] if len(plan.parts) > 1 else ["run"]
    tox = [sys.executable, "-m", "tox", *how, "--hashseed", str(seed), "--result-json", str(result)]
    print(f"{', '.join(plan.parts)}; seed {seed}", flush=True)
    environment = {**os.environ, "HUDI_LOCKS_SEED": str(seed), **(_NIGHTLY if plan.kind == "nightly" else {})}
    places = [os.environ.get("UV_FIND_LINKS", ""), str(build_wheels(plan.parts))]
    environment["UV_FIND_LINKS"] = ",".join(filter(None, places))
    if COVERAGE in plan.parts:
        shutil.rmtree(_MEASURED.parent, ignore_errors=True)
        _MEASURED.parent.mkdir(parents=True)
        environment |= {"COVERAGE_PROCESS_START": str(_ROOT / "pyproject.toml"), "COVERAGE_FILE": str(_MEASURED)}
    words = [*tox, "-e", ",".join(plan.parts), *(["--", *extra] if extra else [])]
    subprocess.run(words, cwd=_ROOT, env=environment, check=False)
    return read_result(result)


def _log_of(part: str) -> Path:
    return _WORK / f"{part}.jsonl"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
