"""Where metastores are, and how they are spoken to, when no key says so: hive-site.xml, else the running Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hudi_locks_providers._hadoop import CONF_DIR, Look, find_hadoop_settings, look_in_spark, read_site

__all__ = ["asks_for_kerberos", "asks_for_tls", "find_principal_text", "find_protection_text", "find_uris_text"]

_FOLDERS: Final = ("HIVE_CONF_DIR", CONF_DIR)
_URIS: Final = ("hive.metastore.uris", "metastore.thrift.uris")
_TLS: Final = ("hive.metastore.use.SSL", "metastore.use.SSL")
_SASL: Final = ("hive.metastore.sasl.enabled", "metastore.sasl.enabled")
_PRINCIPAL: Final = ("hive.metastore.kerberos.principal", "metastore.kerberos.principal")
_PROTECTION: Final = ("hadoop.rpc.protection",)


def find_uris_text() -> str | None:
    """The metastores as Hadoop's configuration has them; None if it has none.

    Looked for in `hive-site.xml` of the folders that HIVE_CONF_DIR and HADOOP_CONF_DIR name, then in the Hadoop
    configuration of the running Spark, if this process has one.

    Raises:
        ConfigError: The file cannot be read.
    """
    return _find_anywhere(_URIS)


def asks_for_tls() -> bool:
    """Whether Hadoop's configuration says that metastores speak TLS, looked for where their addresses are."""
    return (_find_anywhere(_TLS) or "").lower() == "true"


def asks_for_kerberos() -> bool:
    """Whether it says that metastores want a login by Kerberos."""
    return (_find_anywhere(_SASL) or "").lower() == "true"


def find_principal_text() -> str | None:
    """The principal of metastores, as `hive/_HOST@REALM`; None if it names none."""
    return _find_anywhere(_PRINCIPAL)


def find_protection_text() -> str | None:
    """What guards connections after such a login, in Hadoop's words and order; None if nothing is said of it.

    Hive takes what Hadoop's own servers go by, so `core-site.xml` is asked too.
    """
    return _find_anywhere(_PROTECTION) or find_hadoop_settings()(*_PROTECTION)


def _find_anywhere(names: tuple[str, ...]) -> str | None:
    return next((found for look in _list_looks() for name in names if (found := look(name))), None)


def _list_looks() -> Iterator[Look]:
    for folder in _FOLDERS:
        path = Path(os.environ.get(folder) or "/nowhere", "hive-site.xml")
        if path.is_file():
            yield read_site(path).get
    if spark := look_in_spark():
        yield spark
