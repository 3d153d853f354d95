"""How much code an operation passes through is counted rightly, and does not grow."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from flow import FLOWS, LIMITS, SPARK_FLOWS, Limit, Passage, measure, measure_flow

SOURCE = """
import threading

def outer():
    return sorted([inner(n) for n in (1, 2)], key=lambda n: -n)

def inner(n):
    return next(numbers(n))

def numbers(n):
    yield n

def elsewhere():
    thread = threading.Thread(target=outer)
    thread.start()
    thread.join()

def fail():
    raise ValueError("not today")
"""
IMPORTING = """
import importlib

def load(name):
    return importlib.import_module(name)
"""
AT_IMPORT = """
def prepare():
    return 1

VALUE = prepare()
"""


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str, str], ModuleType]:
    """Makes a module of a package of its own."""

    def make(name: str, source: str) -> ModuleType:
        file = tmp_path / f"{name}.py"
        file.write_text(source)
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return make


@pytest.mark.parametrize("name", FLOWS)
def test_a_flow_stays_within_its_limit(name: str, tmp_path: Path) -> None:
    found = measure_flow(FLOWS[name](tmp_path / "table"))
    assert LIMITS[name].find_excess(found) == ""
    assert found.files > 5, "it measures something"


def test_every_flow_has_a_limit() -> None:
    assert {*FLOWS, *SPARK_FLOWS} == set(LIMITS)


def test_lambdas_and_generators_count_and_comprehensions_do_not(
    load: Callable[[str, str], ModuleType], tmp_path: Path
) -> None:
    module = load("calls", SOURCE)
    assert measure(module.outer, tmp_path) == Passage(files=1, functions=4, depth=3)


def test_other_threads_and_other_folders_do_not_count(load: Callable[[str, str], ModuleType], tmp_path: Path) -> None:
    module = load("calls", SOURCE)
    assert measure(module.elsewhere, tmp_path) == Passage(1, 1, 1)
    assert measure(module.outer, tmp_path / "other") == Passage(0, 0, 0)


def test_what_runs_while_a_module_is_imported_does_not_count(
    load: Callable[[str, str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "imported_by_flow.py").write_text(AT_IMPORT)
    importing = load("importing", IMPORTING)
    assert measure(lambda: importing.load("imported_by_flow"), tmp_path) == Passage(1, 1, 1)


def test_an_error_ends_the_measurement_and_is_passed_on(load: Callable[[str, str], ModuleType], tmp_path: Path) -> None:
    before = sys.getprofile()
    with pytest.raises(ValueError, match="not today"):
        measure(load("calls", SOURCE).fail, tmp_path)
    assert sys.getprofile() is before


def test_what_is_over_a_limit_is_named() -> None:
    limit = Limit(Passage(10, 20, 5), aim_files=5)
    assert limit.find_excess(Passage(10, 20, 5)) == ""
    assert limit.find_excess(Passage(9, 21, 7)) == "21 functions (limit 20), 7 depth (limit 5)"
