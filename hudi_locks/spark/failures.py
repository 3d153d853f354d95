"""Errors of tasks, brought back to the driver as what they were."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from hudi_locks import errors
from hudi_locks.errors import HudiLocksError

__all__ = ["typed_task_errors"]

_RAISED: Final = re.compile(r"hudi_locks\.errors\.(\w+): ([^\n]*)")


@contextmanager
def typed_task_errors() -> Iterator[None]:
    """Around an action of Spark: what a task raised as an error of ours is raised here as the same class.

    Spark hands on the text of a traceback; the facts of the error stay on the executor.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        found = _find_raised(str(error))
        if found is None:
            raise
        raise found from error


def _find_raised(text: str) -> HudiLocksError | None:
    for name, message in reversed(_RAISED.findall(text)):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, HudiLocksError):
            return kind(message)
    return None
