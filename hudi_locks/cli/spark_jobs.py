"""The Spark session of a job, and what is looked at before a JVM is started for it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hudi_locks.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_java", "check_spark", "open_session"]

_HOME: Final = "JAVA_HOME"
_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
"""Set where spark-submit has started the JVM already."""
_WAY_OUT: Final = "install Java 17 to 22, and set JAVA_HOME to its folder"


def open_session(name: str, *, master: str | None = None) -> SparkSession:
    """The session of spark-submit, else a local one; with another master if one is given.

    Raises:
        ConfigError: PySpark or Java is not there, or Spark does not start.
    """
    check_spark()
    check_java()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        builder = SparkSession.builder.appName(name)
        return (builder.master(master) if master else builder).getOrCreate()
    except (PySparkException, OSError) as error:
        first = str(error).partition("\n")[0]
        message = f"Spark did not start: {first}; look at what it printed above, at JAVA_HOME and at SPARK_HOME"
        raise ConfigError(message) from error


def check_spark() -> None:
    """Refuse to go on without PySpark.

    Raises:
        ConfigError: It is not installed, with the command that installs it.
    """
    try:
        import pyspark  # noqa: F401  # an extra
    except ImportError as error:
        message = f"this job needs PySpark, which cannot be imported ({error}): pip install 'hudi-locks[spark]'"
        raise ConfigError(message) from error


def check_java() -> None:
    """Refuse to go on where Spark would find no Java.

    Raises:
        ConfigError: There is none where it would look.
    """
    if os.environ.get(_GATEWAY):
        return
    home = os.environ.get(_HOME)
    if home and not os.access(Path(home, "bin", "java"), os.X_OK):
        raise ConfigError(f"{_HOME}={home} holds no program bin/java, which Spark needs; {_WAY_OUT}", home=home)
    if not home and shutil.which("java") is None:
        raise ConfigError(f"Spark needs Java: {_HOME} is not set, and the PATH has no java; {_WAY_OUT}")
