"""Hudi tables as Spark DataFrames, for many writers at a time. Needs PySpark 3.5 or 4.

What is named here is loaded when it is asked for, so that an executor's worker, which needs one small part, starts
quickly.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hudi_locks.spark.datasource import read, write
    from hudi_locks.spark.hoodie_table import HoodieTable
    from hudi_locks.spark.operation import Operation
    from hudi_locks.spark.result import Attempt, WriteResult
    from hudi_locks.spark.streaming import StreamSink
    from hudi_locks.spark.writing import CommitTerms

__all__ = ["Attempt", "CommitTerms", "HoodieTable", "Operation", "StreamSink", "WriteResult", "read", "write"]

_MODULES: Final = {
    "Attempt": "result",
    "CommitTerms": "writing",
    "HoodieTable": "hoodie_table",
    "Operation": "operation",
    "StreamSink": "streaming",
    "WriteResult": "result",
    "read": "datasource",
    "write": "datasource",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
