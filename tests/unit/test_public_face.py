"""Every package's `__all__` tells what it offers, sorted."""

from __future__ import annotations

import ast
import importlib
import types
from pathlib import Path

import pytest

import hudi_locks
from hudi_locks import errors

PACKAGES = [
    "hudi_locks",
    "hudi_locks.config",
    "hudi_locks.lock",
    "hudi_locks.observe",
    "hudi_locks.storage",
    "hudi_locks.errors",
    "hudi_locks.clock",
]


@pytest.mark.parametrize("name", PACKAGES)
def test_all_is_what_is_public(name: str) -> None:
    package = importlib.import_module(name)
    offered = {
        attribute
        for attribute, value in vars(package).items()
        if not attribute.startswith("_")
        and attribute not in ("annotations", "Any", "ABC", "Callable", "Final", "NoReturn", "abstractmethod")
        and not (isinstance(value, types.ModuleType) and attribute not in package.__all__)
    }
    assert set(package.__all__) == offered
    assert list(package.__all__) == sorted(
        package.__all__, key=lambda word: (not word.isupper(), not word[0].isupper(), word)
    )


def test_every_error_that_a_user_may_catch_is_in_the_package_itself() -> None:
    offered = {name for name in errors.__all__ if name != "refuse_pickling"}
    assert offered <= set(hudi_locks.__all__)
    assert all(getattr(hudi_locks, name) is getattr(errors, name) for name in offered)


def test_an_error_is_caught_by_the_name_that_it_had() -> None:
    with pytest.warns(
        DeprecationWarning, match=r"errors\.UpdateEndangered is now hudi_locks\.errors\.PossibleLostUpdate"
    ):
        old = errors.UpdateEndangered
    assert old is hudi_locks.PossibleLostUpdate


def read_public_types(path: Path) -> set[str]:
    """Names in the annotations of what public functions and methods of a module return."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.returns is not None:
            found |= {name.id for name in ast.walk(node.returns) if isinstance(name, ast.Name)}
    return found


def test_spark_offers_every_type_that_a_table_returns() -> None:
    folder = Path(hudi_locks.__file__).parent
    spark = ("hoodie_table", "services/scheduled_service", "services/clustering", "reading/readable", "datasource")
    faces = (*(f"spark/{face}" for face in spark), "services/table_services", "services/savepoints")
    returned = set[str]().union(*(read_public_types(folder / f"{face}.py") for face in faces))
    offered = next(
        ast.literal_eval(node.value)
        for node in ast.parse((folder / "spark" / "__init__.py").read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    )
    ours = {name for name in returned if name[0].isupper()} - {
        "CommitMetadata",
        "DataFrame",
        "Iterator",
        "Storage",
        "SparkSession",
    }
    assert "CleanResult" in ours
    assert ours <= set(offered)
