"""The storage lock on versitygw, an S3 service of this machine, beside the bare conditional writes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from hudi_locks_conformance.servers import KINDS, find_free_port, start_server
from hudi_locks_providers._crowd import run_all
from hudi_locks_providers._storage.objects import Objects
from hudi_locks_providers.storage import StorageLockProvider

from benchmarks.contention import crowds
from benchmarks.figures import Figure, measure_together
from hudi_locks import Lease, LockManager, LockScope, Owner, SystemClock

_ROUNDS, _QUICK_ROUNDS, _REPEATS = 30, 4, 20
_MANY, _SAMPLE = 1000, 100
_ONE_WAY_MS = 10
_CYCLES = 640
_OWNER = Owner("benchmark")
_ENDPOINT = "hudi_locks.storage.endpoint_url"


def run(*, quick: bool) -> list[Figure]:
    with start_server(KINDS["versitygw"]) as server:
        options = {"hoodie.write.lock.provider": "storage", **server.options}
        figures = [_count_requests(options), *_cycles(options, _QUICK_ROUNDS if quick else _ROUNDS)]
        figures += crowds(options, "storage", cycles=_CYCLES // (4 if quick else 1))
        figures.append(_many(options, "no network in between", sample=_MANY // (10 if quick else 1)))
        with _network(server.port) as endpoint:
            figures.append(_many({**options, _ENDPOINT: endpoint}, "20 ms away", sample=_SAMPLE))
    return figures


@contextmanager
def _provider(options: Mapping[str, str]) -> Iterator[StorageLockProvider]:
    made = StorageLockProvider(options, clock=SystemClock(), on_lost=lambda *_: None)
    yield made
    made.close()


def _count_requests(options: Mapping[str, str]) -> Figure:
    """Requests of an acquire and a release, token and all, once the record is known."""
    with _provider(options) as provider:
        provider.release(_acquire(provider))
        sent: list[str] = []
        provider._objects.put = _noting(sent, Objects.put, provider)  # type: ignore[method-assign]  # noqa: SLF001
        provider._objects.read = _noting(sent, Objects.read, provider)  # type: ignore[assignment]  # noqa: SLF001
        provider.release(_acquire(provider))
    return Figure("requests of a lock cycle, storage", len(sent), "the least with a token", 3, "requests", "lower")


def _noting(sent: list[str], call: Callable[..., object], provider: StorageLockProvider) -> Callable[..., object]:
    def noted(key: str, *rest: object) -> object:
        sent.append(key)
        return call(provider._objects, key, *rest)  # noqa: SLF001

    return noted


def _acquire(provider: StorageLockProvider) -> Lease:
    lease = provider.try_acquire(LockScope.table(), _OWNER, 0)
    assert lease is not None
    return lease


def _cycles(options: Mapping[str, str], rounds: int) -> list[Figure]:
    with LockManager.from_options(options) as manager, _provider(options) as provider:
        actions = {
            "ours": _cycle(manager),
            "2 conditional writes, bare": _bare(provider, 2),
            "3 conditional writes, bare": _bare(provider, 3),
        }
        found = measure_together(actions, rounds=rounds, repeats=_REPEATS)
    ours = found.pop("ours")
    return [Figure("lock cycle, storage", ours, peer, value, "µs", "lower") for peer, value in found.items()]


def _cycle(manager: LockManager) -> Callable[[], None]:
    def cycle() -> None:
        with manager.lock():
            pass

    return cycle


def _bare(provider: StorageLockProvider, writes: int) -> Callable[[], None]:
    """As many writes, each under the version of the one before, straight through obstore."""
    import obstore

    store, key = provider._objects._store, f"bare-{writes}"  # noqa: SLF001
    state = {"version": obstore.put(store, key, b"begin"), "serial": 0}

    def cycle() -> None:
        for _ in range(writes):
            state["serial"] += 1
            body = b"%0150d" % state["serial"]
            mode = {"e_tag": state["version"]["e_tag"]}
            state["version"] = obstore.put(store, key, body, mode=mode, use_multipart=False)

    return cycle


def _many(options: Mapping[str, str], where: str, *, sample: int) -> Figure:
    """A thousand file groups that were locked before, at once; and `sample` of them one by one."""
    scopes = [LockScope.file_group("p", str(number)) for number in range(_MANY)]
    with _provider(options) as provider:
        provider.acquire_many(scopes, _OWNER, 0)
        _release_all(provider)
        one_s = _time(lambda: [provider.try_acquire(scope, _OWNER, 0) for scope in scopes[:sample]]) / sample
        _release_all(provider)
        many_s = _time(lambda: provider.acquire_many(scopes, _OWNER, 0)) / _MANY
    name = f"1,000 file groups at once, storage, {where}"
    return Figure(name, round(many_s * 1e3, 3), "one by one", round(one_s * 1e3, 3), "ms each", "lower")


def _release_all(provider: StorageLockProvider) -> None:
    run_all([partial(provider.release, lease) for lease in list(provider._holds.values())])  # noqa: SLF001


def _time(work: Callable[[], object]) -> float:
    start_s = time.perf_counter()
    work()
    return time.perf_counter() - start_s


@contextmanager
def _network(target: int) -> Iterator[str]:
    port = find_free_port()
    words = [sys.executable, "-m", "benchmarks.delay", str(port), str(target), str(_ONE_WAY_MS)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
