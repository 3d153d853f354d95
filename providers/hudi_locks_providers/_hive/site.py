"""Where the metastores are when no key says so: hive-site.xml, else the configuration of the running Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hudi_locks.errors import ConfigError
from hudi_locks_providers._hadoop import CONF_DIR, Look, look_in_spark, read_site

__all__ = ["asks_for_tls", "find_uris_text"]

_FOLDERS: Final = ("HIVE_CONF_DIR", CONF_DIR)
_URIS: Final = ("hive.metastore.uris", "metastore.thrift.uris")
_TLS: Final = ("hive.metastore.use.SSL", "metastore.use.SSL")
_SASL: Final = ("hive.metastore.sasl.enabled", "metastore.sasl.enabled")


def find_uris_text() -> str | None:
    """The metastores as Hadoop's configuration has them; None if it has none.

    Looked for in `hive-site.xml` of the folders that HIVE_CONF_DIR and HADOOP_CONF_DIR name, then in the Hadoop
    configuration of the running Spark, if this process has one.

    Raises:
        ConfigError: The file cannot be read, or asks for Kerberos, which this client does not speak.
    """
    looks = (_refuse_kerberos(path, look) if path else look for path, look in _list_looks())
    return next((found for look in looks if (found := _find(look, _URIS))), None)


def asks_for_tls() -> bool:
    """Whether Hadoop's configuration says that metastores speak TLS, looked for where their addresses are."""
    return any((_find(look, _TLS) or "").lower() == "true" for _, look in _list_looks())


def _list_looks() -> Iterator[tuple[Path | None, Look]]:
    """Each configuration, with its file if it has one."""
    for folder in _FOLDERS:
        path = Path(os.environ.get(folder) or "/nowhere", "hive-site.xml")
        if path.is_file():
            yield path, read_site(path).get
    if spark := look_in_spark():
        yield None, spark


def _refuse_kerberos(path: Path, look: Look) -> Look:
    if _find(look, _SASL) == "true":
        raise ConfigError(
            f"{path} asks for Kerberos (hive.metastore.sasl.enabled), which this client does not speak; give"
            " hoodie.write.lock.hivemetastore.uris of a metastore without it, or use another lock provider",
            path=str(path),
        )
    return look


def _find(look: Look, names: tuple[str, ...]) -> str | None:
    return next((found for name in names if (found := look(name))), None)
