"""The first engine: a sweep over the times of holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hudi_locks_conformance.history.record import History, Hold, Operation, group_by_process

__all__ = ["Overlap", "find_overlaps", "find_violations"]


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


def find_violations(history: History) -> list[Overlap]:
    """The overlaps that do harm.

    A lease cannot keep a paused process from waking up as a former holder. Where the history tells what holders
    believed and wrote, an overlap is harmful only if both of them believed in their lock while it lasted, or if a write
    of the earlier holder was taken after one of the later. Where it does not tell, every overlap is.
    """
    told = {
        process: [one for one in mine if one.f in ("check", "write") and one.type == "ok"]
        for process, mine in group_by_process(history.operations)
    }
    silent = not any(one.f in ("check", "write") for one in history.operations)
    return [one for one in find_overlaps(history) if silent or _is_harmful(one, told)]


def _is_harmful(overlap: Overlap, told: Mapping[str, Sequence[Operation]]) -> bool:
    since_ns, until_ns = overlap.second.begin_ns, min(overlap.first.end_ns, overlap.second.end_ns)
    earlier, later = _sort(overlap)
    believed = [
        any(one.f == "check" and since_ns < one.t_ns <= until_ns for one in told[hold.process])
        for hold in (earlier, later)
    ]
    return all(believed) or _is_overwritten(told[earlier.process], told[later.process], hold=earlier, since_ns=since_ns)


def _sort(overlap: Overlap) -> tuple[Hold, Hold]:
    """Who was granted it earlier: an answer may be read late, which tokens show."""
    first, second = overlap.first, overlap.second
    late = first.token is not None and second.token is not None and second.token < first.token
    return (second, first) if late else (first, second)


def _is_overwritten(earlier: Sequence[Operation], later: Sequence[Operation], *, hold: Hold, since_ns: int) -> bool:
    begun_ns = min((one.t_ns for one in later if one.f == "write" and one.t_ns >= since_ns), default=None)
    if begun_ns is None:
        return False
    return any(one.f == "write" and begun_ns < one.t_ns <= hold.end_ns for one in earlier)
