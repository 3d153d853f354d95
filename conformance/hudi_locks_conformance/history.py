"""What happened, operation by operation: written as JSON lines, judged by two engines, judged again at any time."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["History", "Hold", "Operation", "Overlap", "find_overlaps", "is_linearizable"]


@dataclass(frozen=True)
class Operation:
    """One event.

    Attributes:
        i: Number within its history.
        process: Who did it.
        f: acquire, release, renew or write.
        type: invoke, ok, fail (it did not happen) or info (it may have happened).
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
    """A time in which a process held the lock for certain: from its acquire's answer to its release's sending."""

    process: str
    number: int
    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class Overlap:
    """Two holds at one time."""

    first: Hold
    second: Hold

    @property
    def micros(self) -> float:
        """How long both held, in microseconds."""
        return (min(self.first.end_ns, self.second.end_ns) - self.second.begin_ns) / 1000

    def __str__(self) -> str:
        return (
            f"two holders for {self.micros / 1000:.3f} ms: {self.first.process} (hold {self.first.number}) and"
            f" {self.second.process} (hold {self.second.number})"
        )


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
            self._operations = [Operation(**{**asdict(one), "i": i}) for i, one in enumerate(merged)]

    @property
    def operations(self) -> Sequence[Operation]:
        """All events so far."""
        with self._lock:
            return tuple(self._operations)

    def holds(self) -> list[Hold]:
        """All holds that are certain; one without a release lasts until the last event."""
        operations = self.operations
        last_ns = max((operation.t_ns for operation in operations), default=0)
        holds: list[Hold] = []
        for process, mine in _by_process(operations):
            begins = [one.t_ns for one in mine if (one.f, one.type) == ("acquire", "ok")]
            ends = [one.t_ns for one in mine if (one.f, one.type) == ("release", "invoke")]
            pairs = itertools.zip_longest(begins, ends[: len(begins)], fillvalue=last_ns)
            holds += [Hold(process, number, begin, end) for number, (begin, end) in enumerate(pairs, 1)]
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


def _by_process(operations: Sequence[Operation]) -> list[tuple[str, list[Operation]]]:
    processes = dict.fromkeys(operation.process for operation in operations)
    return [(process, [one for one in operations if one.process == process]) for process in processes]


def find_overlaps(history: History) -> list[Overlap]:
    """Every hold that began while an earlier one had not ended, by one sweep over time."""
    overlaps: list[Overlap] = []
    latest: Hold | None = None
    for hold in history.holds():
        if latest is not None and hold.begin_ns < latest.end_ns:
            overlaps.append(Overlap(latest, hold))
        if latest is None or hold.end_ns > latest.end_ns:
            latest = hold
    return overlaps


@dataclass(frozen=True)
class _Call:
    """One call, with the span in which it took effect, if it did."""

    process: str
    f: str
    begin_ns: int
    end_ns: float
    certain: bool


def is_linearizable(history: History, budget: int = 200_000) -> bool | None:
    """Whether one order of acquires and releases explains the history; None if the search gave up.

    A call that ended with `info`, or not at all, may have happened at any time after it was sent, or never.
    """
    calls = _calls(history)
    seen: set[tuple[frozenset[int], str | None]] = set()
    stack: list[tuple[frozenset[int], str | None]] = [(frozenset(range(len(calls))), None)]
    while stack:
        state = stack.pop()
        left, holder = state
        if not any(calls[index].certain for index in left):
            return True
        if state in seen:
            continue
        seen.add(state)
        if len(seen) > budget:
            return None
        stack += _next_states(calls, left, holder)
    return False


def _next_states(
    calls: list[_Call], left: frozenset[int], holder: str | None
) -> list[tuple[frozenset[int], str | None]]:
    """All states one call further: any call that was sent before every certain remaining one had ended."""
    first_end_ns = min(calls[index].end_ns for index in left)
    states: list[tuple[frozenset[int], str | None]] = []
    for index in left:
        call = calls[index]
        if call.begin_ns > first_end_ns:
            continue
        if call.f == "acquire" and holder is None:
            states.append((left - {index}, call.process))
        elif call.f == "release" and holder == call.process:
            states.append((left - {index}, None))
    return states


def _calls(history: History) -> list[_Call]:
    calls: list[_Call] = []
    for process, mine in _by_process(history.operations):
        sent: Operation | None = None
        for one in [one for one in mine if one.f in ("acquire", "release")]:
            if one.type == "invoke":
                calls += [_Call(process, sent.f, sent.t_ns, float("inf"), certain=False)] if sent else []
                sent = one
            elif sent is not None:
                calls += _ended(process, sent, one)
                sent = None
        calls += [_Call(process, sent.f, sent.t_ns, float("inf"), certain=False)] if sent else []
    return calls


def _ended(process: str, sent: Operation, answer: Operation) -> list[_Call]:
    if answer.type == "fail":
        return []
    certain = answer.type == "ok"
    return [_Call(process, sent.f, sent.t_ns, answer.t_ns if certain else float("inf"), certain)]
