"""Logins of kazoo by SASL: what it makes of a refusal, and for Kerberos a mechanism of pure-sasl's that asks gssapi.

pure-sasl's own one needs another package, kerberos, which is not maintained any more. ZooKeeper's protocol names no
mechanism, so this one may have a name of its own beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, SessionClosedRequireSaslError
from kazoo.protocol.connection import ConnectionDropped

from hudi_locks.config import security_keys
from hudi_locks.errors import BackendRefused, BackendUnavailable, LockError
from hudi_locks_providers._kerberos import KerberosLogin, list_principals
from hudi_locks_providers._zookeeper.security import Security

__all__ = ["Logins", "TicketLogin", "make_client"]

_NAME: Final = "GSSAPI of hudi-locks"
_MECHANISM: Final = security_keys.ZOOKEEPER_SASL_MECHANISM.name
_DROPS: Final = 3
"""So many links in a row that end within a login are a refusal; fewer may be servers that stop."""


class TicketLogin:
    """How one client of kazoo logs in, again for each connection.

    Args:
        principal: That of the servers, as `zookeeper/_HOST@REALM`.

    Attributes:
        failure: Why the last login failed on this side; None if it did not.
    """

    def __init__(self, principal: str) -> None:
        import puresasl.mechanisms

        puresasl.mechanisms.mechanisms[_NAME] = _Mechanism
        self.failure: LockError | None = None
        self._principal = principal
        self._prepared: list[tuple[KerberosLogin, bytes]] = []

    @classmethod
    def from_security(cls, security: Security) -> TicketLogin | None:
        """One for clients that log in so; None for others."""
        return cls(security.principal) if security.principal else None

    @property
    def arguments(self) -> dict[str, Any]:
        """What kazoo's client is made with."""
        return {"sasl_options": {"mechanism": _NAME, "by": self}}

    def prepare(self, host: str) -> None:
        """Get the ticket for a server before a session with it begins, which would not live as long as this may take.

        Raises:
            AuthFailedError: There is no ticket.
            ConnectionDropped: No key distribution center answers: kazoo tries again.
        """
        self.failure = None
        try:
            login = KerberosLogin(list_principals(self._principal, host), security_keys.ZOOKEEPER_SASL_PRINCIPAL)
            self._prepared = [(login, login.step(None))]
        except LockError as error:
            self.failure = error
            kind = ConnectionDropped if isinstance(error, BackendUnavailable) else AuthFailedError
            raise kind(str(error)) from error

    def begin(self) -> tuple[KerberosLogin, bytes]:
        """The login that was prepared, and its first message; each serves once."""
        return self._prepared.pop()

    def give_reason(self, outcomes: Iterable[Any]) -> None:
        """Tell why a login failed to the errors of requests that waited for it: kazoo's own say nothing."""
        for outcome in outcomes:
            if isinstance(outcome, AuthFailedError):
                outcome.__cause__ = self.failure


class _Mechanism:
    """One login, as pure-sasl calls it."""

    def __init__(self, sasl: Any, *, by: TicketLogin) -> None:  # noqa: ARG002  # the signature that it wants
        self.complete = False
        self._by = by
        self._login: KerberosLogin | None = None

    def process(self, challenge: bytes | None = None) -> bytes:
        """The answer to a challenge; an error is kept for whoever explains it."""
        if self._login is None:
            self._login, first = self._by.begin()
            return first
        try:
            return self._answer(self._login, challenge)
        except LockError as error:
            self._by.failure = error
            raise

    def _answer(self, login: KerberosLogin, challenge: bytes | None) -> bytes:
        if not challenge:
            told = f"give its server a JAAS file with a Krb5LoginModule, or leave out {_MECHANISM}"
            raise BackendRefused(f"ZooKeeper does not answer the login by Kerberos: {told}", key=_MECHANISM)
        answer = login.step(challenge)
        self.complete = login.is_complete
        return answer

    def dispose(self) -> None:
        """Nothing secret is kept."""


class Logins:
    """Stands before two methods of kazoo's connection, which it has not replaced yet.

    Args:
        connection: kazoo's.
        ticket: What is shown; None for a login by password.
    """

    def __init__(self, connection: Any, ticket: TicketLogin | None) -> None:
        self._connect = connection._connect  # noqa: SLF001  # no other place is passed before a session begins
        self._log_in = connection._authenticate_with_sasl  # noqa: SLF001  # no other place tells a login from the rest
        self._ticket = ticket
        self._drops = 0

    def connect(self, host: str, *address: Any) -> Any:
        """See `TicketLogin.prepare`."""
        if self._ticket is not None:
            self._ticket.prepare(host)
        return self._connect(host, *address)

    def log_in(self, host: str, timeout: float) -> None:
        """See `make_client`."""
        try:
            self._log_in(host, timeout)
        except SessionClosedRequireSaslError as error:
            raise AuthFailedError("the server ended the session") from error
        except AuthFailedError as error:
            self._drops += 1
            if isinstance(error.__cause__, ConnectionDropped) and self._drops < _DROPS:
                raise ConnectionDropped("the link ended within a login") from error
            raise
        self._drops = 0


def make_client(security: Security, ticket: TicketLogin | None, **given: Any) -> Any:
    """A client of kazoo that logs in as `security` has it.

    It takes a refused login for one, and tries again where a link ended within a login. A server that wants a login
    answers a wrong one by an error that kazoo does not expect there: its thread would end. Others end the link, as one
    does that stops at that moment: kazoo would give the session up at once.
    """
    client = KazooClient(**security.arguments, **(ticket.arguments if ticket else {}), **given)
    connection = client._connection  # noqa: SLF001  # see `Logins`
    logins = Logins(connection, ticket)
    connection._connect = logins.connect  # noqa: SLF001  # see there
    connection._authenticate_with_sasl = logins.log_in  # noqa: SLF001  # see there
    return client
