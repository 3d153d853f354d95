"""A test shows what each honoured key does: one that gives it, outside this folder, where keys are only looked up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from hudi_locks.config import KEYS

TESTS = Path(__file__).parents[2]
HERE = Path(__file__).parent
SUITES = ("unit", "spark", "servers")
HONOURED = [key.name for key in KEYS.values() if key.effect == "honoured"]


def read_given(source: str) -> set[str]:
    """The names that a module gives: a text of its own, the left side of `name=value`; `a__b` stands for `a.b`.

    A name within a sentence, such as a message that is expected, is none.
    """
    return {name for node in ast.walk(ast.parse(source)) for name in _names(node)}


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from (line.partition("=")[0].strip().replace("__", ".") for line in node.value.splitlines())
    if isinstance(node, ast.keyword) and node.arg:
        yield node.arg.replace("__", ".")


@cache
def find_given() -> frozenset[str]:
    modules = [path for suite in SUITES for path in (TESTS / suite).rglob("*.py") if HERE not in path.parents]
    sources = [path.read_text(encoding="utf-8") for path in modules]
    return frozenset(
        name for source in sources if "hoodie" in source or "hudi_locks." in source for name in read_given(source)
    )


@pytest.mark.parametrize("name", HONOURED)
def test_a_test_gives_each_honoured_key(name: str) -> None:
    assert name in find_given(), "write a test that gives it another value than the default and shows what that does"


def test_a_key_that_is_only_spoken_of_is_not_given() -> None:
    source = 'it(match="a.b is wrong")\n# a.c\ngive({"a.d": 1}, "a.e=2", **known, a__f=3)\nx = """\na.g=4\n"""'
    given = read_given(source)
    assert {"a.d", "a.e", "a.f", "a.g"} <= given
    assert not {"a.b", "a.c"} & given
