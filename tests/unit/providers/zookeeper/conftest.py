"""A ZooKeeper in memory, to lose answers and to act between two requests. Real servers judge; see tests/servers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from hudi_locks_providers._zookeeper import client as client_module
from hudi_locks_providers._zookeeper.session import SessionListener
from hudi_locks_providers._zookeeper.settings import Settings
from hudi_locks_providers.zookeeper import ZooKeeperLockProvider
from kazoo.exceptions import ConnectionLoss, NoNodeError, NotEmptyError, RolledBackError, ZookeeperError
from kazoo.exceptions import NodeExistsError as TakenError
from kazoo.protocol.serialization import Create, Create2, Delete, Exists, GetChildren, Transaction
from kazoo.protocol.states import EventType
from kazoo.security import OPEN_ACL_UNSAFE

from hudi_locks import BackendUnavailable, Clock, Lease, LossReason, ManualClock, ProviderClosed

EPHEMERAL, SEQUENTIAL = 1, 2


@dataclass
class Node:
    data: bytes
    owner: int
    czxid: int
    counter: int = 0


@dataclass
class Tree:
    """The nodes; one lock around everything makes requests one after the other, as the server does."""

    nodes: dict[str, Node] = field(default_factory=lambda: {"": Node(b"", 0, 0)})
    zxid: int = 0
    watches: dict[str, list[Callable[[Any], None]]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    sessions: int = 0

    def children(self, path: str) -> list[str]:
        return [name.rpartition("/")[2] for name in self.nodes if name and name.rpartition("/")[0] == path]

    def apply(self, request: Any, session: int) -> Any:
        with self.lock:
            try:
                return self._apply(request, session)
            except ZookeeperError as error:
                return error

    def _apply(self, request: Any, session: int) -> Any:
        if isinstance(request, Transaction):
            return self._apply_all(request.operations, session)
        if isinstance(request, Create | Create2):
            return self._create(request, session)
        if isinstance(request, Delete):
            return self.delete(request.path)
        if isinstance(request, GetChildren):
            self._need(request.path)
            return self.children(request.path)
        if isinstance(request, Exists) and request.path not in self.nodes:
            return None
        node = self._need(request.path)
        if request.watcher is not None:
            self.watches.setdefault(request.path, []).append(request.watcher)
        return self._stat(request.path) if isinstance(request, Exists) else (node.data, self._stat(request.path))

    def _apply_all(self, operations: list[Any], session: int) -> list[Any]:
        """All of them, or none and the reason at its place."""
        before = {path: replace(node) for path, node in self.nodes.items()}
        outcomes: list[Any] = []
        for operation in operations:
            outcomes.append(self.apply(operation, session))
            if isinstance(outcomes[-1], Exception):
                self.nodes = before
                return [*[RolledBackError()] * (len(outcomes) - 1), outcomes[-1]]
        return outcomes

    def _need(self, path: str) -> Node:
        if path not in self.nodes:
            raise NoNodeError
        return self.nodes[path]

    def _stat(self, path: str) -> Any:
        node = self.nodes[path]
        children = len(self.children(path))
        return SimpleNamespace(czxid=node.czxid, ephemeralOwner=node.owner, numChildren=children, ctime=1, mtime=1)

    def _create(self, request: Any, session: int) -> Any:
        parent = self._need(request.path.rpartition("/")[0])
        path = request.path + (f"{parent.counter:010d}" if request.flags & SEQUENTIAL else "")
        if path in self.nodes:
            raise TakenError
        self.zxid += 1
        parent.counter = (parent.counter + 1 + 2**31) % 2**32 - 2**31
        self.nodes[path] = Node(request.data, session if request.flags & EPHEMERAL else 0, self.zxid)
        return (path, self._stat(path)) if isinstance(request, Create2) else path

    def delete(self, path: str) -> bool:
        self._need(path)
        if self.children(path):
            raise NotEmptyError
        del self.nodes[path]
        for watch in self.watches.pop(path, []):
            watch(SimpleNamespace(type=EventType.DELETED))
        return True


class TreeSession:
    """What `Session` is to the provider, on a tree. `between` runs before the request of that number."""

    def __init__(self, tree: Tree, clock: Clock, listener: SessionListener) -> None:
        self.tree = tree
        self.settings = Settings("memory:1", "", 30.0, 5.0)
        self.acl = list(OPEN_ACL_UNSAFE)
        self.timeout_s = 30.0
        self.suspended_s: float | None = None
        self.is_linked = True
        self.between: list[Callable[[], None]] = []
        self.losing: Callable[[Any], str] = lambda _: ""
        self._clock = clock
        self._listener = listener
        self._closed = False
        self.id = self._begin()

    def _begin(self) -> int:
        self.tree.sessions += 1
        return self.tree.sessions

    def await_link(self, timeout_s: float = 0.0) -> None:
        if self._closed:
            raise ProviderClosed("closed")
        if not self.is_linked:
            raise BackendUnavailable("no link")

    def call(self, *requests: Any) -> list[Any]:
        if self.between:
            self.between.pop(0)()
        if not self.is_linked:
            return [ConnectionLoss()] * len(requests)
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        fate = self.losing(request)
        outcome = ConnectionLoss() if fate == "request" else self.tree.apply(request, self.id)
        return ConnectionLoss() if fate == "answer" else outcome

    def ask(self, request: Any, heard: Callable[[Any], None]) -> None:
        heard(self._answer(request))

    def cut(self) -> None:
        self.is_linked, self.suspended_s = False, self._clock.monotonic()
        self._listener.session_suspended()

    def heal(self) -> None:
        self.is_linked, self.suspended_s = True, None
        self._listener.session_resumed()

    def expire(self) -> None:
        for path in [path for path, node in self.tree.nodes.items() if node.owner == self.id]:
            self.tree.delete(path)
        self.id = 0
        self._listener.session_lost()
        self.id = self._begin()
        self._listener.session_resumed()

    def close(self) -> None:
        self._closed = True
        for path in [path for path, node in self.tree.nodes.items() if node.owner == self.id]:
            self.tree.delete(path)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def tree(monkeypatch: pytest.MonkeyPatch) -> Tree:
    made = Tree()

    def make(settings: Settings, *, clock: Clock, listener: SessionListener) -> TreeSession:
        return TreeSession(made, clock, listener)

    monkeypatch.setattr(client_module, "Session", make)
    return made


@pytest.fixture
def lost() -> list[tuple[Lease, LossReason]]:
    return []


@pytest.fixture
def make(tree: Tree, clock: ManualClock, lost: list[Any]) -> Iterator[Callable[[], ZooKeeperLockProvider]]:
    made: list[ZooKeeperLockProvider] = []
    options = {
        f"hoodie.write.lock.zookeeper.{k}": v for k, v in {"url": "m", "base_path": "/b", "lock_key": "k"}.items()
    }

    def make_one() -> ZooKeeperLockProvider:
        made.append(ZooKeeperLockProvider(options, clock=clock, on_lost=lambda *loss: lost.append(loss)))
        return made[-1]

    yield make_one
    for provider in made:
        provider.close()
