"""The ZooKeeper provider when links break, sessions end, servers die, holders freeze and nodes are removed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_conformance.servers import LocalServer, Server, ZooKeeper, read_mode, start_ensemble, start_server
from hudi_locks_conformance.storm import start_process
from hudi_locks_providers.zookeeper import ZooKeeperLockProvider
from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState
from waiting import until

from hudi_locks import (
    BackendRefused,
    BackendUnavailable,
    Lease,
    LockLost,
    LockManager,
    LockScope,
    LossReason,
    Owner,
    SystemClock,
)

pytestmark = pytest.mark.servers

URL = "hoodie.write.lock.zookeeper.url"
BASE = "hoodie.write.lock.zookeeper.base_path"
SESSION = "hoodie.write.lock.zookeeper.session_timeout_ms"
CONNECTION = "hoodie.write.lock.zookeeper.connection_timeout_ms"
TABLE = LockScope.table()
ADA, BOB = Owner("ada", "host-a", 11), Owner("bob", "host-b", 22)
CLOCK = SystemClock()
HOLDER = """
import json, sys
from hudi_locks import LockManager
held = LockManager("zookeeper", json.loads(sys.argv[1])).lock()
print(held.state.name, held.token, flush=True)
sys.stdin.readline()
print(held.state.name, held.reason.name, flush=True)
"""


class Losses:
    """What a provider told, and whether its client was connected then."""

    def __init__(self) -> None:
        self.told: list[tuple[Lease, LossReason]] = []
        self.event = threading.Event()

    def __call__(self, lease: Lease, reason: LossReason) -> None:
        self.told.append((lease, reason))
        self.event.set()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of one's own, to be ill-treated."""
    with start_server(ZooKeeper(container_check_ms=200), tmp_path) as started:
        yield started


@pytest.fixture
def make() -> Iterator[Callable[..., ZooKeeperLockProvider]]:
    made: list[ZooKeeperLockProvider] = []

    def make_one(options: dict[str, str], losses: Losses | None = None) -> ZooKeeperLockProvider:
        made.append(ZooKeeperLockProvider(options, clock=CLOCK, on_lost=losses or Losses()))
        return made[-1]

    yield make_one
    for provider in made:
        provider.close()


@pytest.fixture
def raw(server: Server) -> Iterator[Any]:
    client = KazooClient(server.options[URL], timeout=30)
    client.start()
    yield client
    client.stop()
    client.close()


def acquire(provider: ZooKeeperLockProvider, owner: Owner = ADA, timeout_s: float = 0.0) -> Lease:
    lease = provider.try_acquire(TABLE, owner, timeout_s)
    assert lease is not None
    return lease


def token(lease: Lease) -> int:
    assert lease.token is not None
    return lease.token


def test_a_server_that_is_killed_and_comes_back_keeps_the_lock(server: Server, make: Any) -> None:
    losses = Losses()
    provider, other = make({**server.options, SESSION: "10000"}, losses), make(server.options)
    lease = acquire(provider)
    session = provider.client.session.id
    server.restart()
    lease = provider.renew(lease)
    assert provider.client.session.id == session
    assert other.try_acquire(TABLE, BOB, 0) is None
    provider.release(lease)
    assert token(acquire(other, BOB)) > token(lease)
    assert losses.told == []


def test_a_server_that_accepts_and_says_nothing_is_tried_again(server: Server, make: Any) -> None:
    """As one does that has just been started."""
    with socket.create_server(("127.0.0.1", 0)) as gate:
        threading.Thread(target=let_second_pass, args=(gate, server.port), daemon=True).start()
        url = f"127.0.0.1:{gate.getsockname()[1]}"
        options = {**server.options, URL: url, SESSION: "12000"}
        provider = make({**options, CONNECTION: "8000"})
        assert acquire(provider).token is not None


def let_second_pass(gate: socket.socket, port: int) -> None:
    """Keep the first connection without a word; hand what the second one says to the real server."""
    mute, _ = gate.accept()
    client, _ = gate.accept()
    with mute, client, socket.create_connection(("127.0.0.1", port)) as upstream:
        other = threading.Thread(target=pump, args=(upstream, client), daemon=True)
        other.start()
        pump(client, upstream)


def pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)


def test_a_waiter_keeps_its_place_while_the_server_restarts(server: Server, make: Any) -> None:
    options = {**server.options, SESSION: "20000"}
    provider, other = make(options), make(options)
    lease = acquire(provider)
    got: list[Lease | None] = []
    waiter = threading.Thread(target=lambda: got.append(other.try_acquire(TABLE, BOB, 30)))
    waiter.start()
    assert until(lambda: len(names(provider, lease)) == 2)
    before = names(provider, lease)
    server.restart()
    provider.release(provider.renew(lease))
    waiter.join(30)
    assert got
    assert got[0] is not None
    assert got[0].state.contender.name in before


def names(provider: ZooKeeperLockProvider, lease: Lease) -> list[str]:
    client = KazooClient(provider.client.session.settings.hosts)
    client.start()
    found: list[str] = client.get_children(lease.state.contender.place.folder)
    client.stop()
    client.close()
    return found


def test_a_session_that_ends_is_told_before_there_is_a_new_one(server: Server, make: Any) -> None:
    order: list[str] = []
    provider = make({**server.options, SESSION: "20000"})  # longer than a busy machine may keep silent
    provider.on_lost = lambda *_: order.append("lost")
    lease = acquire(provider)
    provider.client._on_lost = lambda lease, reason: order.append(reason.name)
    client = provider.client.session._client
    first = client.client_id[0]

    def note_session(state: str) -> None:
        """A busy machine may lose its link, and find it again, while the first session still stands."""
        if state == KazooState.CONNECTED and client.client_id[0] != first:
            order.append("new session")

    client.add_listener(note_session)
    provider.conformance_hooks()(provider).expire(TABLE)
    assert until(lambda: "new session" in order)
    assert order == ["SESSION", "new session"]
    with pytest.raises(LockLost) as lost:
        provider.renew(lease)
    assert lost.value.reason is LossReason.SESSION
    provider.release(lease)
    assert token(acquire(provider)) > token(lease)


def test_a_silence_as_long_as_a_session_is_a_loss_that_nobody_needs_to_confirm(server: Server, make: Any) -> None:
    losses = Losses()
    provider = make({**server.options, SESSION: "1000"}, losses)
    lease = acquire(provider)
    assert isinstance(server, LocalServer)
    server.kill()
    assert losses.event.wait(10)
    assert losses.told == [(lease, LossReason.UNREACHABLE)]
    server.start()
    assert until(lambda: provider.client.session.is_linked)
    assert token(acquire(make(server.options), BOB, 5.0)) > token(lease)


def test_a_manager_says_lost_while_the_server_is_frozen(server: Server) -> None:
    with LockManager("zookeeper", {**server.options, SESSION: "1000", CONNECTION: "500"}) as manager:
        held = manager.lock()
        server.pause()
        frozen_s = CLOCK.monotonic()
        assert until(lambda: CLOCK.monotonic() >= (held.lease.deadline_s or 0))
        assert held.state.name == "LOST"
        assert (held.lease.deadline_s or 0) <= frozen_s + 1.0, "no renewal that was sent since was answered"
        server.resume()
        with pytest.raises(LockLost):
            held.check()


def test_a_try_while_the_link_is_down_leaves_no_node(server: Server, make: Any) -> None:
    provider = make({**server.options, SESSION: "20000", CONNECTION: "500"})
    provider.release(acquire(provider))
    server.pause()
    with pytest.raises(BackendUnavailable):
        provider.try_acquire(TABLE, ADA, 0)
    server.resume()
    assert until(lambda: provider.client.session.is_linked and not provider.client.line.orphans)
    assert until(lambda: acquire(make(server.options), BOB))


def test_a_holder_that_was_frozen_past_its_session_knows(server: Server, make: Any) -> None:
    frozen = start_holder({**server.options, SESSION: "2000"})
    try:
        state, earlier = frozen.stdout.readline().split()  # type: ignore[union-attr]
        os.kill(frozen.pid, signal.SIGSTOP)
        lease = acquire(make(server.options), BOB, 20.0)
        os.kill(frozen.pid, signal.SIGCONT)
        said, _ = frozen.communicate("\n", timeout=30)
    finally:
        frozen.kill()
        frozen.wait()
    assert state == "HELD"
    assert token(lease) > int(earlier)
    assert said.split()[0] == "LOST"


def start_holder(options: dict[str, str]) -> subprocess.Popen[str]:
    return start_process(["-c", HOLDER, json.dumps(options)])


def test_a_node_that_somebody_removes_is_a_loss_at_once(server: Server, make: Any, raw: Any) -> None:
    losses = Losses()
    provider = make({**server.options, SESSION: "20000"}, losses)
    lease = acquire(provider)
    assert until(lambda: all(entry.watched for entry in provider.client._entries.values()))
    raw.delete(lease.state.contender.path)
    assert losses.event.wait(2)
    assert losses.told == [(lease, LossReason.DELETED)]
    provider.release(lease)


def test_containers_that_the_server_removes_are_made_again(server: Server, make: Any) -> None:
    """Curator before Hudi 0.14.1 made the parents as containers."""
    client = KazooClient(server.options[URL])
    client.start()
    client.create(server.options[BASE])
    folder = f"{server.options[BASE]}/conformance"
    make_container(client, folder)
    provider = make(server.options)
    provider.release(acquire(provider))
    assert until(lambda: client.exists(folder) is None), "the server did not remove the container"
    provider.release(acquire(provider))
    client.stop()
    client.close()


def make_container(client: Any, path: str) -> None:
    """kazoo has no method for it; 4 is ZooKeeper's flag, 19 the request."""
    from kazoo.protocol.serialization import Create2
    from kazoo.security import OPEN_ACL_UNSAFE

    class CreateContainer(Create2):  # type: ignore[misc]
        type = 19

    result = client.handler.async_result()
    client._call(CreateContainer(path, b"", OPEN_ACL_UNSAFE, 4), result)
    result.get(timeout=5)


def test_parents_that_are_removed_all_the_time_are_made_each_time(server: Server, make: Any, raw: Any) -> None:
    provider = make(server.options)
    scope = LockScope.file_group("p=1/q=2", "f-0")
    done = threading.Event()

    def remove() -> None:
        while not done.is_set():
            for path in ("p=1/q=2/f-0", "p=1/q=2", "p=1"):
                raw.delete_async(f"{server.options[BASE]}/{path}").wait(1)

    remover = threading.Thread(target=remove)
    remover.start()
    for _ in range(50):
        lease = provider.try_acquire(scope, ADA, 0)
        assert lease is not None
        provider.release(lease)
    done.set()
    remover.join()


def test_a_chroot_must_exist_and_is_then_kept_to(server: Server, make: Any, raw: Any) -> None:
    options = {**server.options, URL: f"{server.options[URL]}/rooted"}
    with pytest.raises(BackendRefused, match="chroot /rooted"):
        make(options).try_acquire(TABLE, ADA, 0)
    raw.create("/rooted")
    lease = acquire(make(options))
    assert lease.state.contender.path.startswith(f"/rooted{server.options[BASE]}/conformance/")
    assert acquire(make(server.options), BOB).state.contender.path.startswith(f"{server.options[BASE]}/")


def test_a_refusal_names_the_node(server: Server, make: Any, raw: Any) -> None:
    from kazoo.security import make_digest_acl

    raw.create("/guarded", acl=[make_digest_acl("root", "secret", all=True)])
    with pytest.raises(BackendRefused, match="/guarded"):
        make({**server.options, BASE: "/guarded"}).try_acquire(TABLE, ADA, 0)


def test_the_session_is_as_long_as_the_server_grants(server: Server, make: Any) -> None:
    provider, asked_s = make({**server.options, SESSION: "900000"}), CLOCK.monotonic()
    lease = acquire(provider)
    assert lease.deadline_s is not None
    assert asked_s < lease.deadline_s - 60 <= CLOCK.monotonic(), "the server grants a minute at most"


def test_a_forked_child_holds_nothing_and_harms_nothing(server: Server, make: Any) -> None:
    provider = make(server.options)
    lease = acquire(provider)
    child = os.fork()
    if child == 0:
        code = 0
        try:
            provider.renew(lease)
        except LockLost as lost:
            code = 10 if lost.reason is LossReason.FORKED else 1
        provider.release(lease)
        taken = provider.try_acquire(TABLE, BOB, 0)
        provider.close()
        os._exit(code if taken is None else 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 10
    assert token(provider.renew(lease)) == token(lease)


def test_losing_the_leader_loses_no_lock(tmp_path: Path, make: Any) -> None:
    nodes = start_ensemble(tmp_path)
    try:
        url = ",".join(f"127.0.0.1:{node.port}" for node in nodes)
        losses = Losses()
        options = {**nodes[0].options, URL: url, SESSION: "10000"}
        provider, other = make(options, losses), make(options)
        lease = acquire(provider)
        leader = [read_mode(node.port) for node in nodes].index("leader")
        nodes[leader].kill()
        assert other.try_acquire(TABLE, BOB, 0) is None
        lease = provider.renew(lease)
        provider.release(lease)
        assert token(acquire(other, BOB, 5.0)) > token(lease)
        assert losses.told == []
    finally:
        for node in nodes:
            node.stop()
