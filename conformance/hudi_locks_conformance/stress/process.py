"""A contender seen from outside: its events, and what may be done to it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from typing import IO, Any, cast

from hudi_locks_conformance.storm import start_process
from hudi_locks_conformance.stress.plan import StressPlan

__all__ = ["ContenderProcess"]


class ContenderProcess:
    """A running contender of a stress run.

    Args:
        plan: Of the run.
        name: In the history.
        options: Beside those of the plan, and before them.

    Attributes:
        name: In the history.
        paused_until_s: When it goes on, if it is stopped.
    """

    def __init__(self, plan: StressPlan, name: str, options: Mapping[str, str]) -> None:
        scope, options = plan.scope, {**plan.options, **options}
        spec = json.dumps([name, plan.provider, options, scope.partition, scope.file_id, plan.seed])
        module = "hudi_locks_conformance.stress.contender"
        self._process: subprocess.Popen[str] = start_process(["-m", module, spec])
        self._rest = b""
        self.name = name
        self.paused_until_s: float | None = None
        os.set_blocking(self.output, False)

    @property
    def output(self) -> int:
        """The descriptor on which its events come."""
        return cast("IO[str]", self._process.stdout).fileno()

    def read(self) -> Iterator[dict[str, Any]]:
        """The events that are there; the last one may have been cut off by a kill."""
        with contextlib.suppress(BlockingIOError):  # nothing more is there for now
            while data := os.read(self.output, 65536):
                self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            yield json.loads(line)

    def answer(self, word: str) -> None:
        """Answer a write; quiet if it is dead by now."""
        with contextlib.suppress(BrokenPipeError):
            os.write(cast("IO[str]", self._process.stdin).fileno(), f"{word}\n".encode())

    def pause(self, until_s: float) -> None:
        """Stop it in its tracks."""
        self._process.send_signal(signal.SIGSTOP)
        self.paused_until_s = until_s

    def resume(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)
        self.paused_until_s = None

    def has_ended(self) -> bool:
        """Whether its process is over."""
        return self._process.poll() is not None

    def ask_to_end(self) -> None:
        """Let it end after its present hold."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.wait()

    def close(self) -> str:
        """End it in any case; the last that it complained of, the first time."""
        self.kill()
        if cast("IO[str]", self._process.stderr).closed:
            return ""
        errors = cast("IO[str]", self._process.stderr).read().strip().splitlines()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            cast("IO[str]", stream).close()
        return errors[-1] if errors else ""
