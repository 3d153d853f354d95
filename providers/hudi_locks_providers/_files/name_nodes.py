"""Where the name nodes of an HDFS answer: by the address, by our option, by Hadoop's own configuration.

Source: hdfs-default.xml, and the guide to HDFS with several name nodes.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from hudi_locks.config import Options, lock_keys
from hudi_locks.errors import ConfigError
from hudi_locks_providers._hadoop import Look, find_hadoop_settings

__all__ = ["WEB_SCHEMES", "find_link", "find_name_nodes"]

WEB_SCHEMES: Final = {"webhdfs": "http", "swebhdfs": "https"}
"""Addresses that name WebHDFS itself."""
_HDFS: Final = "hdfs"
_AUTO: Final = "auto"
_NATIVE: Final = "native"
_INSTALL: Final = "pip install 'hudi-locks[hdfs]'"
_PORT: Final = 9870
_UNSET: Final = ("0.0.0.0:9870", "0.0.0.0:9871")  # Hadoop's defaults, which name no machine
_RPC_PORT: Final = 8020
_CLIENT_SETTINGS: Final = (
    "dfs.client.block.write.replace-datanode-on-failure.best-effort",
    "dfs.client.block.write.replace-datanode-on-failure.enable",
    "dfs.client.block.write.replace-datanode-on-failure.policy",
    "dfs.client.failover.max.attempts",
    "dfs.client.failover.sleep.base.millis",
    "dfs.client.failover.sleep.max.millis",
    "dfs.client.socket-timeout",
    "dfs.client.use.datanode.hostname",
    "dfs.data.transfer.protection",
    "hadoop.security.authentication",
    "hadoop.security.key.provider.path",
)
_SERVICE_SETTINGS: Final = (
    "dfs.client.failover.proxy.provider",
    "dfs.client.failover.random.order",
    "dfs.client.failover.resolve-needed",
    "dfs.client.failover.resolver.useFQDN",
    "dfs.ha.namenodes",
)
_ANY_HOST: Final = "0.0.0.0"  # noqa: S104  # as above


def find_name_nodes(url: str, options: Options) -> tuple[str, ...]:
    """Addresses such as `http://namenode:9870`; empty where nothing names them. Sends nothing.

    Hadoop's configuration is that of the running Spark, and of HADOOP_CONF_DIR. It is left alone where it asks for
    Kerberos, which WebHDFS is not spoken with here, and where it turns WebHDFS off.

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


def find_link(base: str, options: Options) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """How a table on HDFS is reached; sends nothing.

    Args:
        base: Of the table.
        options: `hudi_locks.filesystem.webhdfs_url` and `hudi_locks.hdfs.client`.

    Returns:
        Addresses of the name nodes, for WebHDFS; or one such as `hdfs://namenode:8020`, or with the name of a name
        service, and Hadoop's settings for its own protocol, among them no secret.

    Raises:
        ConfigError: Nothing names a host; Hadoop's configuration is not whole; or it asks for what only hdfs-native
            speaks, which is not installed.
    """
    chosen = options.get_value(lock_keys.HDFS_CLIENT)
    if chosen != _NATIVE and (found := _find_web(base, options, may_lack=chosen == _AUTO)):
        return found, {}
    if urlsplit(base).scheme in WEB_SCHEMES:
        message = f"{base} names WebHDFS: give an hdfs:// path for {lock_keys.HDFS_CLIENT.name}={chosen}"
        raise ConfigError(message, key=lock_keys.HDFS_CLIENT.name, path=base)
    if chosen == _NATIVE or (chosen == _AUTO and _offers_native(base)):
        return _find_native(base)
    return (_guess(base),), {}


def _find_web(base: str, options: Options, *, may_lack: bool) -> tuple[str, ...]:
    """See `find_name_nodes`; a name service without addresses for WebHDFS may lack them where there is another way."""
    try:
        return find_name_nodes(base, options)
    except ConfigError:
        if not (may_lack and _has_package()):
            raise
        return ()


def _has_package() -> bool:
    return importlib.util.find_spec("hdfs_native") is not None


def _offers_native(base: str) -> bool:
    """Whether hdfs-native is here; it must be, where Hadoop's configuration leaves nothing else."""
    if _has_package():
        return True
    if _needs_native(find_hadoop_settings()):
        message = (
            f"{base}: Hadoop's configuration asks for Kerberos, or turns WebHDFS off: {_INSTALL}, on executors too"
        )
        raise ConfigError(message, path=base)
    return False


def _needs_native(look: Look) -> bool:
    return look("hadoop.security.authentication") == "kerberos" or look("dfs.webhdfs.enabled") == "false"


def _find_native(base: str) -> tuple[tuple[str, ...], Mapping[str, str]]:
    look = find_hadoop_settings()
    place = urlsplit(base).netloc or _find_default(look)
    if not place:
        raise _make_nameless(base)
    settings = _pick(look, _CLIENT_SETTINGS)
    if place in _split(look("dfs.nameservices")):
        place, of_service = _describe_service(look, place)
        return (f"{_HDFS}://{place}",), settings | of_service
    return (f"{_HDFS}://{place if urlsplit(f'//{place}').port else f'{place}:{_RPC_PORT}'}",), settings


def _describe_service(look: Look, service: str) -> tuple[str, dict[str, str]]:
    """What stands for the service in an address, and the settings by which a client finds its name nodes."""
    found = _find_of_service(look, "dfs.namenode.rpc-address", service)
    if not look(f"dfs.ha.namenodes.{service}"):
        return next(iter(found.values())), {}
    return service, found | _pick(look, [f"{name}.{service}" for name in _SERVICE_SETTINGS])


def _pick(look: Look, names: Iterable[str]) -> dict[str, str]:
    return {name: found for name in names if (found := look(name))}


def _guess(base: str) -> str:
    """Port 9870 of the host that the address names, or `fs.defaultFS` where it names none."""
    host = urlsplit(base).hostname or urlsplit(f"//{_find_default(find_hadoop_settings())}").hostname
    if host:
        return f"http://{host}:{_PORT}"
    raise _make_nameless(base)


def _make_nameless(base: str) -> ConfigError:
    key = lock_keys.FILESYSTEM_WEBHDFS_URL.name
    message = f"{base} names no name node; give {key}, such as http://namenode:9870, or set HADOOP_CONF_DIR"
    return ConfigError(message, key=key, path=base)


def _ask_hadoop(named: str) -> tuple[str, ...]:
    look = find_hadoop_settings()
    default = _find_default(look)
    place = named or default
    if not place or _needs_native(look):
        return ()
    scheme = "https" if look("dfs.http.policy") == "HTTPS_ONLY" else "http"
    key = f"dfs.namenode.{scheme}-address"
    if place in _split(look("dfs.nameservices")):
        found = [*_find_of_service(look, key, place).values()]
    else:
        found = _find_of_host(look(key) or "", place, is_default=place == default)
    return tuple(f"{scheme}://{address}" for address in found)


def _find_default(look: Look) -> str:
    """Host and port, or name service, of the file system that addresses without a host mean."""
    parts = urlsplit(look("fs.defaultFS") or "")
    return parts.netloc if parts.scheme == _HDFS else ""


def _find_of_service(look: Look, key: str, service: str) -> dict[str, str]:
    """The addresses of its name nodes, by the setting that names each."""
    nodes = _split(look(f"dfs.ha.namenodes.{service}"))
    names = [f"{key}.{service}.{node}" for node in nodes] or [f"{key}.{service}"]
    found = {name: look(name) for name in names}
    if lacking := [name for name, address in found.items() if not address]:
        message = (
            f"Hadoop's configuration has the name service {service}, and no {', '.join(lacking)}; set that, or give"
            f" {lock_keys.FILESYSTEM_WEBHDFS_URL.name}, such as http://namenode:{_PORT},http://other:{_PORT}"
        )
        raise ConfigError(message, service=service, lacking=tuple(lacking))
    return {name: address for name, address in found.items() if address}


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
