"""Logins of kazoo by SASL, on stand-ins for pure-sasl and gssapi: tests/servers has the real ones."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from fake_gssapi import PEER_TOKEN, UNREACHABLE, FakeGssapi, GSSError, MissingCredentialsError, offer
from hudi_locks_providers._zookeeper.login import TicketLogin, observe_logins
from hudi_locks_providers._zookeeper.security import Security
from hudi_locks_providers._zookeeper.session import Session, SessionListener, translate
from hudi_locks_providers._zookeeper.settings import Settings
from kazoo.exceptions import AuthFailedError, SessionClosedRequireSaslError
from kazoo.protocol.connection import ConnectionDropped
from kazoo.protocol.serialization import Exists

from hudi_locks import BackendRefused, SystemClock
from hudi_locks.errors import LockError

PRINCIPAL = "zookeeper/h@R"


@pytest.fixture
def gssapi(monkeypatch: pytest.MonkeyPatch) -> FakeGssapi:
    return FakeGssapi(monkeypatch)


@pytest.fixture(autouse=True)
def mechanisms(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Those that pure-sasl knows."""
    module: Any = ModuleType("puresasl.mechanisms")
    module.mechanisms = {}
    package: Any = ModuleType("puresasl")
    package.mechanisms = module
    monkeypatch.setitem(sys.modules, "puresasl", package)
    monkeypatch.setitem(sys.modules, "puresasl.mechanisms", module)
    return module.mechanisms  # type: ignore[no-any-return]


class Connection:
    """kazoo's, which asks a mechanism of pure-sasl and answers with what is planned."""

    def __init__(self, mechanisms: dict[str, Any], ticket: TicketLogin, *answers: bytes | Exception) -> None:
        options = ticket.arguments["sasl_options"]
        self.made = mechanisms[options.pop("mechanism")](SimpleNamespace(host="h"), **options)
        self.answers = list(answers)
        self.sent: list[bytes] = []
        observe_logins(self, ticket)

    def _authenticate_with_sasl(self, host: str, timeout: float) -> None:
        challenge: bytes | None = None
        while not self.made.complete:
            try:
                self.sent.append(self.made.process(challenge=challenge))
            except LockError as error:
                raise AuthFailedError("Unknown error") from error
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            challenge = answer


@pytest.mark.usefixtures("gssapi")
def test_a_login_shows_the_ticket_and_asks_for_no_protection(mechanisms: dict[str, Any]) -> None:
    ticket = TicketLogin(PRINCIPAL)
    connection = Connection(mechanisms, ticket, PEER_TOKEN, offer(7), b"")
    connection._authenticate_with_sasl("h", 1.0)
    assert connection.sent == [b"ticket for zookeeper/h@R", b"", b"S\x01\0\0\0"]
    assert ticket.failure is None


@pytest.mark.usefixtures("gssapi")
def test_a_server_that_answers_no_login_is_told_apart(mechanisms: dict[str, Any]) -> None:
    ticket = TicketLogin(PRINCIPAL)
    with pytest.raises(AuthFailedError):
        Connection(mechanisms, ticket, b"")._authenticate_with_sasl("h", 1.0)
    assert str(ticket.failure).startswith(
        "ZooKeeper does not answer the login by Kerberos: give its server a JAAS file"
    )


@pytest.mark.usefixtures("gssapi")
def test_a_server_that_ends_the_session_refuses_the_login(mechanisms: dict[str, Any]) -> None:
    connection = Connection(mechanisms, TicketLogin(PRINCIPAL), SessionClosedRequireSaslError())
    with pytest.raises(AuthFailedError, match="the server ended the session"):
        connection._authenticate_with_sasl("h", 1.0)


def test_kazoo_tries_again_while_no_key_distribution_center_answers(
    gssapi: FakeGssapi, mechanisms: dict[str, Any]
) -> None:
    ticket = TicketLogin(PRINCIPAL)
    gssapi.raises[PRINCIPAL] = GSSError(UNREACHABLE, "no KDC")
    with pytest.raises(ConnectionDropped, match="no KDC"):
        Connection(mechanisms, ticket)._authenticate_with_sasl("h", 1.0)
    gssapi.raises.clear()
    Connection(mechanisms, ticket, PEER_TOKEN, offer(1), b"")._authenticate_with_sasl("h", 1.0)
    assert ticket.failure is None


def test_requests_that_waited_for_a_login_tell_why_it_failed(gssapi: FakeGssapi, mechanisms: dict[str, Any]) -> None:
    settings = Settings("h:1", "", 30.0, 30.0, Security(principal=PRINCIPAL))
    session = Session(settings, clock=SystemClock(), listener=SessionListener())
    assert session._login is not None
    gssapi.raises[PRINCIPAL] = MissingCredentialsError(1, "none")
    with pytest.raises(AuthFailedError):
        Connection(mechanisms, session._login)._authenticate_with_sasl("h", 1.0)
    session._client = SimpleNamespace(connected=True, _call=lambda _, slot: slot.set_exception(AuthFailedError()))
    (outcome,) = session.call(Exists("/a", None))
    said = translate(outcome, "/a")
    assert isinstance(said, BackendRefused)
    assert "this process has no Kerberos ticket (none)" in str(said)
    assert "refuses the login by SASL for /a: check" in str(translate(AuthFailedError(), "/a"))
