"""The record itself: operations, and the holds that they make up."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

__all__ = ["History", "Hold", "Operation", "group_by_process"]

_ENDS: Final = frozenset({("release", "invoke"), ("check", "fail")})


@dataclass(frozen=True)
class Operation:
    """One event.

    Attributes:
        i: Number within its history.
        process: Who did it.
        f: acquire, release, renew, write to what the lock protects, or check, which asks the holder what it believes.
        type: invoke, ok, fail (it did not happen; of a check: it knows that the lock is lost) or info (it may have
            happened).
        t_ns: When, on the system's monotonic clock.
        token: Fencing token, if there is one.
        error: What was raised.
    """

    i: int
    process: str
    f: str
    type: str
    t_ns: int
    token: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class Hold:
    """A time in which a process held the lock for certain, or believed so.

    It begins with the answer to its acquire, and ends when its release is sent or a check says that it is lost.
    """

    process: str
    number: int
    begin_ns: int
    end_ns: int
    token: int | None = None


class History:
    """A list of operations. Thread-safe."""

    def __init__(self, operations: Iterable[Operation] = ()) -> None:
        self._lock = threading.Lock()
        self._operations = list(operations)

    def add(
        self, process: str, f: str, kind: str, *, t_s: float, token: int | None = None, error: str | None = None
    ) -> None:
        """Append one event."""
        with self._lock:
            self._operations.append(Operation(len(self._operations), process, f, kind, round(t_s * 1e9), token, error))

    def merge(self, others: Iterable[Operation]) -> None:
        """Take in events recorded elsewhere, in the order of their times."""
        with self._lock:
            merged = sorted([*self._operations, *others], key=lambda operation: operation.t_ns)
            self._operations = [replace(one, i=i) for i, one in enumerate(merged)]

    @property
    def operations(self) -> Sequence[Operation]:
        """All events so far."""
        with self._lock:
            return tuple(self._operations)

    def without_tokens(self) -> History:
        """The same of a lock whose tokens mean nothing."""
        return History(replace(one, token=None) for one in self.operations)

    def holds(self) -> list[Hold]:
        """All holds that are certain; one without a release outlasts the last event."""
        operations = self.operations
        last_ns = max((operation.t_ns for operation in operations), default=0) + 1
        holds = [hold for process, mine in group_by_process(operations) for hold in _pair(process, mine, last_ns)]
        return sorted(holds, key=lambda hold: hold.begin_ns)

    def dump(self, path: Path) -> None:
        """Write as JSON lines."""
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = (json.dumps({k: v for k, v in asdict(one).items() if v is not None}) for one in self.operations)
        path.write_text("".join(f"{line}\n" for line in lines))

    @classmethod
    def load(cls, path: Path) -> History:
        """Read what `dump` wrote.

        Raises:
            ValueError: A line is no operation; it is named.
        """
        lines = enumerate(path.read_text().splitlines(), 1)
        return cls(_parse(line, f"{path}:{number}") for number, line in lines)


def _parse(line: str, where: str) -> Operation:
    try:
        return Operation(**json.loads(line))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where} is no operation: {error}") from error


def _pair(process: str, mine: Sequence[Operation], last_ns: int) -> Iterator[Hold]:
    """The holds of one process; what it acquires while it holds is the same hold."""
    depth, number, first = 0, 0, None
    for one in mine:
        if (one.f, one.type) == ("acquire", "ok"):
            first = first if depth else one
            depth += 1
        elif first is not None and depth and (one.f, one.type) in _ENDS:
            depth = depth - 1 if one.f == "release" else 0
            if not depth:
                number += 1
                yield Hold(process, number, first.t_ns, one.t_ns, first.token)
    if first is not None and depth:
        yield Hold(process, number + 1, first.t_ns, last_ns, first.token)


def group_by_process(operations: Sequence[Operation]) -> list[tuple[str, list[Operation]]]:
    """Each process with its operations, in the order of their first."""
    processes = dict.fromkeys(operation.process for operation in operations)
    return [(process, [one for one in operations if one.process == process]) for process in processes]
