"""A process that takes a lock, keeps it, and answers whether it still believes that it holds it.

Run as `python -m hudi_locks_conformance.holder SPEC`, SPEC being JSON: provider, options, partition, file id. It prints
`HELD` when it holds; then for each line that it reads, `HELD` or `LOST` with the reason.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from typing import IO, Final, cast

from hudi_locks import LockLost, LockManager, LockScope
from hudi_locks.lock import Held
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Late
from hudi_locks_conformance.storm import explain_failure, start_process

__all__ = ["HolderProcess"]

_PATIENCE_S: Final = 30.0
_START_S: Final = 90.0


class HolderProcess:
    """Another process that holds a lock. A context manager that ends it."""

    def __init__(self, bench: Bench, options: dict[str, str], scope: LockScope) -> None:
        spec = json.dumps([bench.harness.name, options, scope.partition, scope.file_id])
        self._process: subprocess.Popen[str] = start_process(["-m", "hudi_locks_conformance.holder", spec])
        self._read()

    def ask(self) -> str:
        """What it believes: `HELD`, or `LOST` with the reason."""
        print("?", file=self._process.stdin, flush=True)
        return self._read()

    def _read(self) -> str:
        stdout = cast("IO[str]", self._process.stdout)
        ready, _, _ = select.select([stdout], [], [], _START_S)
        said = stdout.readline().strip() if ready else ""
        if not said:
            self.end()
            raise self._explain()
        return said

    def _explain(self) -> Exception:
        errors = self._process.stderr.read() if self._process.stderr else ""
        if not errors.strip():
            return Late(f"a process that was to hold the lock said nothing within {_START_S:.0f} s")
        return explain_failure(errors)

    def pause(self) -> None:
        """Stop it in its tracks, all of its threads."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """Kill it: nothing of it runs any more."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> HolderProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


def _tell(held: Held) -> str:
    try:
        held.check()
    except LockLost as error:
        return f"LOST {error.facts['reason'].name}"
    return "HELD"


def main(arguments: list[str]) -> None:
    """Hold and answer until the input ends."""
    provider, options, partition, file_id = json.loads(arguments[0])
    held = LockManager(provider, options).lock(LockScope(partition, file_id), timeout_s=_PATIENCE_S)
    print("HELD", flush=True)  # noqa: T201  # the protocol with the parent
    for _ in sys.stdin:
        print(_tell(held), flush=True)  # noqa: T201  # as above
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
