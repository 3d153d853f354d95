"""Capabilities that a class does not claim although a run shows them: a person may want to claim them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from hudi_locks import Capability, LockProvider
from hudi_locks_conformance.harness import Harness
from hudi_locks_conformance.history import History
from hudi_locks_conformance.storm import find_storms

__all__ = ["count_turns", "find_unclaimed"]

_ENOUGH: Final = 15
"""Holds, or grants, below which nothing is concluded."""
_APART_NS: Final = 5_000_000
"""Two that ask within this time have no order that others could know."""


def find_unclaimed(harness: Harness) -> Iterator[str]:
    """A sentence for each capability that the class could claim, as far as the storms of this run show it."""
    claims, histories = harness.claims, [storm.history for storm in find_storms(harness)]
    if Capability.FENCING not in claims and any(_have_growing_tokens(history) for history in histories):
        yield "FENCING is not claimed, but tokens grew from hold to hold of a storm: could be claimed"
    if Capability.FAIR not in claims and Capability.TIMED_WAIT in claims:
        for ordered, contested in map(count_turns, histories):
            if ordered == contested >= _ENOUGH:
                yield f"FAIR is not claimed, but {ordered} of {contested} grants were in order: could be claimed"
    if Capability.BREAK not in claims and harness.kind.break_if is not LockProvider.break_if:
        yield "BREAK is not claimed, but the class defines break_if: could be claimed"


def _have_growing_tokens(history: History) -> bool:
    tokens = [one.token for one in history.operations if (one.f, one.type) == ("acquire", "ok")]
    numbers = [token for token in tokens if token is not None]
    grows = all(after > before for before, after in itertools.pairwise(numbers))
    return len(numbers) == len(tokens) >= _ENOUGH and grows


def count_turns(history: History) -> tuple[int, int]:
    """How many grants went to whoever had waited longest, and how many there were for which that can be told."""
    waiting: dict[str, int] = {}
    ordered = contested = 0
    for one in [one for one in history.operations if one.f == "acquire"]:
        if one.type == "invoke":
            waiting[one.process] = one.t_ns
        else:
            asked_ns = waiting.pop(one.process, one.t_ns)
            if one.type == "ok" and _is_contested(asked_ns, waiting):
                contested += 1
                ordered += min(waiting.values()) > asked_ns - _APART_NS
    return ordered, contested


def _is_contested(asked_ns: int, waiting: dict[str, int]) -> bool:
    return any(abs(other_ns - asked_ns) > _APART_NS for other_ns in waiting.values())
