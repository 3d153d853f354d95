"""How a client of ZooKeeper proves who it is, what it trusts, and who may touch its nodes: from this package's keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from hudi_locks.config import Options, security_keys
from hudi_locks.errors import ConfigError
from hudi_locks_providers._kerberos import check_principal
from hudi_locks_providers._tls import find_pem_file

__all__ = ["Security"]

_GSSAPI: Final = "GSSAPI"
_OPEN: Final = "open"
_CREATOR: Final = "creator"


@dataclass(frozen=True)
class Security:
    """What a connection needs beyond an address. The default is what Hudi has: plain, nameless, nodes open to all.

    Attributes:
        uses_tls: Whether the connection is encrypted, and the server proves who it is.
        ca_file: PEM file of the authorities that are trusted beside the system's; None for those alone.
        cert_file: PEM file of this client's certificate; None where servers ask for none.
        key_file: PEM file of its key.
        key_password: Of that file; None if it is not encrypted.
        checks_hostname: Whether the server's certificate must be one for its host.
        digest: `user:password` of ZooKeeper's digest scheme; None for none.
        sasl: User and password of a login by SASL (DIGEST-MD5); None for none.
        principal: That of the servers, as `zookeeper/_HOST@REALM`, for a login by Kerberos; None for none.
        restricts: Whether nodes are made for whoever is logged in as this client is, and for nobody else.
    """

    uses_tls: bool = False
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    checks_hostname: bool = True
    digest: str | None = field(default=None, repr=False)
    sasl: tuple[str, str] | None = field(default=None, repr=False)
    principal: str | None = None
    restricts: bool = False

    @classmethod
    def from_options(cls, options: Options) -> Security:
        """What the keys say.

        Raises:
            ConfigError: One contradicts another, or a file is not there.
        """
        found = cls(
            uses_tls=options.get_value(security_keys.ZOOKEEPER_USE_SSL),
            ca_file=find_pem_file(options, security_keys.ZOOKEEPER_SSL_CA_FILE),
            cert_file=find_pem_file(options, security_keys.ZOOKEEPER_SSL_CERT_FILE),
            key_file=find_pem_file(options, security_keys.ZOOKEEPER_SSL_KEY_FILE),
            key_password=options.find(security_keys.ZOOKEEPER_SSL_KEY_PASSWORD),
            checks_hostname=options.get_value(security_keys.ZOOKEEPER_SSL_CHECK_HOSTNAME),
            digest=_find_digest(options),
            sasl=_find_sasl(options),
            principal=_find_principal(options),
            restricts=_find_rights(options) == _CREATOR,
        )
        found._check()
        return found

    def _check(self) -> None:
        if not self.uses_tls and (self.ca_file or self.cert_file or self.key_file):
            key = security_keys.ZOOKEEPER_USE_SSL.name
            raise ConfigError(f"files of TLS are given, but {key} is not true: set it, or leave them out", key=key)
        if bool(self.cert_file) != bool(self.key_file):
            keys = (security_keys.ZOOKEEPER_SSL_CERT_FILE.name, security_keys.ZOOKEEPER_SSL_KEY_FILE.name)
            raise ConfigError(f"a client's certificate needs both {keys[0]} and {keys[1]}", keys=keys)
        if self.restricts and not (self.digest or self.sasl or self.principal or self.cert_file):
            key = security_keys.ZOOKEEPER_ACL.name
            way = security_keys.ZOOKEEPER_DIGEST.name
            raise ConfigError(f"{key}={_CREATOR} is for clients that log in: give {way}, or another way", key=key)

    @property
    def arguments(self) -> dict[str, Any]:
        """What kazoo's client is made with, but for a login by Kerberos."""
        given: dict[str, Any] = {}
        if self.uses_tls:
            given = {"use_ssl": True, "check_hostname": self.checks_hostname, "ca": self.ca_file}
            given |= {"certfile": self.cert_file, "keyfile": self.key_file, "keyfile_password": self.key_password}
        if self.digest:
            given["auth_data"] = [("digest", self.digest)]
        if self.sasl:
            user, password = self.sasl
            given["sasl_options"] = {"mechanism": "DIGEST-MD5", "username": user, "password": password}
        return given


def _find_digest(options: Options) -> str | None:
    key = security_keys.ZOOKEEPER_DIGEST
    found = options.find(key)
    if found is not None and not all(found.partition(":")):
        raise ConfigError(f"{key.name} is not of the form user:password", key=key.name)
    return found


def _find_sasl(options: Options) -> tuple[str, str] | None:
    asked = (security_keys.ZOOKEEPER_SASL_USER, security_keys.ZOOKEEPER_SASL_PASSWORD)
    keys, (user, password) = [key.name for key in asked], map(options.find, asked)
    if bool(user) != bool(password):
        raise ConfigError(f"a login by SASL needs both {keys[0]} and {keys[1]}", keys=keys)
    if user and password and _uses_kerberos(options):
        key = security_keys.ZOOKEEPER_SASL_MECHANISM.name
        raise ConfigError(f"{key}={_GSSAPI} logs in by a ticket: leave {keys[0]} and {keys[1]} out", keys=keys)
    return (user, password) if user and password else None


def _find_principal(options: Options) -> str | None:
    key, mechanism = security_keys.ZOOKEEPER_SASL_PRINCIPAL, security_keys.ZOOKEEPER_SASL_MECHANISM
    if _uses_kerberos(options):
        return check_principal(options.get_value(key), key)
    if options.has(key):
        raise ConfigError(f"{key.name} is for logins by Kerberos: give {mechanism.name}={_GSSAPI}", key=key.name)
    if options.has(mechanism) and not options.has(security_keys.ZOOKEEPER_SASL_USER):
        user = security_keys.ZOOKEEPER_SASL_USER.name
        raise ConfigError(f"{mechanism.name}={options[mechanism.name]} needs {user} too", key=mechanism.name)
    return None


def _uses_kerberos(options: Options) -> bool:
    return options.get_value(security_keys.ZOOKEEPER_SASL_MECHANISM).upper() == _GSSAPI


def _find_rights(options: Options) -> str:
    key = security_keys.ZOOKEEPER_ACL
    found = options.get_value(key)
    if found not in (_OPEN, _CREATOR):
        raise ConfigError(f"{key.name}={found!r}: give {_OPEN} or {_CREATOR}", key=key.name)
    return found
