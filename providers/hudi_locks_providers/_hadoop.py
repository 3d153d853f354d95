"""Hadoop's configuration as this process has it: that of the running Spark, and the files of its folders."""

from __future__ import annotations

import os
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from hudi_locks.errors import ConfigError

__all__ = ["CONF_DIR", "Look", "find_hadoop_settings", "look_in_spark", "read_site"]

CONF_DIR: Final = "HADOOP_CONF_DIR"
_SITES: Final = ("hdfs-site.xml", "core-site.xml")

Look = Callable[[str], "str | None"]
"""The value of a setting; None if there is none."""


def find_hadoop_settings() -> Look:
    """Settings of the running Spark; those that it lacks, of `hdfs-site.xml` and `core-site.xml` in HADOOP_CONF_DIR.

    Raises:
        ConfigError: A file cannot be read.
    """
    spark, files = look_in_spark(), [read_site(path) for path in _list_sites()]
    looks: list[Look] = [*([spark] if spark else []), *(file.get for file in files)]
    return lambda name: next((found for look in looks if (found := look(name))), None)


def look_in_spark() -> Look | None:
    """Where the Spark of this process is asked, if it runs; it is not imported for that."""
    context: Any = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    gateway = getattr(getattr(context, "_active_spark_context", None), "_jsc", None)  # Spark Connect has none
    return None if gateway is None else gateway.hadoopConfiguration().get


def read_site(path: Path) -> dict[str, str]:
    """The properties of a Hadoop configuration file.

    Raises:
        ConfigError: It is no such file.
    """
    try:
        root = ET.parse(path).getroot()  # noqa: S314  # Hadoop's own configuration of this machine
    except (OSError, ET.ParseError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", path=str(path)) from error
    return {(one.findtext("name") or "").strip(): (one.findtext("value") or "").strip() for one in root}


def _list_sites() -> Iterator[Path]:
    folder = Path(os.environ.get(CONF_DIR) or "/nowhere")
    yield from (path for name in _SITES if (path := folder / name).is_file())
