"""Connections to a Hive Metastore over Thrift: one for each call at a time, and another metastore when one fails."""

from __future__ import annotations

import getpass
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

from hudi_locks.config import Key, Options, security_keys
from hudi_locks.errors import BackendRefused, BackendUnavailable, HudiLocksError
from hudi_locks.lock import import_extra
from hudi_locks.lock.lease import generation
from hudi_locks.redaction import open_log
from hudi_locks_providers._hive.sasl import SaslTransport
from hudi_locks_providers._hive.settings import Address, KerberosTerms, find_addresses, find_kerberos, uses_tls
from hudi_locks_providers._kerberos import KerberosLogin, list_principals
from hudi_locks_providers._tls import trust_authorities
from hudi_locks_providers._wire.hive_lock import MOST_LETTERS

__all__ = ["MetastoreConnections", "find_user"]

_logger = open_log(__name__)
_CONNECT_MS: Final = 4_000
_ANSWER_MS: Final = 20_000
_MOST_IDLE: Final = 8
_PROVIDER: Final = "hive_metastore"
_STUBS: Final = "thrift_files.libraries.thrift_hive_metastore_client"
_UNKNOWN_METHOD: Final = 1
_GARBLED: Final = "TProtocolException"
_PRINCIPAL: Final = security_keys.HIVE_PRINCIPAL.name


@dataclass(frozen=True)
class _Link:
    """One connection: the generated client, and the Thrift socket below it."""

    client: Any
    socket: Any

    def is_open(self) -> bool:
        """Whether the other side has not closed it while it was idle, as a metastore that was restarted has."""
        handle = self.socket.handle
        handle.setblocking(False)
        try:
            handle.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False
        finally:
            handle.settimeout(_ANSWER_MS / 1000)
        return False  # closed, or with an answer that nobody waits for


class MetastoreConnections:
    """All connections of one provider or catalog. Thread-safe.

    Two calls at a time use two connections, so that a slow one holds up no heartbeat. A forked child opens its own.

    Args:
        options: For the addresses, which are looked for when the first call is made.
        key: That names them.
    """

    def __init__(self, options: Options, key: Key[str]) -> None:
        self._options = options
        self._key = key
        self._lock = threading.Lock()
        self._generation = generation()
        self._idle: list[_Link] = []
        self._addresses: list[Address] = []
        self._said = ""
        """Why the last metastore that was tried could not be reached."""

    @property
    def place(self) -> str:
        """The metastores, for a person."""
        return ", ".join(f"thrift://{host}:{port}" for host, port in self._addresses)

    def call(self, method: str, *arguments: Any) -> Any:
        """Make one call.

        Raises:
            BackendUnavailable: No metastore could be reached, or one did not answer; the call may have taken effect.
            BackendRefused: It does not offer this call, or refuses it.
        """
        transport = import_extra("thrift.transport.TTransport", provider=_PROVIDER)
        thrift = import_extra("thrift.Thrift", provider=_PROVIDER)
        link = self._take()
        keep = False
        try:
            answer = self.pass_on(method, lambda: getattr(link.client, method)(*arguments))
            keep = True
        except (transport.TTransportException, OSError, EOFError) as error:
            raise BackendUnavailable(
                f"the metastore ({self.place}) did not answer {method}: {error}", uris=self.place, method=method
            ) from error
        except thrift.TException as error:
            keep = type(error).__name__ != _GARBLED
            raise self._translate(method, error) if keep else self._tell_garbled(method, error) from error
        finally:
            self._give_back(link, keep=keep)
        return answer

    def pass_on(self, method: str, request: Callable[[], Any]) -> Any:  # noqa: ARG002  # for whoever stands between
        """Make one call over a connection: all of them pass here."""
        return request()

    def _translate(self, method: str, error: Exception) -> Exception:
        """What an answer that is an error means."""
        facts = {"uris": self.place, "method": method}
        said = getattr(error, "message", None) or str(error)
        if type(error).__name__ == "TApplicationException" and getattr(error, "type", None) != _UNKNOWN_METHOD:
            return BackendUnavailable(f"the metastore ({self.place}) failed at {method}: {said}", **facts)
        return BackendRefused(f"the metastore ({self.place}) does not do {method}: {said}", **facts)

    def _tell_garbled(self, method: str, error: Exception) -> Exception:
        """An answer that is no message of Thrift's."""
        told = f"as one does that wants a login by Kerberos: {_PRINCIPAL}=hive/_HOST@REALM asks for that"
        what = f"the metastore ({self.place}) answers {method} by none of Thrift's messages ({error})"
        return BackendRefused(f"{what}, {told}", uris=self.place, method=method)

    def types(self) -> Any:
        return import_extra(f"{_STUBS}.ttypes", provider=_PROVIDER)

    def _take(self) -> _Link:
        if self._generation != generation():
            self._lock, self._generation, self._idle = threading.Lock(), generation(), []
        while True:
            with self._lock:
                link = self._idle.pop() if self._idle else None
            if link is None:
                return self._connect()
            if link.is_open():
                return link
            link.socket.close()

    def _give_back(self, link: _Link, *, keep: bool) -> None:
        with self._lock:
            if keep and len(self._idle) < _MOST_IDLE:
                self._idle.append(link)
                return
        link.socket.close()

    def _connect(self) -> _Link:
        """A connection to the first metastore that accepts one, which is asked first from then on."""
        addresses = self._addresses = self._addresses or find_addresses(self._options, self._key)
        for address in addresses:
            link = self._try_open(*address)
            if link is not None:
                self._addresses = [address, *(other for other in addresses if other != address)]
                return link
        said = f" ({self._said})" if self._said else ""
        raise BackendUnavailable(f"no metastore can be reached: {self.place}{said}", uris=self.place)

    def _try_open(self, host: str, port: int) -> _Link | None:
        transport = import_extra("thrift.transport.TTransport", provider=_PROVIDER)
        protocol = import_extra("thrift.protocol.TBinaryProtocol", provider=_PROVIDER)
        stubs = import_extra(f"{_STUBS}.ThriftHiveMetastore", provider=_PROVIDER)
        opened = import_extra("thrift.transport.TSocket", provider=_PROVIDER).TSocket(host, port)
        opened.setTimeout(_CONNECT_MS)
        try:
            self._open_socket(opened)
            above = self._log_in(opened, transport) if self._kerberos else transport.TBufferedTransport(opened)
        except HudiLocksError:
            opened.close()
            raise
        except (transport.TTransportException, OSError) as error:
            self._said = str(getattr(error, "inner", None) or error)
            _logger.warning("thrift://%s:%d cannot be reached: %s", host, port, self._said)
            opened.close()
            return None
        opened.setTimeout(_ANSWER_MS)
        return _Link(stubs.Client(protocol.TBinaryProtocol(above, strictRead=True)), opened)

    def _open_socket(self, opened: Any) -> None:
        opened.open()
        opened.handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if trusted := self._trusted:
                opened.handle = trusted.wrap_socket(opened.handle, server_hostname=opened.host)
        except ssl.SSLCertVerificationError as error:
            raise self._mistrust(opened.host, opened.port, error) from error

    def _log_in(self, opened: Any, transport: Any) -> SaslTransport:
        """What messages go through once this process is logged in."""
        terms = cast("KerberosTerms", self._kerberos)
        principals = list_principals(terms.principal, opened.host)
        login = KerberosLogin(principals, security_keys.HIVE_PRINCIPAL, terms.protections)
        above = SaslTransport(opened, f"thrift://{opened.host}:{opened.port}", login)
        try:
            above.log_in()
        except transport.TTransportException as error:
            told = f"where it has none, {security_keys.HIVE_USE_KERBEROS.name}=false says so"
            said = getattr(error, "inner", None) or error
            raise OSError(f"it does not answer the login by Kerberos ({said}); {told}") from error
        return above

    @cached_property
    def _kerberos(self) -> KerberosTerms | None:
        return find_kerberos(self._options)

    @cached_property
    def _trusted(self) -> ssl.SSLContext | None:
        """Whom a connection by TLS trusts; None for a plain one."""
        if not uses_tls(self._options):
            return None
        return trust_authorities(self._options, security_keys.HIVE_CA_FILE) or ssl.create_default_context()

    def _mistrust(self, host: str, port: int, error: ssl.SSLCertVerificationError) -> BackendRefused:
        told = f"give its authority by {security_keys.HIVE_CA_FILE.name}, or the host that it is for in the address"
        what = f"the certificate of the metastore thrift://{host}:{port} is not trusted"
        return BackendRefused(f"{what} ({error.verify_message}): {told}", uris=self.place)

    def close(self) -> None:
        """Close the idle connections; a later call opens new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        if self._generation == generation():
            for link in idle:
                link.socket.close()


def find_user() -> str:
    """As the JVM's `user.name`; a user without a name is no reason to fail."""
    try:
        return getpass.getuser()[:MOST_LETTERS]
    except (KeyError, OSError):
        return "unknown"
