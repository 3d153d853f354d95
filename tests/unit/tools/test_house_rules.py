"""What makes a test red without a reason in the code is found before it does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
SLEEP = re.compile(r"(?:SystemClock\(\)|CLOCK|\btime|\basyncio)\.sleep\((?!0\))")
FIXED_PORT = re.compile(r"(?:127\.0\.0\.1|localhost):\d{4,}")
OWN = ("waiting.py", "test_house_rules.py")


def lines() -> Iterator[tuple[str, str]]:
    """Every line of the tests, with where it stands; soaks live in real time."""
    for file in sorted(TESTS.rglob("*.py")):
        if file.name not in OWN and "soak" not in file.parts:
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                yield f"{file.relative_to(TESTS)}:{number}", line


def test_no_test_waits_for_a_fixed_time() -> None:
    """`waiting.until` waits for what is to happen; where real time is the matter a comment says so."""
    assert [place for place, line in lines() if SLEEP.search(line) and "# real time:" not in line] == []


def test_no_test_listens_on_a_fixed_port() -> None:
    assert [place for place, line in lines() if FIXED_PORT.search(line)] == []


@pytest.mark.parametrize("line", ["SystemClock().sleep(1)", "    CLOCK.sleep(0.2)", "await asyncio.sleep(0.1)"])
def test_a_bare_sleep_is_found(line: str) -> None:
    assert SLEEP.search(line)


@pytest.mark.parametrize("line", ["clock.sleep(10)", "await asyncio.sleep(0)"])
def test_virtual_time_and_a_turn_of_the_event_loop_are_no_bare_sleep(line: str) -> None:
    assert not SLEEP.search(line)
