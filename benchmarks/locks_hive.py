"""The Hive Metastore lock on a metastore from PySpark's jars: calls and time, beside the bare calls and Hudi's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from hudi_locks_conformance.partners import hudi
from hudi_locks_conformance.servers import start_server
from hudi_locks_conformance.servers.hive_metastore import HiveMetastore
from hudi_locks_providers.hive_metastore import HiveMetastoreLockProvider

from benchmarks.contention import OWNER, crowds, distant, jvm_cycle_us, lock_cycle, many, processes, swarms
from benchmarks.figures import Figure, measure_together
from hudi_locks import LockManager, LockScope, SystemClock

_ROUNDS, _QUICK_ROUNDS, _REPEATS = 20, 4, 10
_CYCLES, _QUICK_CYCLES = 320, 64
_WARM_UP, _QUICK_WARM_UP = 1500, 150
_JAVA = "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"
_URIS = "hoodie.write.lock.hivemetastore.uris"
_NAME, _PEER = "hive_metastore", "Hudi's own provider (JVM)"


def run(*, quick: bool) -> list[Figure]:
    with start_server(HiveMetastore(lock_timeout="60s")) as server:
        options = {"hoodie.write.lock.provider": "hive_metastore", **server.options}
        rounds, cycles = (_QUICK_ROUNDS, _QUICK_CYCLES) if quick else (_ROUNDS, _CYCLES)
        figures = [_count_calls(options)]
        with LockManager.from_options(options) as manager:  # a cold metastore answers three times slower
            for _ in range(_QUICK_WARM_UP if quick else _WARM_UP):
                lock_cycle(manager)()
        figures += [*_cycles(options, rounds), *crowds(options, _NAME, cycles=cycles)]
        figures.append(processes(options, _NAME, partner=hudi(_JAVA, options), peer=_PEER, holds=cycles // 32))
        figures += swarms(options, _NAME, holds=cycles)
        figures.append(many(lambda: _make(options), _NAME, "no network in between"))
        with distant(server.port) as port:
            far = {**options, _URIS: f"thrift://127.0.0.1:{port}"}
            figures.append(many(lambda: _make(far), _NAME, "20 ms away"))
    return figures


def _make(options: Mapping[str, str]) -> HiveMetastoreLockProvider:
    return HiveMetastoreLockProvider(options, clock=SystemClock(), on_lost=lambda *_: None)


def _count_calls(options: Mapping[str, str]) -> Figure:
    sent: list[str] = []
    with closing(_make(options)) as provider:
        call = provider.metastore.call

        def noted(method: str, *arguments: Any) -> Any:
            sent.append(method)
            return call(method, *arguments)

        for _ in range(2):
            sent.clear()
            provider.metastore.call = noted  # type: ignore[method-assign]
            lease = provider.try_acquire(LockScope.table(), OWNER, 0)
            assert lease is not None
            provider.release(lease)
    return Figure("calls of a lock cycle, hive_metastore", len(sent), "the least", 2, "calls", "lower")


def _cycles(options: Mapping[str, str], rounds: int) -> list[Figure]:
    with LockManager.from_options(options) as manager, closing(_make(options)) as bare:
        actions = {"ours": lock_cycle(manager), "lock and unlock, bare": _bare(bare)}
        found = measure_together(actions, rounds=rounds, repeats=_REPEATS)
    found[_PEER] = jvm_cycle_us(hudi(_JAVA, options), rounds * _REPEATS)
    ours = found.pop("ours")
    return [Figure("lock cycle, hive_metastore", ours, peer, value, "µs", "lower") for peer, value in found.items()]


def _bare(provider: HiveMetastoreLockProvider) -> Callable[[], None]:
    def cycle() -> None:
        lock_id, _ = provider.metastore.lock("bare", ["bare"], host="here", agent="Unknown")
        provider.metastore.unlock(lock_id)

    return cycle
