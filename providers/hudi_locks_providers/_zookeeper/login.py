"""Logins of kazoo by SASL: what it makes of a refusal, and for Kerberos a mechanism of pure-sasl's that asks gssapi.

pure-sasl's own one needs another package, kerberos, which is not maintained any more. ZooKeeper's protocol names no
mechanism, so this one may have a name of its own beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kazoo.exceptions import AuthFailedError, SessionClosedRequireSaslError
from kazoo.protocol.connection import ConnectionDropped

from hudi_locks.config import security_keys
from hudi_locks.errors import BackendRefused, BackendUnavailable, LockError
from hudi_locks_providers._kerberos import KerberosLogin, list_principals

__all__ = ["TicketLogin", "observe_logins"]

_NAME: Final = "GSSAPI of hudi-locks"
_MECHANISM: Final = security_keys.ZOOKEEPER_SASL_MECHANISM.name


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
        self.principal = principal
        self.failure: LockError | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """What kazoo's client is made with."""
        return {"sasl_options": {"mechanism": _NAME, "by": self}}

    def give_reason(self, outcomes: Iterable[Any]) -> None:
        """Tell why a login failed to the errors of requests that waited for it: kazoo's own say nothing."""
        for outcome in outcomes:
            if isinstance(outcome, AuthFailedError):
                outcome.__cause__ = self.failure


def observe_logins(connection: Any, ticket: TicketLogin | None) -> None:
    """Let kazoo's connection take a refused login for one, and try again when no key distribution center answers.

    A server that wants a login answers a wrong one by an error that kazoo does not expect there: its thread would end.
    For the other, kazoo would give the session up.
    """
    log_in = connection._authenticate_with_sasl  # noqa: SLF001  # no other place tells a login from the rest

    def observed(host: str, timeout: float) -> None:
        if ticket is not None:
            ticket.failure = None
        try:
            log_in(host, timeout)
        except SessionClosedRequireSaslError as error:
            raise AuthFailedError("the server ended the session") from error
        except AuthFailedError as error:
            if ticket is not None and isinstance(ticket.failure, BackendUnavailable):
                raise ConnectionDropped(str(ticket.failure)) from error
            raise

    connection._authenticate_with_sasl = observed  # noqa: SLF001  # see above


class _Mechanism:
    """One login, as pure-sasl calls it."""

    def __init__(self, sasl: Any, *, by: TicketLogin) -> None:
        self.complete = False
        self._by = by
        self._principals = list_principals(by.principal, sasl.host)
        self._login: KerberosLogin | None = None

    def process(self, challenge: bytes | None = None) -> bytes:
        """The answer to a challenge; an error is kept for whoever explains it."""
        try:
            return self._step(challenge)
        except LockError as error:
            self._by.failure = error
            raise

    def _step(self, challenge: bytes | None) -> bytes:
        if self._login is None:
            self._login = KerberosLogin(self._principals, security_keys.ZOOKEEPER_SASL_PRINCIPAL)
        elif not challenge:
            told = f"give its server a JAAS file with a Krb5LoginModule, or leave out {_MECHANISM}"
            raise BackendRefused(f"ZooKeeper does not answer the login by Kerberos: {told}", key=_MECHANISM)
        answer = self._login.step(challenge)
        self.complete = self._login.is_complete
        return answer

    def dispose(self) -> None:
        """Nothing secret is kept."""
