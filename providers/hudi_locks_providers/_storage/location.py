"""Where the lock objects of a table lie: scheme, bucket, and the key before each of them."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from hudi_locks.config import table_keys
from hudi_locks.errors import ConfigError

__all__ = ["Location", "find_elsewhere", "parse_location"]

_SERVICES: Final = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gcs",
    "abfs": "azure",
    "abfss": "azure",
    "wasb": "azure",
    "wasbs": "azure",
    "memory": "memory",
}
_SHOWN: Final = {"gcs": "gs", "azure": "abfss"}
_AZURE_FORM: Final = "abfss://container@account.dfs.core.windows.net/path"


@dataclass(frozen=True)
class Location:
    """The folder of one table in an object store.

    Attributes:
        service: "s3", "gcs", "azure", or "memory" for tests within one process.
        bucket: Bucket or container.
        account: Storage account; Azure only.
        prefix: Key of the table's folder, without slashes at its ends.
    """

    service: str
    bucket: str
    account: str
    prefix: str

    def key(self, name: str) -> str:
        """The key of the object `name` below the table's folder."""
        return posixpath.join(self.prefix, name)

    def url(self, key: str) -> str:
        """An address for a person to read."""
        where = f"{self.bucket}@{self.account}" if self.account else self.bucket
        return f"{_SHOWN.get(self.service, self.service)}://{where}/{key}"


def parse_location(base_path: str) -> Location:
    """Where a table with this base path lies; as in the JVM, slashes at the end and doubled ones mean nothing.

    Raises:
        ConfigError: The scheme is none of a store with conditional writes, or no bucket is named.
    """
    parts = urlsplit(base_path.strip().replace("#", "%23").replace("?", "%3F"))
    service = _SERVICES.get(parts.scheme)
    if service is None:
        raise ConfigError(_say_unsupported(base_path, parts.scheme), key=table_keys.BASE_PATH.name, scheme=parts.scheme)
    if service != "azure" and "@" in parts.netloc:
        message = (
            f"{table_keys.BASE_PATH.name}: an address {parts.scheme}://…@… would hold keys, which tables and logs would"
            " show; give them by options, the session or the environment"
        )
        raise ConfigError(message, key=table_keys.BASE_PATH.name, scheme=parts.scheme)
    bucket, _, host = parts.netloc.partition("@")
    if not bucket or (service == "azure" and not host):
        form = _AZURE_FORM if service == "azure" else f"{parts.scheme}://bucket/path"
        raise ConfigError(
            f"{table_keys.BASE_PATH.name}={base_path} names no bucket; write it as {form}",
            key=table_keys.BASE_PATH.name,
        )
    prefix = "/".join(part for part in unquote(parts.path).split("/") if part)
    return Location(service, bucket, host.partition(".")[0], prefix)


def find_elsewhere(base_path: str, folder: str) -> str | None:
    """The address of a folder as a base path is written, if who reaches the table reaches that too.

    Args:
        base_path: Of the table.
        folder: As Hadoop writes it, which escapes nothing.
    """
    escaped, own = folder.replace("%", "%25"), parse_location(base_path)
    if _SERVICES.get(urlsplit(escaped).scheme) != own.service:
        return None
    return escaped if parse_location(escaped).account == own.account else None


def _say_unsupported(base_path: str, scheme: str) -> str:
    if scheme in ("", "file"):
        return (
            f"{table_keys.BASE_PATH.name}={base_path} is on a file system, which has no conditional writes;"
            " use the filesystem lock provider"
        )
    return (
        f"{table_keys.BASE_PATH.name}={base_path}: the storage lock provider knows s3, s3a, gs, abfs, abfss, wasb and"
        f" wasbs, not {scheme}"
    )
