"""Which process gives a sign of life, and whether it can be proved from here that it gives none any more.

Nothing rests on it that an expired heartbeat would not allow as well: who is taken for dead too early is rolled back by
a claim, and meets that at its publish. It only saves those the wait who restart on the machine where their job died.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

__all__ = ["Beating"]

_NAMESPACES: Final = ("/proc/self/ns/pid", "/proc/self/ns/time")
_ZOMBIES: Final = ("Z", "X")
_STATE, _THREADS, _START = 0, 17, 19
_MOST_PID: Final = 2**31 - 1
_registry: Final = uuid.uuid4().hex
"""Names this copy of `_here`: a module that is loaded a second time does not know what beats by the first."""
_here: Final[set[str]] = set()
"""Ids of what beats in this process. A forked child has its parent's, and another process id."""


@dataclass(frozen=True)
class Beating:
    """Who keeps one heartbeat going; the content of its file, where JVM writers leave none.

    Attributes:
        host: Name of the machine.
        machine: Its boot and the namespaces of its process ids and of its time; "" where they are not to be had.
        pid: Process id.
        started: When the process started, in ticks since that boot, so that a process id is not taken for an older one.
        id: Of this heartbeat among all of the process.
    """

    host: str
    machine: str
    pid: int
    started: str
    id: str

    @classmethod
    def begin(cls) -> Beating:
        """One of this process, until `end`; to be begun before its file can be seen."""
        beating = cls(*_find_self(os.getpid()), f"{_registry}.{uuid.uuid4().hex}")
        _here.add(beating.id)
        return beating

    def end(self) -> None:
        """It beats no more, and nothing is published under it; quiet if it was ended before."""
        _here.discard(self.id)

    def encode(self) -> bytes:
        """The content of a heartbeat file."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes | None) -> Beating | None:
        """From a heartbeat file; None if it does not tell, as those of JVM writers, or cannot be of a process."""
        try:
            found = cls(**json.loads(data or b"{}"))
        except (ValueError, TypeError, RecursionError):
            return None
        texts = (found.host, found.machine, found.started, found.id)
        is_process = type(found.pid) is int and 0 < found.pid <= _MOST_PID
        return found if is_process and all(isinstance(text, str) for text in texts) else None

    @property
    def is_over(self) -> bool:
        """Whether its process is certainly gone, or has ended it; False if that cannot be told from here."""
        host, machine, pid, started = _find_self(os.getpid())
        if not self.machine or not self.started or (self.host, self.machine) != (host, machine):
            return False
        if (self.pid, self.started) == (pid, started):
            return self.id.startswith(_registry) and self.id not in _here
        return _is_gone(self.pid, self.started)


@lru_cache(maxsize=1)
def _find_self(pid: int) -> tuple[str, str, int, str]:
    stat = _read_stat(pid)
    return socket.gethostname(), _name_machine(), pid, stat[_START] if stat else ""


def _name_machine() -> str:
    """Processes of which this is equal see each other by their ids, and their starts by one clock."""
    try:
        if str(Path("/proc/self").readlink()) != str(os.getpid()):
            return ""
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        spaces = [path.readlink() for path in map(Path, _NAMESPACES) if os.path.lexists(path)]
    except OSError:
        return ""
    return " ".join([boot, *map(str, spaces)])


def _is_gone(pid: int, started: str) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it is there, and another user's
    stat = _read_stat(pid)
    if not stat:
        return False  # hidden from this user, or gone in this moment
    return stat[_START] != started or (stat[_STATE] in _ZOMBIES and int(stat[_THREADS]) <= 1)


def _read_stat(pid: int) -> Sequence[str]:
    """What the kernel says of a process, from its state on; its name, which may hold anything, stands before that."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    return text.rpartition(")")[2].split()
