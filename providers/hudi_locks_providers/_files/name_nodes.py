"""Where the name nodes of an HDFS speak HTTP: by the address, by our option, by Hadoop's own configuration.

Source: hdfs-default.xml, and the guide to HDFS with several name nodes.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from hudi_locks.config import Options, lock_keys
from hudi_locks.errors import ConfigError
from hudi_locks_providers._hadoop import Look, find_hadoop_settings

__all__ = ["WEB_SCHEMES", "find_name_nodes", "guess_name_node"]

WEB_SCHEMES: Final = {"webhdfs": "http", "swebhdfs": "https"}
"""Addresses that name WebHDFS itself."""
_HDFS: Final = "hdfs"
_PORT: Final = 9870
_UNSET: Final = ("0.0.0.0:9870", "0.0.0.0:9871")  # Hadoop's defaults, which name no machine
_ANY_HOST: Final = "0.0.0.0"  # noqa: S104  # as above


def find_name_nodes(url: str, options: Options) -> tuple[str, ...]:
    """Addresses such as `http://namenode:9870`; empty where nothing names them. Sends nothing.

    Hadoop's configuration is that of the running Spark, and of HADOOP_CONF_DIR. It is left alone where it asks for
    Kerberos, which WebHDFS is not spoken with here.

    Args:
        url: Of a folder on HDFS.
        options: `hudi_locks.filesystem.webhdfs_url` comes before Hadoop's configuration.

    Raises:
        ConfigError: Hadoop's configuration cannot be read, or names a name service without its addresses.
    """
    parts = urlsplit(url)
    if parts.scheme in WEB_SCHEMES:
        return (f"{WEB_SCHEMES[parts.scheme]}://{parts.netloc}",)
    if told := options.find(lock_keys.FILESYSTEM_WEBHDFS_URL):
        return tuple(address for address in told.split(",") if address.strip())
    return _ask_hadoop(parts.netloc) if parts.scheme == _HDFS else ()


def guess_name_node(url: str) -> str | None:
    """Port 9870 of the host that an `hdfs:` address names, or `fs.defaultFS` where it names none; else None."""
    host = urlsplit(url).hostname or urlsplit(f"//{_find_default(find_hadoop_settings())}").hostname
    return f"http://{host}:{_PORT}" if host else None


def _ask_hadoop(named: str) -> tuple[str, ...]:
    look = find_hadoop_settings()
    default = _find_default(look)
    place = named or default
    if not place or look("hadoop.security.authentication") == "kerberos":
        return ()
    scheme = "https" if look("dfs.http.policy") == "HTTPS_ONLY" else "http"
    key = f"dfs.namenode.{scheme}-address"
    if place in _split(look("dfs.nameservices")):
        found = _list_of_service(look, key, place)
    else:
        found = _find_of_host(look(key) or "", place, is_default=place == default)
    return tuple(f"{scheme}://{address}" for address in found)


def _find_default(look: Look) -> str:
    """Host and port, or name service, of the file system that addresses without a host mean."""
    parts = urlsplit(look("fs.defaultFS") or "")
    return parts.netloc if parts.scheme == _HDFS else ""


def _list_of_service(look: Look, key: str, service: str) -> list[str]:
    nodes = _split(look(f"dfs.ha.namenodes.{service}"))
    names = [f"{key}.{service}.{node}" for node in nodes] or [f"{key}.{service}"]
    found = {name: look(name) for name in names}
    if lacking := [name for name, address in found.items() if not address]:
        message = (
            f"Hadoop's configuration has the name service {service}, and no {', '.join(lacking)}; set that, or give"
            f" {lock_keys.FILESYSTEM_WEBHDFS_URL.name}, such as http://namenode:{_PORT},http://other:{_PORT}"
        )
        raise ConfigError(message, service=service, lacking=tuple(lacking))
    return [address for address in found.values() if address]


def _find_of_host(address: str, place: str, *, is_default: bool) -> list[str]:
    """The address, if it is of the name node that is asked for: a machine may be configured for another one."""
    host, asked = urlsplit(f"//{address}").hostname, urlsplit(f"//{place}").hostname
    if not host or address in _UNSET:
        return []
    if host == _ANY_HOST:
        return [f"{asked}:{urlsplit(f'//{address}').port}"]
    return [address] if host == asked or is_default else []


def _split(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]
