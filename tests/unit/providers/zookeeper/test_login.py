"""Logins of kazoo by SASL, on stand-ins for pure-sasl and gssapi: tests/servers has the real ones."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from fake_gssapi import PEER_TOKEN, UNREACHABLE, FakeGssapi, GSSError, MissingCredentialsError, offer
from hudi_locks_providers._zookeeper.login import Logins, TicketLogin
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
        self._mechanisms, self._ticket, self.answers = mechanisms, ticket, list(answers)
        self.sent: list[bytes] = []
        logins = Logins(self, ticket)
        self._connect, self._authenticate_with_sasl = logins.connect, logins.log_in  # type: ignore[method-assign]

    def _connect(self, host: str, *address: Any) -> None:
        self.sent.append(b"session")
        self._authenticate_with_sasl(host, 1.0)

    def _authenticate_with_sasl(self, host: str, timeout: float) -> None:
        options = self._ticket.arguments["sasl_options"]
        made = self._mechanisms[options.pop("mechanism")](SimpleNamespace(host=host), **options)
        challenge: bytes | None = None
        while not made.complete:
            try:
                self.sent.append(made.process(challenge=challenge))
            except LockError as error:
                raise AuthFailedError("Unknown error") from error
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            challenge = answer

    def connect(self) -> list[bytes]:
        self._connect("h", "10.0.0.1", 2181)
        return self.sent


def dropped() -> AuthFailedError:
    error = AuthFailedError("Connection dropped in SASL")
    error.__cause__ = ConnectionDropped("outside")
    return error


@pytest.mark.usefixtures("gssapi")
def test_a_login_shows_the_ticket_and_asks_for_no_protection(mechanisms: dict[str, Any]) -> None:
    ticket = TicketLogin(PRINCIPAL)
    sent = Connection(mechanisms, ticket, PEER_TOKEN, offer(7), b"").connect()
    assert sent == [b"session", b"ticket for zookeeper/h@R", b"", b"S\x01\0\0\0"]
    assert ticket.failure is None


@pytest.mark.usefixtures("gssapi")
def test_a_server_that_answers_no_login_is_told_apart(mechanisms: dict[str, Any]) -> None:
    ticket = TicketLogin(PRINCIPAL)
    with pytest.raises(AuthFailedError):
        Connection(mechanisms, ticket, b"").connect()
    assert str(ticket.failure).startswith("ZooKeeper does not answer the login by Kerberos: give its server a JAAS")


@pytest.mark.usefixtures("gssapi")
def test_a_server_that_ends_the_session_refuses_the_login(mechanisms: dict[str, Any]) -> None:
    connection = Connection(mechanisms, TicketLogin(PRINCIPAL), SessionClosedRequireSaslError())
    with pytest.raises(AuthFailedError, match="the server ended the session"):
        connection.connect()


@pytest.mark.usefixtures("gssapi")
def test_links_that_end_within_a_login_are_a_refusal_if_they_go_on(mechanisms: dict[str, Any]) -> None:
    connection = Connection(mechanisms, TicketLogin(PRINCIPAL))
    for _ in range(2):
        connection.answers = [dropped()]
        with pytest.raises(ConnectionDropped, match="the link ended within a login"):
            connection.connect()
    connection.answers = [PEER_TOKEN, offer(1), b""]
    connection.connect()
    for expected in (ConnectionDropped, ConnectionDropped, AuthFailedError):
        connection.answers = [dropped()]
        with pytest.raises(expected):
            connection.connect()


def test_without_a_ticket_no_session_begins(gssapi: FakeGssapi, mechanisms: dict[str, Any]) -> None:
    """It would not live as long as a key distribution center may take; kazoo tries again while none answers."""
    ticket = TicketLogin(PRINCIPAL)
    connection = Connection(mechanisms, ticket, PEER_TOKEN, offer(1), b"")
    gssapi.raises[PRINCIPAL] = GSSError(UNREACHABLE, "no KDC")
    with pytest.raises(ConnectionDropped, match="no KDC"):
        connection.connect()
    gssapi.raises[PRINCIPAL] = MissingCredentialsError(1, "none")
    with pytest.raises(AuthFailedError, match=r"no valid Kerberos ticket \(none\)"):
        connection.connect()
    assert connection.sent == []
    gssapi.raises.clear()
    connection.connect()
    assert ticket.failure is None


@pytest.mark.usefixtures("gssapi")
def test_requests_that_waited_for_a_login_tell_why_it_failed(mechanisms: dict[str, Any]) -> None:
    settings = Settings("h:1", "", 30.0, 30.0, Security(principal=PRINCIPAL))
    session = Session(settings, clock=SystemClock(), listener=SessionListener())
    assert session._login is not None
    with pytest.raises(AuthFailedError):
        Connection(mechanisms, session._login, b"defective").connect()
    session._client = SimpleNamespace(connected=True, _call=lambda _, slot: slot.set_exception(AuthFailedError()))
    (outcome,) = session.call(Exists("/a", None))
    said = translate(outcome, "/a")
    assert isinstance(said, BackendRefused)
    assert "(a token is defective)" in str(said)
    assert "refuses the login by SASL for /a: check" in str(translate(AuthFailedError(), "/a"))
