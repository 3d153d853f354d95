"""A server as a process of this machine, on loopback, ended by the process id that was started."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hudi_locks import SystemClock
from hudi_locks_conformance.servers.cache import ServerUnavailable
from hudi_locks_conformance.servers.kind import Launch, ServerKind

__all__ = ["LocalProcess", "LocalServer", "started_processes"]

_POLL_S: Final = 0.05
_GRACE_S: Final = 10.0
_LOG_TAIL: Final = 1000
_started: Final[weakref.WeakSet[LocalProcess]] = weakref.WeakSet()


class LocalProcess:
    """A command that runs in the background, with a log, until it is told to end.

    Args:
        folder: Its working folder; the log goes to `log` there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        _started.add(self)
        atexit.register(self.end)

    @property
    def pid(self) -> int:
        """Its process id.

        Raises:
            ServerUnavailable: It does not run.
        """
        if self._process is None or not self.is_running():
            raise ServerUnavailable(f"the process of {self.folder} does not run: {self.log_tail()}")
        return self._process.pid

    def is_running(self) -> bool:
        """Whether it was started and has neither ended nor been told to."""
        return self._process is not None and self._process.poll() is None

    def was_started(self) -> bool:
        """Whether it was started and not told to end; it may have crashed."""
        return self._process is not None

    def start(self, launch: Launch) -> None:
        """Start it; returns at once."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  # our own words
                launch.words,
                cwd=self.folder,
                env=_environment(launch.env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it by `number`, after ten seconds by force; quiet if it ended already."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGCONT)
        process.send_signal(number)
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def log_tail(self, length: int = _LOG_TAIL) -> str:
        """The last characters of what it said."""
        log = self.folder / "log"
        return log.read_text(errors="replace")[-length:] if log.exists() else "it said nothing"


def started_processes() -> list[LocalProcess]:
    """All that were started here and not told to end, also those that crashed: for whoever wants to see their logs."""
    return sorted((one for one in _started if one.was_started()), key=lambda one: one.folder)


class LocalServer:
    """A server as a process. Use it as a context manager, or call `stop`.

    Args:
        kind: What to run.
        folder: Where its data lies; the same folder again finds it there.
        port: On loopback.
    """

    def __init__(self, kind: ServerKind, folder: Path, port: int) -> None:
        self.kind = kind
        self.folder = folder
        self.port = port
        self.process: LocalProcess = LocalProcess(folder)

    @property
    def options(self) -> dict[str, str]:
        """The keys with which its provider reaches it."""
        return self.kind.options(self.port)

    def start(self) -> None:
        """Start it, and return when it answers.

        Raises:
            ServerUnavailable: It ended, or does not answer in time; shows the end of its log.
        """
        self.process.start(self.kind.launch(self.folder, self.port))
        try:
            self.wait_until_ready()
        except BaseException:
            self.process.end(signal.SIGKILL)
            raise

    def wait_until_ready(self) -> None:
        """Return once it answers.

        Raises:
            ServerUnavailable: It ended, or does not answer in time.
        """
        clock = SystemClock()
        ends_s = clock.monotonic() + self.kind.patience_s
        while not self.kind.is_ready(self.port):
            pid = self.process.pid
            if clock.monotonic() > ends_s:
                raise ServerUnavailable(
                    f"{self.kind.name}, process {pid}, does not answer on port {self.port} after"
                    f" {self.kind.patience_s:.0f} s: {self.process.log_tail()}"
                )
            clock.sleep(_POLL_S)

    def stop(self) -> None:
        """End it in order."""
        self.process.end()

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.end(signal.SIGKILL)

    def restart(self) -> None:
        """Kill it and start it again on its data."""
        self.kill()
        self.start()

    def pause(self) -> None:
        """Stop it in its tracks, and return once it stands still; connections stay open."""
        self.process.send(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Let it go on."""
        self.process.send(signal.SIGCONT)

    def __enter__(self) -> LocalServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    """This process's, without proxies: a server on loopback asks nobody."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return {**kept, **extra}
