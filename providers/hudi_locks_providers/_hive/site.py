"""Where the metastores are when no key says so: hive-site.xml, else the configuration of the running Spark session."""

from __future__ import annotations

import os
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, Final

from hudi_locks.errors import ConfigError

__all__ = ["find_uris_text"]

_FOLDERS: Final = ("HIVE_CONF_DIR", "HADOOP_CONF_DIR")
_URIS: Final = ("hive.metastore.uris", "metastore.thrift.uris")
_SASL: Final = ("hive.metastore.sasl.enabled", "metastore.sasl.enabled")


def find_uris_text() -> str | None:
    """The metastores as Hadoop's configuration has them; None if it has none.

    Looked for in `hive-site.xml` of the folders that HIVE_CONF_DIR and HADOOP_CONF_DIR name, then in the Hadoop
    configuration of the active Spark session, if this process has one.

    Raises:
        ConfigError: The file cannot be read, or asks for Kerberos, which this client does not speak.
    """
    for folder in _FOLDERS:
        path = Path(os.environ.get(folder) or "/nowhere", "hive-site.xml")
        if path.is_file() and (found := _find(read_site(path), _URIS)):
            return found
    return _ask_spark()


def read_site(path: Path) -> dict[str, str]:
    """The properties of a Hadoop configuration file.

    Raises:
        ConfigError: It is no such file, or it asks for Kerberos.
    """
    try:
        root = ET.parse(path).getroot()  # noqa: S314  # Hadoop's own configuration of this machine
    except (OSError, ET.ParseError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", path=str(path)) from error
    found = {(one.findtext("name") or "").strip(): (one.findtext("value") or "").strip() for one in root}
    if _find(found, _SASL) == "true":
        raise ConfigError(
            f"{path} asks for Kerberos (hive.metastore.sasl.enabled), which this client does not speak; give"
            " hoodie.write.lock.hivemetastore.uris of a metastore without it, or use another lock provider",
            path=str(path),
        )
    return found


def _find(properties: dict[str, str], names: tuple[str, ...]) -> str | None:
    return next((properties[name] for name in names if properties.get(name)), None)


def _ask_spark() -> str | None:
    """What the active Spark session says; it is not imported for that, only asked if it is there."""
    sql: Any = sys.modules.get("pyspark.sql")
    session = sql.SparkSession.getActiveSession() if sql is not None else None
    gateway = getattr(session, "_jsc", None)  # a session of Spark Connect has none
    if gateway is None:
        return None
    hadoop = gateway.hadoopConfiguration()
    return next((found for name in _URIS if (found := hadoop.get(name))), None)
