"""What a reader of changes is shown while an earlier write is still pending."""

from __future__ import annotations

import pytest

from hudi_locks.errors import TableError
from hudi_locks.format import Instant, State
from hudi_locks.timeline import LAYOUT_2, Timeline, end_before_holes


def at(second: int) -> str:
    return f"202311142213{second:02d}000"


def completed(requested: int, completion: int) -> Instant:
    return Instant(at(requested), "commit", State.COMPLETED, at(completion))


def timeline(*instants: Instant) -> Timeline:
    return Timeline(LAYOUT_2, tuple(sorted(instants)))


PENDING = Instant(at(20), "commit", State.INFLIGHT)
BEFORE, BESIDE, BEHIND, LAST = completed(10, 15), completed(18, 40), completed(25, 30), completed(31, 50)
HOLLOW = timeline(PENDING, BEFORE, BESIDE, BEHIND, LAST)


@pytest.mark.parametrize(
    ("policy", "begin", "end", "shown"),
    [
        ("USE_TRANSITION_TIME", "0", None, [BEFORE, BEHIND, BESIDE, LAST]),
        ("BLOCK", "0", None, [BEFORE]),
        ("BLOCK", "0", at(29), [BEFORE]),
        ("BLOCK", at(15), None, []),
        ("FAIL", "0", at(29), [BEFORE]),
    ],
)
def test_what_is_shown(policy: str, begin: str, end: str | None, shown: list[Instant]) -> None:
    """BLOCK holds back all that completed after the first that is held back: the next span begins where this ends."""
    limit = end_before_holes(HOLLOW, begin=begin, end=end, policy=policy)
    assert list(HOLLOW.completed_between(begin, limit)) == shown


def test_once_the_pending_write_is_done_the_rest_is_shown_in_the_order_of_completion() -> None:
    done = timeline(completed(20, 55), BEFORE, BESIDE, BEHIND, LAST)
    for policy in ("BLOCK", "FAIL", "USE_TRANSITION_TIME"):
        assert end_before_holes(done, begin=at(15), end=None, policy=policy) is None
    assert [i.completion for i in done.completed_between(at(15))] == [at(30), at(40), at(50), at(55)]


def test_fail_names_both_and_the_ways_out() -> None:
    with pytest.raises(TableError, match="by which nothing is missed, or BLOCK") as caught:
        end_before_holes(HOLLOW, begin="0", end=None, policy="FAIL")
    assert (caught.value.pending, caught.value.completed) == (PENDING.requested, BEHIND.requested)


@pytest.mark.parametrize("action", ["clustering", "compaction"])
def test_table_services_hold_nothing_back(action: str) -> None:
    found = timeline(Instant(at(20), action, State.INFLIGHT), BEHIND)
    assert end_before_holes(found, begin="0", end=None, policy="BLOCK") is None
