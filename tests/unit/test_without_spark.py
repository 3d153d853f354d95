"""The unit tests need no Spark: they stay quick, and run where none is installed."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.mark.parametrize("name", ["pyspark", "pyspark.sql", "py4j.protocol"])
def test_a_unit_test_that_imports_pyspark_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for known in [module for module in sys.modules if module.partition(".")[0] in ("pyspark", "py4j")]:
        monkeypatch.delitem(sys.modules, known)  # where tests of Spark ran before
    with pytest.raises(ModuleNotFoundError, match=f"do without PySpark, and this one imports {name.partition('.')[0]}"):
        importlib.import_module(name)
