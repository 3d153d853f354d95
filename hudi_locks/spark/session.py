"""The user's Spark session: whether it will do, and which Python its workers run. Runs on the driver."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from rich.console import Console

from hudi_locks.config import Key, Options
from hudi_locks.config.lock_keys import (
    AWS_ACCESS_KEY,
    AWS_SECRET_KEY,
    AWS_SESSION_TOKEN,
    STORAGE_ALLOW_HTTP,
    STORAGE_ENDPOINT_URL,
    STORAGE_REGION,
)
from hudi_locks.errors import SessionRefused
from hudi_locks.spark._compat import is_stopped

__all__ = ["WAY_OUT", "add_store_settings", "check_session", "prepare_session", "show_progress"]


@contextmanager
def show_progress(title: str) -> Iterator[Callable[[str], None]]:
    """A line on standard error that says what is being done, if that is a terminal; nothing otherwise."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    console = Console(stderr=True)
    with console.status(title) as status:
        yield lambda step: status.update(f"{title}: {step}")


WAY_OUT: Final = (
    "set PYSPARK_PYTHON, or spark.pyspark.python, to a Python of the driver's version with hudi-locks[spark], on every"
    " machine, before the session is made"
)
_VARIABLE: Final = "PYSPARK_PYTHON"
_SETTINGS: Final = ("spark.sql.execution.pyspark.python", "spark.pyspark.python")
_S3A: Final[Mapping[Key[Any], str]] = {
    STORAGE_ENDPOINT_URL: "endpoint",
    STORAGE_REGION: "endpoint.region",
    AWS_ACCESS_KEY: "access.key",
    AWS_SECRET_KEY: "secret.key",
    AWS_SESSION_TOKEN: "session.token",
}
"""Our keys, and how Spark's file system for S3 calls them."""
_SENT: Final = ("spark.submit.pyFiles", "spark.archives")
"""What may bring the package to workers whose Python lacks it."""
_PROBE: Final = "import hudi_locks.spark.worker_tasks"
_PROBE_TIMEOUT_S: Final = 60


def prepare_session(spark: SparkSession) -> None:
    """Check the session, and see to it that local workers find this package.

    Where Spark runs on this machine and nobody named a Python, its workers run the driver's; Spark would take the
    `python3` of the PATH, which need not have this package.

    Raises:
        SessionRefused: The session is one of Spark Connect, was stopped, or its local workers lack this package.
    """
    check_session(spark)
    context: Any = spark.sparkContext
    if not context.master.startswith("local"):
        return
    if _VARIABLE not in os.environ:
        context.pythonExec = _find_setting(context) or sys.executable
    is_sent = any(context.getConf().get(name) for name in _SENT)
    if context.pythonExec != sys.executable and not is_sent and (lack := _find_lack(context.pythonExec)):
        message = f"Spark's Python workers run {context.pythonExec}, which cannot import hudi_locks ({lack}); {WAY_OUT}"
        raise SessionRefused(message, python=context.pythonExec)


def check_session(spark: SparkSession) -> None:
    """Refuse a session that cannot be used.

    Raises:
        SessionRefused: It is one of Spark Connect, or was stopped.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise SessionRefused(
            "this is a session of Spark Connect, which has no SparkContext to run the tasks of a write with; make one"
            " by SparkSession.builder.master(...), or run the job by spark-submit"
        )
    if is_stopped(spark):
        raise SessionRefused("this Spark session was stopped; make a new one, and load the table with it")


def add_store_settings(spark: SparkSession, options: Mapping[str, object] | None) -> Options:
    """The options, and where they say nothing of an object store, what the session says to its own file systems.

    That is `spark.hadoop.fs.s3a.*`: endpoint, region, keys, and whether connections are without TLS. It must stand in
    the configuration with which the session's context was made.
    """
    given, conf = Options(options), spark.sparkContext.getConf()
    told = {key: conf.get(f"spark.hadoop.fs.s3a.{name}") for key, name in _S3A.items()}
    if told[STORAGE_ENDPOINT_URL] and "://" not in told[STORAGE_ENDPOINT_URL]:
        is_plain = (conf.get("spark.hadoop.fs.s3a.connection.ssl.enabled") or "true").lower() == "false"
        told[STORAGE_ENDPOINT_URL] = f"{'http' if is_plain else 'https'}://{told[STORAGE_ENDPOINT_URL]}"
    if (told[STORAGE_ENDPOINT_URL] or "").startswith("http://"):
        told[STORAGE_ALLOW_HTTP] = "true"
    return given | {key.name: value for key, value in told.items() if value and given.name_used(key) is None}


def _find_setting(context: Any) -> str | None:
    given = (context.getConf().get(name) for name in _SETTINGS)
    return next((value for value in given if value), None)


@cache
def _find_lack(python: str) -> str:
    """Why a Python of this machine cannot run our tasks; "" if it can."""
    found = shutil.which(python)
    if found is None:
        return "there is no such program"
    if Path(found) == Path(sys.executable):
        return ""
    command = [found, "-c", _PROBE]
    try:
        done = subprocess.run(  # noqa: S603  # the program that Spark would run
            command, capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"]
    return said[-1] if done.returncode else ""
