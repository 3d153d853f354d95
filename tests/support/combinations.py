"""Which combinations of a test's parameters every run plays; the nightly run plays them all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from zlib import crc32

import pytest

_FEW = 4


def leave_combinations(items: Iterable[pytest.Item], *, most: int = 12) -> None:
    """Mark as nightly what every run can do without: all but one of up to four combinations, and two of more.

    Two are opposite ones: a test of two kinds of table, two indexes and two releases meets each of the
    six. Which one it is follows from the test's name: other tests of the same parameters play others.

    Args:
        items: Tests.
        most: A test with more of them is a table of short cases, and every run plays it whole.
    """
    played = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("nightly"):
            played[item.nodeid.partition("[")[0]].append(item)
    for name, combinations in played.items():
        kept = choose_combinations(name, len(combinations), most=most)
        for number, item in enumerate(sorted(combinations, key=lambda item: item.name)):
            if number not in kept:
                item.add_marker(pytest.mark.nightly)


def choose_combinations(name: str, count: int, *, most: int) -> Sequence[int]:
    """The numbers of those that are played, of `count` combinations of the test of that name."""
    if count > most:
        return range(count)
    one = crc32(name.encode()) % count
    return (one,) if count <= _FEW else (one, count - 1 - one if 2 * one != count - 1 else 0)
