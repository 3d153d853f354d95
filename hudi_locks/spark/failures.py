"""Errors of tasks, brought back to the driver as what they were."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from hudi_locks import errors
from hudi_locks.errors import DamagedTable, HudiLocksError, SessionRefused
from hudi_locks.spark.session import WAY_OUT

__all__ = ["typed_task_errors"]

_RAISED: Final = re.compile(r"hudi_locks\.errors\.(\w+): ([^\n]*)")

_UNFIT: Final = (
    (re.compile(r"No module named '(hudi_locks|pyarrow|pandas|numpy|fastavro)\b"), "have no {}"),
    (re.compile(r"Python in worker has (?:a )?different version:? ([^\n]*)"), "run another version of Python: {}"),
    (re.compile(r'Cannot run program "([^"]*python[^"]*)"'), "are to run {}, which is not there"),
)
"""What Spark says of workers that cannot run our tasks."""
_DAMAGED: Final = re.compile(r"([^\n]*(?: is not a Parquet file|corrupted file:|Could not read footer)[^\n]*)")
_BASE_FILE: Final = re.compile(r"[^\s:]+\.parquet\b")
"""What its readers say of a base file that is not whole; of a wrong footer they name no file."""


@contextmanager
def typed_task_errors() -> Iterator[None]:
    """Around an action of Spark: what a task raised as an error of ours is raised here as the same class.

    Spark hands on the text of a traceback; the facts of the error stay on the executor.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        found = _find_raised(str(error)) or _find_unfit(str(error)) or _find_damaged(str(error))
        if found is None:
            raise
        raise found from error


def _find_raised(text: str) -> HudiLocksError | None:
    for name, message in reversed(_RAISED.findall(text)):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, HudiLocksError):
            return kind(message)
    return None


def _find_unfit(text: str) -> SessionRefused | None:
    for form, phrase in _UNFIT:
        if match := form.search(text):
            return SessionRefused(f"Spark's Python workers {phrase.format(match[1])}; {WAY_OUT}", found=match[1])
    return None


def _find_damaged(text: str) -> DamagedTable | None:
    match = _DAMAGED.search(text)
    if match is None:
        return None
    said = match[1].rpartition("Exception: ")[2].strip()
    named = _BASE_FILE.search(match[1])
    file = named[0] if named else None
    message = (
        f"{file or 'a base file'} is no whole Parquet file ({said}); bring it back from a copy, or restore the table"
    )
    return DamagedTable(message, path=file)
