"""A writer process seen from outside: what it tells, and what may be done to it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from hudi_locks_conformance.storm import start_process

from soak.plan import WriterSpec

__all__ = ["WriterProcess"]


class WriterProcess:
    """A running writer.

    Attributes:
        spec: What it was told.
        paused_until_s: When it goes on, if it is stopped.
    """

    def __init__(self, spec: WriterSpec) -> None:
        self.spec = spec
        self.paused_until_s: float | None = None
        self._stopped_itself = False
        self._rest = b""
        self._process: subprocess.Popen[str] = start_process(["-m", "soak.writer", spec.encode()])
        os.set_blocking(self.output, False)
        os.set_blocking(cast("IO[str]", self._process.stderr).fileno(), False)

    @property
    def output(self) -> int:
        """The descriptor on which its events come."""
        return cast("IO[str]", self._process.stdout).fileno()

    @property
    def status(self) -> int | None:
        """Its exit status, minus the signal that killed it; None while it runs."""
        return self._process.poll()

    def read(self, now_s: float) -> Iterator[dict[str, Any]]:
        """The events that are there; the last one may have been cut off by a kill."""
        with contextlib.suppress(BlockingIOError):  # nothing more is there for now
            while data := os.read(self.output, 65536):
                self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            event = json.loads(line)
            self._watch(event, now_s)
            yield event

    def _watch(self, event: dict[str, Any], now_s: float) -> None:
        if event["event"] == "stops":
            self.paused_until_s, self._stopped_itself = now_s + event["for_s"], True
        elif event["event"] == "wakes":
            self.paused_until_s, self._stopped_itself = None, False

    def pause(self, until_s: float) -> None:
        """Stop it in its tracks."""
        self._process.send_signal(signal.SIGSTOP)
        self.paused_until_s = until_s

    def resume(self) -> None:
        """Let it go on; one that stopped itself may not have done so yet, and is told until it says that it woke."""
        self._process.send_signal(signal.SIGCONT)
        if not self._stopped_itself:
            self.paused_until_s = None

    def ask_to_end(self) -> None:
        """Let it end after its present attempt."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.wait()

    def drain(self, log: Path) -> None:
        """Move what it complained of to a file, so that it never waits for a reader."""
        with contextlib.suppress(BlockingIOError), log.open("ab") as file:  # nothing more is there for now
            while data := os.read(cast("IO[str]", self._process.stderr).fileno(), 65536):
                file.write(data)

    def close(self) -> None:
        """End it in any case."""
        self.kill()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            cast("IO[str]", stream).close()
