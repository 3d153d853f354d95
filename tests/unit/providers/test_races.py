"""Real processes contend for one lock file; two detectors look for overlaps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WORKER = """
import os, sys
from hudi_locks import LockManager
folder, rounds = sys.argv[1], int(sys.argv[2])
counter, inside = os.path.join(folder, "counter"), os.path.join(folder, "inside")
options = {
    "hoodie.write.lock.provider": "filesystem",
    "hoodie.write.lock.filesystem.path": os.path.join(folder, "locks"),
    "hoodie.write.lock.wait_time_ms_between_retry": 1,
    "hoodie.write.lock.max_wait_time_ms_between_retry": 3,
    "hoodie.write.lock.num_retries": 100000,
}
with LockManager.from_options(options) as manager:
    for _ in range(rounds):
        with manager.lock() as held:
            os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
            with open(counter) as file:
                seen = int(file.read())
            with open(counter, "w") as file:
                file.write(str(seen + 1))
            os.unlink(inside)
            print(held.token)
"""


def test_processes_lose_no_update_and_tokens_are_unique(tmp_path: Path) -> None:
    (tmp_path / "counter").write_text("0")
    processes, rounds = 4, 40
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(tmp_path), str(rounds)], stdout=subprocess.PIPE, text=True, env=env
        )
        for _ in range(processes)
    ]
    printed = [process.communicate(timeout=60)[0] for process in running]
    assert [process.returncode for process in running] == [0] * processes
    assert (tmp_path / "counter").read_text() == str(processes * rounds)
    tokens = [[int(token) for token in text.split()] for text in printed]
    assert all(mine == sorted(mine) for mine in tokens)
    assert len({token for mine in tokens for token in mine}) == processes * rounds
