"""One connection to ZooKeeper: kazoo's client, of which only connection, session and requests are used."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
from collections.abc import Callable
from typing import Any, Final

from kazoo.exceptions import (
    AuthFailedError,
    BadArgumentsError,
    ConnectionClosedError,
    ConnectionLoss,
    NoAuthError,
    OperationTimeoutError,
    SessionClosedRequireSaslError,
    SessionExpiredError,
    SessionMovedError,
    UnimplementedError,
    WriterNotClosedException,
)
from kazoo.protocol.serialization import Connect
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.retry import KazooRetry
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE

from hudi_locks.clock import Clock
from hudi_locks.errors import BackendRefused, BackendUnavailable, LockError, ProviderClosed
from hudi_locks_providers._zookeeper.flight import Errand, Flight, submit
from hudi_locks_providers._zookeeper.handler import Handler
from hudi_locks_providers._zookeeper.login import TicketLogin, make_client
from hudi_locks_providers._zookeeper.settings import Settings

__all__ = ["Session", "SessionListener", "is_lost", "translate"]

logging.getLogger("kazoo").addHandler(logging.NullHandler())
"""What it logs is for programs that set up logging; without that its lines would stand among the user's own."""
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0
_HANDSHAKES: Final = 6
"""How many servers may be tried within one session time-out."""
_SHORTEST_HANDSHAKE_S: Final = 1.0
_LOSSES: Final = (ConnectionLoss, ConnectionClosedError, OperationTimeoutError, SessionExpiredError, SessionMovedError)
_REFUSALS: Final = (BadArgumentsError, NoAuthError, UnimplementedError)


class SessionListener:
    """Hears of a session's fate, on kazoo's connection thread: it must not wait for an answer of the server."""

    def session_suspended(self) -> None:
        """The link is down; the session may go on."""

    def session_resumed(self) -> None:
        """There is a link, with the old session or a new one."""

    def session_lost(self) -> None:
        """The session is over, and its nodes are gone; a new one is not there yet."""


class Session:
    """The present session, and after its end the next one. Thread-safe; of no use in a forked child.

    Attributes:
        id: The present session's; None before the first and between two.
        timeout_s: What the server granted; the wish until then.
        suspended_s: Since when the link is down, on the monotonic clock; None while it is up.
    """

    def __init__(self, settings: Settings, *, clock: Clock, listener: SessionListener) -> None:
        self.settings = settings
        self.id: int | None = None
        self.timeout_s: float = settings.session_timeout_s
        self.suspended_s: float | None = None
        self._clock = clock
        self._listener = listener
        self._starting = threading.Lock()
        self._client: Any = None
        self._handler: Handler | None = None
        self._login = TicketLogin.from_security(settings.security)
        self._live = threading.Event()
        """Set while there is a link, and when a login was refused: whoever waits is told at once."""
        self._is_refused = False
        self._closed = False

    def await_link(self, timeout_s: float = math.inf) -> None:
        """Return once connected; connects on first use.

        Args:
            timeout_s: Longest wait; never longer than the connection time-out.

        Raises:
            BackendUnavailable: No server could be reached in time; names them.
            BackendRefused: One refuses the login, or its certificate is not trusted.
            ProviderClosed: Closed, before or meanwhile.
        """
        self._start()
        patience_s = min(timeout_s, self.settings.connection_timeout_s)
        linked = self.is_linked or self._clock.wait(self._live, patience_s)
        if self._closed:
            raise ProviderClosed("the zookeeper lock provider is closed")
        if linked and not self._is_refused:
            return
        raise self._explain_silence(patience_s)

    def _explain_silence(self, patience_s: float) -> LockError:
        hosts = f"{self.settings.hosts}{self.settings.chroot}"
        if self._login is not None and self._login.failure is not None:
            return self._login.failure
        if self._is_refused:
            return _refuse_login(hosts)
        if self._handler is not None and (mistrusted := self._handler.mistrusted):
            told = "give its authority by hudi_locks.zookeeper.ssl.ca_file, or the host that it is for in the url"
            what = f"the certificate of ZooKeeper at {hosts} is not trusted"
            return BackendRefused(f"{what} ({mistrusted}): {told}", key=hosts)
        return BackendUnavailable(
            f"no ZooKeeper server of {hosts} could be reached within {patience_s:.1f} s; is one of them running, and"
            " does the network let it through?",
            key=hosts,
        )

    def _start(self) -> None:
        if self._handler is not None and self._handler.is_connecting():
            return
        with self._starting:
            if self._closed or (self._handler is not None and self._handler.is_connecting()):
                return
            self._stop()
            self._is_refused = False
            self._live.clear()
            servers = self.settings.hosts.count(",") + 1
            self._handler = Handler(self.settings.connection_timeout_s / servers)
            self._client = self._make_client(self._handler)
            self._client.start_async()

    def _make_client(self, handler: Handler) -> Any:
        client = make_client(
            self.settings.security,
            self._login,
            hosts=self.settings.hosts,
            timeout=self.settings.session_timeout_s,
            handler=handler,
            connection_retry=KazooRetry(max_tries=-1, delay=_FIRST_PAUSE_S, max_delay=_LONGEST_PAUSE_S),
        )
        client.add_listener(self._hear)
        self._observe_handshake(client)
        return client

    def _observe_handshake(self, client: Any) -> None:
        """Learn id and time-out that the server grants: kazoo keeps these to itself until it says connected.

        A server that has just been started may accept a connection and never answer on it. kazoo would wait for a
        whole session time-out, at whose end the session is gone.
        """
        connection = client._connection  # noqa: SLF001  # see above
        invoke = connection._invoke  # noqa: SLF001

        def observed(timeout: float, request: Any, xid: int | None = None) -> Any:
            is_handshake = isinstance(request, Connect)
            patience_s = min(timeout, max(_SHORTEST_HANDSHAKE_S, timeout / _HANDSHAKES)) if is_handshake else timeout
            answer = invoke(patience_s, request, xid)
            if is_handshake and answer[0].time_out > 0:
                self.id, self.timeout_s = answer[0].session_id, answer[0].time_out / 1000
            return answer

        connection._invoke = observed  # noqa: SLF001

    def _hear(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self.suspended_s, self._is_refused = None, False
            self._live.set()
            self._listener.session_resumed()
            return
        self._note_end()
        self.suspended_s = self._clock.monotonic()
        if state == KazooState.LOST:
            self.id = None
            self._listener.session_lost()
        else:
            self._listener.session_suspended()

    def _note_end(self) -> None:
        """A session whose login was refused ends twice: kazoo closes it, too."""
        client = self._client
        if client is not None and client._state == KeeperState.AUTH_FAILED:  # noqa: SLF001  # told nowhere
            self._is_refused = True
            self._live.set()
        elif not self._is_refused:
            self._live.clear()

    @property
    def acl(self) -> list[Any]:
        """Who may do what with nodes that are made."""
        return list(CREATOR_ALL_ACL if self.settings.security.restricts else OPEN_ACL_UNSAFE)

    @property
    def credentials(self) -> tuple[int, bytes] | None:
        """Id and password of the session, with which another connection could go on with it."""
        client = self._client
        return None if client is None else client.client_id

    @property
    def is_linked(self) -> bool:
        """Whether requests would be sent now."""
        client = self._client
        return client is not None and bool(client.connected)

    def call(self, *requests: Any) -> list[Any]:
        """Send requests together and wait for their answers: for each a value or an exception.

        Nothing is sent while the link is down; a request that was sent and not answered ends with `ConnectionLoss`.
        """
        client = self._client
        if not requests:
            return []
        if client is None or not client.connected:
            return [ConnectionLoss()] * len(requests)
        flight = Flight(len(requests))
        for request, slot in zip(requests, flight.slots, strict=True):
            submit(client, request, slot)
        outcomes = flight.wait(self.settings.connection_timeout_s)
        if self._login is not None and self._login.failure is not None:
            self._login.give_reason(outcomes)
        return outcomes

    def ask(self, request: Any, heard: Callable[[Any], None]) -> None:
        """Send one request; `heard` gets its outcome on the connection's thread, which may call this too."""
        client = self._client
        if client is None:
            heard(ConnectionLoss())
        else:
            submit(client, request, Errand(heard))

    def close(self) -> None:
        """End the session, and with it all its nodes; ends the threads, and waits for a link. May be called twice."""
        with self._starting:
            self._closed = True
            self._live.set()
            self._stop()

    def _stop(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        client.remove_listener(self._hear)
        with contextlib.suppress(WriterNotClosedException, OSError, AttributeError):
            client.stop()
        with contextlib.suppress(Exception):
            client.close()


def is_lost(outcome: Any) -> bool:
    """Whether it is not known if the request took effect, or known that it was not sent."""
    return isinstance(outcome, _LOSSES)


def _refuse_login(key: str) -> LockError:
    told = "check hudi_locks.zookeeper.sasl.user and ….password, or for Kerberos ….principal, and the servers' logs"
    return BackendRefused(f"ZooKeeper refuses the login by SASL for {key}: {told}", key=key)


def translate(error: Exception, path: str) -> LockError:
    """What an exception of kazoo means to a user of locks."""
    name = type(error).__name__
    if isinstance(error, NoAuthError):
        return BackendRefused(
            f"ZooKeeper refuses access to {path} (NoAuth): its ACL must let this client read, create and delete below"
            " it; Hudi's nodes are open to all, and for others there is hudi_locks.zookeeper.digest",
            key=path,
        )
    if isinstance(error, AuthFailedError):
        return error.__cause__ if isinstance(error.__cause__, LockError) else _refuse_login(path)
    if isinstance(error, SessionClosedRequireSaslError):
        told = "give hudi_locks.zookeeper.sasl.user and ….password, or for Kerberos ….mechanism=GSSAPI"
        return BackendRefused(f"ZooKeeper wants a login by SASL for {path}: {told}", key=path)
    if isinstance(error, UnimplementedError):
        return BackendRefused(f"{path}: this ZooKeeper server is older than 3.5, which is needed", key=path)
    if isinstance(error, _REFUSALS):
        return BackendRefused(f"ZooKeeper refuses {path}: {name} {error}".rstrip(), key=path)
    return BackendUnavailable(f"ZooKeeper did not answer for {path}: {name} {error}".rstrip(), key=path)
