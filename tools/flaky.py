"""Runs tests many times over on a busy machine, in another order each time, and tells which of them fail now and then.

python -m flaky TEST... --times 20

Words after `--` are pytest's. Exit code 1 if any test failed in any run.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from test_run.reports import read_tests

_BUSY_LOOP = "while True: pass"


def main(words: Sequence[str]) -> int:
    """Run what the words ask for; 0 if no test failed."""
    at = words.index("--") if "--" in words else len(words)
    options = _parse(words[:at])
    failures: dict[str, list[int]] = defaultdict(list)
    with keep_busy(options.busy), tempfile.TemporaryDirectory() as folder:
        for seed in range(1, options.times + 1):
            log = Path(folder, f"{seed}.jsonl")
            for name in run_once([*options.tests, *words[at + 1 :]], seed, log):
                failures[name].append(seed)
    print(render_failures(failures, options.times))
    return 1 if failures else 0


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="flaky", description="which tests fail now and then?")
    parser.add_argument("tests", nargs="+", help="files, folders or node ids")
    parser.add_argument("--times", type=int, default=10, help="how many runs (10)")
    parser.add_argument("--busy", type=int, default=2, help="busy loops beside them (2)")
    return parser.parse_args(words)


@contextmanager
def keep_busy(count: int) -> Iterator[None]:
    """Loops that do nothing but take processor time, until the end of the block."""
    loops = [subprocess.Popen([sys.executable, "-S", "-c", _BUSY_LOOP]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def run_once(words: Sequence[str], seed: int, log: Path) -> list[str]:
    """Run the tests once; the names of those that failed, or what pytest itself complained of."""
    seeds = [f"--randomly-seed={seed}", f"--hypothesis-seed={seed}", f"--report-log={log}"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *seeds, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    failed = [name for name, test in read_tests(log).items() if test.outcome == "failed"]
    print(f"run {seed}: {(done.stdout.strip().splitlines() or ['no output'])[-1]}", flush=True)
    if done.returncode:
        print(done.stdout[-20_000:] + done.stderr[-4_000:], flush=True)
    return failed or ([f"pytest, exit code {done.returncode}"] if done.returncode else [])


def render_failures(failures: Mapping[str, Sequence[int]], times: int) -> str:
    """A line for each test that failed, the most frequent first, and how to repeat its first failure."""
    if not failures:
        return f"no failure in {times} runs"
    lines = [f"failed, of {times} runs:"]
    for name, count in Counter({name: len(seeds) for name, seeds in failures.items()}).most_common():
        lines.append(f"  {count:3} x {name}, seeds {', '.join(map(str, failures[name]))}")
        lines.append(f"        again: pytest --randomly-seed={failures[name][0]} {shlex.quote(name)}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
