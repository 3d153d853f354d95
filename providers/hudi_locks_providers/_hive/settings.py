"""What is locked, and where the metastores are."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from hudi_locks.config import Key, Options, lock_keys, security_keys
from hudi_locks.errors import ConfigError
from hudi_locks.lock import LockScope
from hudi_locks_providers._hive.site import (
    asks_for_kerberos,
    asks_for_tls,
    find_principal_text,
    find_protection_text,
    find_uris_text,
)
from hudi_locks_providers._kerberos import PROTECTIONS, check_principal

__all__ = ["Address", "HiveSettings", "KerberosTerms", "find_addresses", "find_kerberos", "uses_tls"]

_DEFAULT_PORT: Final = 9083
_SHOWN_LETTERS: Final = 64
"""Of the table's name within that of a file group: the metastore's column takes 128 letters."""

_PROTECTIONS: Final = {"authentication": "auth", "integrity": "auth-int", "privacy": "auth-conf"}
"""Hadoop's words, and SASL's."""

Address = tuple[str, int]


@dataclass(frozen=True)
class KerberosTerms:
    """How metastores are logged in to.

    Attributes:
        principal: Theirs, as `hive/_HOST@REALM`.
        protections: What may guard a connection, best first.
    """

    principal: str
    protections: tuple[str, ...]


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


def find_kerberos(options: Options) -> KerberosTerms | None:
    """How metastores are logged in to: as our keys say, else as Hadoop's configuration does; None for no login.

    As with Hive's own client, that configuration counts for metastores too that a key of Hudi's names.

    Raises:
        ConfigError: No principal is named, or not in the right form; or two keys contradict each other.
    """
    use, principal = security_keys.HIVE_USE_KERBEROS, security_keys.HIVE_PRINCIPAL
    named = options.find(principal)
    if options.has(use) and not options.get_value(use):
        if named:
            raise ConfigError(f"{principal.name} is given, but {use.name} is false: leave one out", key=use.name)
        return None
    if not (named or options.has(use) or asks_for_kerberos()):
        return None
    if not (found := named or find_principal_text()):
        told = f"give {principal.name}=hive/_HOST@REALM, or hive.metastore.kerberos.principal in hive-site.xml"
        message = f"metastores are to be logged in to by Kerberos, and no principal of theirs is named: {told}"
        raise ConfigError(message, key=principal.name)
    return KerberosTerms(check_principal(found, principal), _find_protections(options))


def _find_protections(options: Options) -> tuple[str, ...]:
    """As `hadoop.rpc.protection` has them; any, where nothing is said of it, or TLS guards a connection already."""
    text = find_protection_text()
    if not text or uses_tls(options):
        return tuple(PROTECTIONS)
    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    if strange := next((word for word in words if word not in _PROTECTIONS), None):
        raise ConfigError(f"hadoop.rpc.protection: {strange!r} is none of {', '.join(_PROTECTIONS)}")
    return tuple(_PROTECTIONS[word] for word in words)


def _parse(uri: str, key: Key[str]) -> Address:
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme != "thrift":
        raise ConfigError(f"{uri!r} is no metastore: it must be thrift://host:port", key=key.name)
    return host, port or _DEFAULT_PORT
