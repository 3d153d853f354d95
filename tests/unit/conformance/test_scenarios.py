"""What real users suffered: each row of the documentation names checks that exist, or says why none can."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hudi_locks_conformance import select_checks

DOCUMENT = Path(__file__).parents[3] / "docs" / "conformance.md"
CHECK_ID = re.compile(r"\b[A-N]\d+[a-h]?\b")
REASONS = ("not of", "the provider `", "as 50")


def read_rows() -> list[tuple[str, str]]:
    text = DOCUMENT.read_text().partition("## What real users suffered")[2]
    cells = [line.strip("|").split("|") for line in text.splitlines() if re.match(r"\| \d", line)]
    return [(row[0].strip(), row[-1].strip()) for row in cells]


def test_no_row_is_left_out() -> None:
    assert [number for number, _ in read_rows()] == [str(number) for number in range(1, 58)]


@pytest.mark.parametrize(("number", "judged"), read_rows())
def test_a_row_names_checks_that_exist_or_says_why_none_can(number: str, judged: str) -> None:
    named = CHECK_ID.findall(judged)
    assert named or judged.startswith(REASONS), number
    assert not named or select_checks(only=named)
