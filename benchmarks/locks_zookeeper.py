"""ZooKeeper locks beside the bare requests, kazoo's and tooz's locks, Curator and Hudi's own provider."""

from __future__ import annotations

import statistics
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

from hudi_locks_conformance.history import History
from hudi_locks_conformance.partners import JvmContender, Partner, curator, hudi
from hudi_locks_conformance.servers import KINDS, start_server
from hudi_locks_providers.zookeeper import ZooKeeperLockProvider
from kazoo.client import KazooClient
from tooz import coordination

from benchmarks.contention import distant, jvm_cycle_us, lock_cycle, many, swarms
from benchmarks.figures import Figure, measure_together
from hudi_locks import LockManager, SystemClock

URL = "hoodie.write.lock.zookeeper.url"
BASE = "hoodie.write.lock.zookeeper.base_path"
KEY = "hoodie.write.lock.zookeeper.lock_key"
HUDI = "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"
CONTENDERS = (1, 8, 64)
CLOCK = SystemClock()
JVM_HOLDS = 600
Cycle = Callable[[], None]


def run(*, quick: bool) -> list[Figure]:
    with start_server(KINDS["zookeeper"]) as server, ExitStack() as stack:
        options = {**server.options, "hoodie.write.lock.zookeeper.session_timeout_ms": "10000"}
        bench = Bench(options, stack)
        scale = 0.1 if quick else 1.0
        return [
            *bench.free_lock(int(100 * scale)),
            *bench.hand_off(int(300 * scale)),
            *bench.threads(2 if quick else 9),
            *swarms({"hoodie.write.lock.provider": "zookeeper", **bench.own()}, "zookeeper", holds=int(1_000 * scale)),
            *bench.many(server.port),
        ]


class Bench:
    def __init__(self, options: dict[str, str], stack: ExitStack) -> None:
        self.options = options
        self.stack = stack

    def client(self) -> Any:
        client = KazooClient(self.options[URL])
        client.start()
        self.stack.callback(client.stop)
        return client

    def manager(self, options: dict[str, str] | None = None) -> LockManager:
        return self.stack.enter_context(LockManager("zookeeper", options or self.own()))

    def own(self) -> dict[str, str]:
        return {**self.options, KEY: uuid.uuid4().hex}

    def free_lock(self, rounds: int) -> list[Figure]:
        actions = {
            "ours": lock_cycle(self.manager()),
            "create + delete, bare": self.bare_pair(),
            "kazoo Lock": holding(self.client().Lock(f"/{uuid.uuid4().hex}")),
            "tooz": holding(self.tooz().get_lock(uuid.uuid4().hex.encode())),
        }
        found = measure_together(actions, rounds=rounds, repeats=20)
        found |= {name: jvm_cycle_us(partner, JVM_HOLDS) for name, partner in self.partners().items()}
        ours = found.pop("ours")
        return [
            Figure("lock cycle, zookeeper, free", ours, peer, value, "µs", "lower") for peer, value in found.items()
        ]

    def partners(self) -> dict[str, Partner]:
        options = self.own()
        mutex = curator(options[URL], f"{options[BASE]}/{options[KEY]}")
        return {"Curator (JVM)": mutex, "Hudi 1.2.0 (JVM)": hudi(HUDI, options)}

    def tooz(self) -> Any:
        made = coordination.get_coordinator(f"zookeeper://{self.options[URL]}", uuid.uuid4().hex.encode())
        made.start(start_heart=True)
        self.stack.callback(made.stop)
        return made

    def bare_pair(self) -> Cycle:
        client, folder = self.client(), f"/{uuid.uuid4().hex}"
        client.create(folder)
        return lambda: client.delete(client.create(f"{folder}/x-", b"x" * 70, ephemeral=True, sequence=True))

    def hand_off(self, rounds: int) -> list[Figure]:
        path, name, options = f"/{uuid.uuid4().hex}", uuid.uuid4().hex.encode(), self.own()
        pairs: dict[str, tuple[Any, Any]] = {
            "ours": (Grip(self.manager(options)), Grip(self.manager(options))),
            "kazoo Lock": (self.client().Lock(path), self.client().Lock(path)),
            "tooz": (self.tooz().get_lock(name), self.tooz().get_lock(name)),
        }
        found = {peer: hand_over(*pair, rounds=rounds) for peer, pair in pairs.items()}
        found["delete + getChildren, bare"] = self.bare_hand_off(rounds)
        found["Curator (JVM)"] = jvm_hand_off([self.partners()["Curator (JVM)"]] * 2)
        ours = found.pop("ours")
        return [
            Figure("hand-off to a waiter, zookeeper", ours, peer, value, "µs", "lower") for peer, value in found.items()
        ]

    def bare_hand_off(self, rounds: int) -> float:
        """What a hand-off cannot do without, without the watch that lies between."""
        client, folder = self.client(), f"/{uuid.uuid4().hex}"
        client.create(folder)
        took = []
        for _ in range(rounds):
            path = client.create(f"{folder}/x-", b"x" * 70, ephemeral=True, sequence=True)
            began_s = time.perf_counter()
            client.delete(path)
            client.get_children(folder)
            took.append(time.perf_counter() - began_s)
        return median_micros(took)

    def many(self, port: int) -> list[Figure]:
        near = self.own()
        with distant(port) as far:
            places = {"no network in between": near, "20 ms away": {**near, URL: f"127.0.0.1:{far}"}}
            return [many(partial(make, options), "zookeeper", where) for where, options in places.items()]

    def threads(self, rounds: int) -> list[Figure]:
        """Holds a second by threads that share one manager, and by threads that share one kazoo client."""
        measured: dict[tuple[str, int], list[Cycle]] = {}
        for count in CONTENDERS:
            client, path = self.client(), f"/{uuid.uuid4().hex}"
            measured["ours", count] = [lock_cycle(self.manager())] * count
            measured["kazoo", count] = [holding(client.Lock(path)) for _ in range(count)]
        found: dict[tuple[str, int], list[float]] = {name: [] for name in measured}
        for _ in range(rounds):  # in turns, so that a slow moment of the machine meets all of them
            for name, cycles in measured.items():
                found[name].append(rate(cycles, 4 * CONTENDERS[-1]))
        rates = {name: round(statistics.median(values), 1) for name, values in found.items()}
        figures = []
        for count in CONTENDERS:
            figure, ours = f"holds a second, zookeeper, {count} threads", rates["ours", count]
            figures.append(Figure(figure, ours, "kazoo Lock", rates["kazoo", count], "1/s", "higher"))
            figures.append(Figure(figure, ours, "ours, 1 thread", rates["ours", 1], "1/s", "higher"))
        return figures


def make(options: Mapping[str, str]) -> ZooKeeperLockProvider:
    return ZooKeeperLockProvider(options, clock=CLOCK, on_lost=lambda *_: None)


def median_micros(took_s: list[float]) -> float:
    return round(statistics.median(took_s) * 1e6, 1)


def holding(lock: Any) -> Cycle:
    def cycle() -> None:
        with lock:
            pass

    return cycle


class Grip:
    """A manager with the verbs of other locks."""

    def __init__(self, manager: LockManager) -> None:
        self.manager = manager

    def acquire(self) -> None:
        self.held = self.manager.lock()

    def release(self) -> None:
        self.held.release()


def hand_over(first: Any, second: Any, *, rounds: int) -> float:
    """Median time from the release of one to the other's having it, who waits in another thread."""
    took: list[float] = []
    holder, waiter = first, second
    holder.acquire()
    for _ in range(rounds):
        arrived: list[float] = []

        def wait(lock: Any = waiter, arrived: list[float] = arrived) -> None:
            lock.acquire()
            arrived.append(time.perf_counter())

        thread = threading.Thread(target=wait)
        thread.start()
        CLOCK.sleep(0.01)
        began_s = time.perf_counter()
        holder.release()
        thread.join()
        took.append(arrived[0] - began_s)
        holder, waiter = waiter, holder
    holder.release()
    return median_micros(took)


def rate(cycles: list[Cycle], holds: int) -> float:
    """Cycles a second of all together."""

    def work(cycle: Cycle) -> None:
        for _ in range(holds // len(cycles)):
            cycle()

    for cycle in set(cycles):
        cycle()
    threads = [threading.Thread(target=work, args=(cycle,)) for cycle in cycles]
    began_s = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return round(holds // len(cycles) * len(cycles) / (time.perf_counter() - began_s), 1)


def jvm_times(partners: list[Partner]) -> History:
    history = History()
    with ExitStack() as stack:
        running = [stack.enter_context(JvmContender(partner, "storm", JVM_HOLDS)) for partner in partners]
        for contender in running:
            history.merge(contender.finish().operations)
    return history


def jvm_hand_off(partners: list[Partner]) -> float:
    """Median from the begin of one's release to the other's having it, both always wanting it."""
    found = jvm_times(partners).holds()
    pairs = zip(found[len(found) // 2 :], found[len(found) // 2 + 1 :], strict=False)
    return median_micros(
        [(after.begin_ns - before.end_ns) / 1e9 for before, after in pairs if before.process != after.process]
    )
