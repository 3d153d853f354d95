"""Calls of a Hive Metastore over Thrift: a connection for each call at a time, and another metastore when one fails."""

from __future__ import annotations

import getpass
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hudi_locks.config import Options
from hudi_locks.errors import BackendRefused, BackendUnavailable
from hudi_locks.lock import import_extra
from hudi_locks.lock.lease import generation
from hudi_locks.redaction import open_log
from hudi_locks_providers._hive.settings import Address, find_addresses
from hudi_locks_providers._wire.hive_lock import MOST_LETTERS, LockRow

__all__ = ["LockGone", "Metastore"]

_logger = open_log(__name__)
_CONNECT_MS: Final = 4_000
_ANSWER_MS: Final = 20_000
_MOST_IDLE: Final = 8
_PROVIDER: Final = "hive_metastore"
_STUBS: Final = "thrift_files.libraries.thrift_hive_metastore_client"
_UNKNOWN_METHOD: Final = 1
_GONE: Final = ("NoSuchLockException", "NoSuchTxnException", "TxnAbortedException")


class LockGone(Exception):  # an answer of the metastore, never seen outside
    """The metastore knows no such lock: it was released, removed, or ran out."""


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
            handle.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            handle.settimeout(_ANSWER_MS / 1000)
        return False  # closed, or with an answer that nobody waits for


class Metastore:
    """All connections of one provider. Thread-safe.

    Two calls at a time use two connections, so that a slow one holds up no heartbeat. A forked child opens its own.

    Args:
        options: For the addresses, which are looked for when the first call is made.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._generation = generation()
        self._idle: list[_Link] = []
        self._addresses: list[Address] = []

    @property
    def place(self) -> str:
        """The metastores, for a person."""
        return ", ".join(f"thrift://{host}:{port}" for host, port in self._addresses)

    def lock(self, database: str, tables: Sequence[str], *, host: str, agent: str) -> tuple[int, bool]:
        """Ask for an exclusive lock on tables of a database, all in one: its id, and whether it is granted."""
        types = self._types()
        parts = [
            types.LockComponent(
                type=types.LockType.EXCLUSIVE,
                level=types.LockLevel.TABLE,
                dbname=database,
                tablename=table,
                operationType=types.DataOperationType.UNSET,
                isTransactional=None,  # the JVM's client leaves these two out, and old metastores do not know them
                isDynamicPartitionWrite=None,
            )
            for table in tables
        ]
        answer = self.call(
            "lock", types.LockRequest(component=parts, user=_user(), hostname=host[:MOST_LETTERS], agentInfo=agent)
        )
        return answer.lockid, answer.state == types.LockState.ACQUIRED

    def unlock(self, lock_id: int) -> None:
        """Let go of a lock, granted or waiting; done twice if the first answer is lost, for ids are used once.

        Raises:
            LockGone: There is no such lock; newer metastores do not tell.
        """
        request = self._types().UnlockRequest(lockid=lock_id)
        try:
            self.call("unlock", request)
        except BackendUnavailable:
            self.call("unlock", request)

    def heartbeat(self, lock_id: int) -> None:
        """Tell that the holder lives.

        Raises:
            LockGone: There is no such lock.
        """
        self.call("heartbeat", self._types().HeartbeatRequest(lockid=lock_id, txnid=0))

    def find_locks(self, database: str, table: str) -> list[LockRow]:
        """All locks on a table, granted and waiting, in the order of their ids.

        Hive 2 keeps names as they were sent, and takes `Trips` and `trips` for two tables; later ones keep them in
        small letters, and do not always find them by another form.
        """
        found = self._find_exactly(database, table)
        if not found and (database, table) != (database.lower(), table.lower()):
            found = self._find_exactly(database.lower(), table.lower())
        return sorted(found, key=lambda row: row.lock_id)

    def find_locks_like(self, database: str, prefix: str) -> list[LockRow]:
        """All locks on what has a name in small letters that begins so, in the order of their ids."""
        spelt = dict.fromkeys((database, database.lower()))
        rows = {(row.lock_id, row.table): row for name in spelt for row in self._show(name)}
        return [rows[known] for known in sorted(rows) if rows[known].table.startswith(prefix)]

    def _find_exactly(self, database: str, table: str) -> list[LockRow]:
        return [row for row in self._show(database, table) if (row.database, row.table) == (database, table)]

    def _show(self, database: str, table: str | None = None) -> list[LockRow]:
        types = self._types()
        answer = self.call("show_locks", types.ShowLocksRequest(dbname=database, tablename=table))
        return [LockRow.from_element(one, granted=types.LockState.ACQUIRED) for one in answer.locks or ()]

    def find_setting(self, name: str, default: str) -> str:
        """A setting of the metastore itself; the default if it does not tell."""
        try:
            return str(self.call("get_config_value", name, default))
        except BackendRefused:
            return default

    def call(self, method: str, *arguments: Any) -> Any:
        """Make one call.

        Raises:
            LockGone: The lock is not there.
            BackendUnavailable: No metastore could be reached, or one did not answer; the call may have taken effect.
            BackendRefused: It does not offer this call, or the lock belongs to a transaction of Hive.
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
            keep = True
            raise self._translate(method, error) from error
        finally:
            self._give_back(link, keep=keep)
        return answer

    def pass_on(self, method: str, request: Callable[[], Any]) -> Any:  # noqa: ARG002  # for whoever stands between
        """Make one call over a connection: all of them pass here."""
        return request()

    def _translate(self, method: str, error: Exception) -> Exception:
        name, facts = type(error).__name__, {"uris": self.place, "method": method}
        said = getattr(error, "message", None) or str(error)
        if name in _GONE:
            return LockGone(said)
        if name == "TxnOpenException":
            return BackendRefused(
                f"the metastore ({self.place}) refuses {method}: {said}; the lock belongs to a transaction of Hive,"
                " which is ended by ABORT TRANSACTIONS",
                **facts,
            )
        if name == "TApplicationException" and getattr(error, "type", None) != _UNKNOWN_METHOD:
            return BackendUnavailable(f"the metastore ({self.place}) failed at {method}: {said}", **facts)
        return BackendRefused(
            f"the metastore ({self.place}) does not do {method}: {said}; a catalog without locks, such as AWS Glue,"
            " cannot be used: take the dynamodb, storage or zookeeper provider",
            **facts,
        )

    def _types(self) -> Any:
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
        addresses = self._addresses = self._addresses or find_addresses(self._options)
        for address in addresses:
            link = self._try_open(*address)
            if link is not None:
                self._addresses = [address, *(other for other in addresses if other != address)]
                return link
        raise BackendUnavailable(f"no metastore can be reached: {self.place}", uris=self.place)

    def _try_open(self, host: str, port: int) -> _Link | None:
        sockets = import_extra("thrift.transport.TSocket", provider=_PROVIDER)
        transport = import_extra("thrift.transport.TTransport", provider=_PROVIDER)
        protocol = import_extra("thrift.protocol.TBinaryProtocol", provider=_PROVIDER)
        stubs = import_extra(f"{_STUBS}.ThriftHiveMetastore", provider=_PROVIDER)
        opened = sockets.TSocket(host, port)
        opened.setTimeout(_CONNECT_MS)
        try:
            opened.open()
        except (transport.TTransportException, OSError) as error:
            _logger.warning("thrift://%s:%d cannot be reached: %s", host, port, error)
            return None
        opened.setTimeout(_ANSWER_MS)
        opened.handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return _Link(stubs.Client(protocol.TBinaryProtocol(transport.TBufferedTransport(opened))), opened)

    def close(self) -> None:
        """Close the idle connections; a later call opens new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        if self._generation == generation():
            for link in idle:
                link.socket.close()


def _user() -> str:
    """As the JVM's `user.name`; a user without a name is no reason to fail."""
    try:
        return getpass.getuser()[:MOST_LETTERS]
    except (KeyError, OSError):
        return "unknown"
