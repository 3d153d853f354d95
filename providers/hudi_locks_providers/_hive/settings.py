"""What is locked, and where the metastores are."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from hudi_locks.config import Key, Options, lock_keys, security_keys
from hudi_locks.errors import ConfigError
from hudi_locks.lock import LockScope
from hudi_locks_providers._hive.site import asks_for_tls, find_uris_text

__all__ = ["Address", "HiveSettings", "find_addresses", "uses_tls"]

_DEFAULT_PORT: Final = 9083
_SHOWN_LETTERS: Final = 64
"""Of the table's name within that of a file group: the metastore's column takes 128 letters."""

Address = tuple[str, int]


@dataclass(frozen=True)
class HiveSettings:
    """The Hive table whose lock is taken.

    Attributes:
        database: Its database.
        table: Its name.
    """

    database: str
    table: str

    @classmethod
    def from_options(cls, options: Options) -> HiveSettings:
        """What Hudi's keys ask for.

        Raises:
            ConfigError: One of them is absent.
        """
        return cls(options.get_value(lock_keys.HIVE_DATABASE), options.get_value(lock_keys.HIVE_TABLE))

    def table_of(self, scope: LockScope) -> str:
        """The name that is locked for `scope`: the table's own, or one derived from it for a file group.

        A partition lock would queue behind the table's own lock; a name that no table has is as good to the metastore.
        """
        if scope.is_table:
            return self.table
        words = (self.table.lower(), scope.partition or "", scope.file_id or "")
        named = "/".join(f"{len(word)}:{word}" for word in words)
        return f"{self.groups}{hashlib.sha256(named.encode()).hexdigest()[:40]}"

    @property
    def groups(self) -> str:
        """With which the names begin that are locked for file groups, of tables that share 64 letters too."""
        return f"{self.table[:_SHOWN_LETTERS].lower()}__hudi_locks_"


def find_addresses(options: Options, key: Key[str]) -> list[Address]:
    """Host and port of all metastores that a key names, in the order in which they are tried.

    Raises:
        ConfigError: Neither a key nor Hadoop's configuration names one, or not in the right form.
    """
    text = options.find(key) or find_uris_text()
    if not text:
        raise ConfigError(
            f"no metastore is named: give {key.name}=thrift://host:port, or a hive-site.xml with"
            " hive.metastore.uris in HIVE_CONF_DIR or HADOOP_CONF_DIR",
            key=key.name,
        )
    return [_parse(part.strip(), key) for part in text.split(",") if part.strip()]


def uses_tls(options: Options) -> bool:
    """Whether metastores are spoken to by TLS: as our key says, else as Hadoop's configuration does."""
    key = security_keys.HIVE_USE_SSL
    return options.get_value(key) if options.name_used(key) is not None else asks_for_tls()


def _parse(uri: str, key: Key[str]) -> Address:
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme != "thrift":
        raise ConfigError(f"{uri!r} is no metastore: it must be thrift://host:port", key=key.name)
    return host, port or _DEFAULT_PORT
