"""Which combinations of a test every run plays, where it need not play them all."""

from __future__ import annotations

from itertools import product

import pytest
from combinations import choose_combinations

NAMES = [f"tests/spark/test_writes.py::test_number_{number}" for number in range(200)]


@pytest.mark.parametrize(("count", "played"), [(1, 1), (2, 1), (4, 1), (5, 2), (7, 2), (8, 2), (9, 9), (41, 41)])
def test_few_are_played_of_few_and_tables_of_cases_whole(count: int, played: int) -> None:
    for name in NAMES:
        chosen = choose_combinations(name, count, most=8)
        assert len(set(chosen)) == len(chosen) == played
        assert set(chosen) <= set(range(count))


def test_two_of_eight_meet_every_value_of_three_parameters() -> None:
    combinations = list(product("ab", "cd", "ef"))
    for name in NAMES:
        values = {value for number in choose_combinations(name, 8, most=8) for value in combinations[number]}
        assert values == set("abcdef")


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_other_tests_play_other_combinations(count: int) -> None:
    assert {number for name in NAMES for number in choose_combinations(name, count, most=8)} == set(range(count))
