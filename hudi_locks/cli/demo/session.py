"""The Spark sessions of the demonstration."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

__all__ = ["start_session"]


def start_session(name: str, cores: int) -> SparkSession:
    """A quiet local session whose Python workers run this interpreter."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName(name).master(f"local[{cores}]")  # type: ignore[attr-defined,unused-ignore]
    settings = {
        "spark.driver.memory": "2g",
        "spark.log.level": "ERROR",
        "spark.pyspark.python": sys.executable,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    return session
