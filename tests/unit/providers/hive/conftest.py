"""A stand-in for a metastore that can lose answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hudi_locks_providers._hive import metastore
from hudi_locks_providers.hive_metastore import HiveMetastoreLockProvider
from thrift.transport.TTransport import TTransportException
from thrift_files.libraries.thrift_hive_metastore_client import ttypes

from hudi_locks import ManualClock


class MetastoreStub:
    """The calls that locks need, on rows in memory. `before` and `after` see each call and may raise."""

    def __init__(self) -> None:
        self.rows: dict[int, list[Any]] = {}
        self.calls: list[str] = []
        self.last_id = 0
        self.before: Callable[[str], None] = lambda _: None
        self.after: Callable[[str], None] = lambda _: None
        self.reached: list[tuple[str, int]] = []
        self.down: set[str] = set()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            self.calls.append(name)
            self.before(name)
            answer = getattr(self, f"_{name}")(*arguments)
            self.after(name)
            return answer

        return call

    def _lock(self, request: Any) -> Any:
        self.last_id += 1
        taken = {row.tablename for rows in self.rows.values() for row in rows}
        granted = not any(part.tablename in taken for part in request.component)
        state = ttypes.LockState.ACQUIRED if granted else ttypes.LockState.WAITING
        self.rows[self.last_id] = [self._row(request, part, state) for part in request.component]
        return ttypes.LockResponse(lockid=self.last_id, state=state)

    def _row(self, request: Any, part: Any, state: int) -> Any:
        return ttypes.ShowLocksResponseElement(
            lockid=self.last_id,
            dbname=part.dbname,
            tablename=part.tablename,
            state=state,
            type=part.type,
            txnid=0,
            lastheartbeat=1,
            acquiredat=1,
            user=request.user,
            hostname=request.hostname,
            agentInfo=request.agentInfo,
        )

    def _unlock(self, request: Any) -> None:
        if self.rows.pop(request.lockid, None) is None:
            raise ttypes.NoSuchLockException(message="no such lock")

    def _heartbeat(self, request: Any) -> None:
        assert request.txnid == 0
        if request.lockid not in self.rows:
            raise ttypes.NoSuchLockException(message="no such lock")

    def _show_locks(self, request: Any) -> Any:
        return ttypes.ShowLocksResponse(locks=[row for rows in self.rows.values() for row in rows])

    def _get_config_value(self, name: str, default: str) -> str:
        return {"hive.txn.timeout": "300s", "hive.compactor.initiator.on": "true"}.get(name, default)

    def lose_answers(self, *methods: str, times: int = 1) -> None:
        """Let that many answers of these calls not come, after their effect."""
        left = [times]

        def lose(method: str) -> None:
            if method in methods and left[0]:
                left[0] -= 1
                raise TTransportException(message="planted: no answer")

        self.after = lose

    def open(self, host: str, port: int) -> Any:
        self.reached.append((host, port))
        link_socket = SimpleNamespace(close=lambda: None)
        link = SimpleNamespace(client=self, socket=link_socket, is_open=lambda: True)
        return None if host in self.down else link


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> MetastoreStub:
    made = MetastoreStub()
    monkeypatch.setattr(metastore.Metastore, "_try_open", lambda _, host, port: made.open(host, port))
    return made


@pytest.fixture
def client(stub: MetastoreStub, clock: ManualClock) -> Iterator[Callable[..., HiveMetastoreLockProvider]]:
    """Make a provider over the stub."""
    made = []

    def make(**options: object) -> HiveMetastoreLockProvider:
        full: dict[str, object] = {
            "hoodie.write.lock.hivemetastore.database": "lake",
            "hoodie.write.lock.hivemetastore.table": "Trips",
            "hoodie.write.lock.hivemetastore.uris": "thrift://one:1,thrift://two",
            **options,
        }
        made.append(HiveMetastoreLockProvider(full, clock=clock, on_lost=lambda *_: None))
        return made[-1]

    yield make
    stub.before = stub.after = lambda _: None
    stub.down.clear()
    for provider in made:
        provider.close()
