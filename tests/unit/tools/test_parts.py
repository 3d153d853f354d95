"""No unit test falls between the parts of a test run: what unit and wheel leave out, search runs."""

from __future__ import annotations

import re
from configparser import ConfigParser
from itertools import product
from pathlib import Path

import pytest
from test_run.plan import read_plan

ROOT = Path(__file__).parents[3]
SUITE = ROOT / "tests" / "unit"
PARTS = ("unit", "wheel", "search", "properties")
CHOICE = re.compile(r'-m "(.+?)"')
WORD = re.compile(r"\b(?!not\b|and\b|or\b)[a-z]+\b")


@pytest.fixture(scope="module")
def choices() -> dict[str, str]:
    """Which tests of tests/unit a part runs: pytest's expression of markers, from its command."""
    found = ConfigParser(interpolation=None)
    found.read_string((ROOT / "tox.ini").read_text(encoding="utf-8"))
    searching = found["markers"]["searching"]
    commands = {name: found[f"testenv:{name}"]["commands"] for name in PARTS}
    assert all("tests/unit" in command for command in commands.values())
    return {name: CHOICE.findall(text)[0].replace("{[markers]searching}", searching) for name, text in commands.items()}


def combine(expressions: dict[str, str]) -> list[tuple[dict[str, bool], set[str]]]:
    """For each combination of the markers that they name, which of the parts run a test that has it."""
    names = sorted({word for expression in expressions.values() for word in WORD.findall(expression)})
    marked = [dict(zip(names, has, strict=True)) for has in product((False, True), repeat=len(names))]
    return [(has, {part for part, words in expressions.items() if eval(words, {}, has)}) for has in marked]


def test_whatever_markers_a_test_has_some_part_runs_it(choices: dict[str, str]) -> None:
    for has, parts in combine(choices):
        assert {"wheel", "search"} & parts, has
        assert ("wheel" in parts) is ("unit" in parts), has
    assert {"wheel", "search"} <= set(read_plan("whole").parts)


def test_only_property_tests_run_twice(choices: dict[str, str]) -> None:
    """With few examples, and in the nightly run once more with many."""
    found = combine(choices)
    assert [has for has, parts in found if {"wheel", "search"} <= parts] == []
    again = [has for has, parts in found if "properties" in parts]
    assert again == [{name: name == "hypothesis" for name in has} for has in again]
    assert len(again) == 1
    assert "properties" in read_plan("nightly").parts


def test_markers_that_choose_are_declared(choices: dict[str, str], pytestconfig: pytest.Config) -> None:
    declared = {line.partition(":")[0] for line in pytestconfig.getini("markers")}
    assert {word for expression in choices.values() for word in WORD.findall(expression)} <= {*declared, "hypothesis"}


def test_no_unit_test_is_left_to_the_nightly_run() -> None:
    """That run has neither unit nor wheel: such a test would run nowhere."""
    mark = re.compile(r"\bmark\.nightly\b")
    files = [path for path in SUITE.rglob("test_*.py") if path != Path(__file__)]
    assert files
    assert [str(path) for path in files if mark.search(path.read_text(encoding="utf-8"))] == []


def test_a_marker_that_no_part_runs_is_found(choices: dict[str, str]) -> None:
    gap = {**choices, "wheel": f"({choices['wheel']}) and not slow"}
    assert any(not {"wheel", "search"} & parts for _, parts in combine(gap))
