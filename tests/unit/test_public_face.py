"""Every package's `__all__` tells what it offers, sorted."""

from __future__ import annotations

import importlib
import types

import pytest

PACKAGES = [
    "hudi_locks",
    "hudi_locks.config",
    "hudi_locks.lock",
    "hudi_locks.observe",
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
        and attribute not in ("annotations", "Any", "ABC", "Final", "NoReturn", "abstractmethod")
        and not (isinstance(value, types.ModuleType) and attribute not in package.__all__)
    }
    assert set(package.__all__) == offered
    assert list(package.__all__) == sorted(
        package.__all__, key=lambda word: (not word.isupper(), not word[0].isupper(), word)
    )
