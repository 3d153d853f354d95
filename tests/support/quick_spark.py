"""What makes a session of tests quick, beside `spark_conf`. The nightly run is without it, as users' Spark is.

As a program it is PySpark's daemon, whose workers do not read Spark's own archives anew for each of their tasks.
"""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any
from zipimport import zipimporter

from py4j.java_gateway import JavaClass, JavaPackage, JVMView


def quicken_session() -> dict[str, str]:
    """What to set when a session is made; its process does not ask the JVM twice for a name from now on.

    PySpark 3.5 has each archive on the path read anew for each task, which takes Python 3.10 to 3.12 longer than all
    else that a task with a few rows does. Our own tasks avoid it by themselves; those that bring the rows of a test to
    the JVM cannot.
    """
    from pyspark import __version__

    if os.environ.get("HUDI_LOCKS_NIGHTLY"):
        return {}
    for view in (JVMView, JavaPackage):
        if not hasattr(view.__getattr__, "asked"):
            view.__getattr__ = _keep_names(view.__getattr__)
    if not __version__.startswith("3."):
        return {}
    here = Path(__file__)
    return {"spark.python.daemon.module": here.stem, "spark.executorEnv.PYTHONPATH": str(here.parent)}


def _keep_names(ask: Any) -> Any:
    """The JVM looks for each part of a name in all of its 250 archives, as a class and in each package it knows."""

    def find(view: Any, name: str) -> Any:
        found = ask(view, name)
        if isinstance(found, JavaClass) or (isinstance(found, JavaPackage) and name.islower()):
            view.__dict__[name] = found
        return found

    find.asked = ask  # type: ignore[attr-defined]
    return find


def _keep_caches(_: zipimporter) -> None:
    """No archive changes while tests run."""


if __name__ == "__main__":
    zipimporter.invalidate_caches = _keep_caches  # type: ignore[assignment, method-assign]
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)
