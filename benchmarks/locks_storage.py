"""The storage lock on versitygw, an S3 service of this machine, beside the bare conditional writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing

from hudi_locks_conformance.servers import KINDS, start_server
from hudi_locks_providers._storage.objects import Objects
from hudi_locks_providers.storage import StorageLockProvider

from benchmarks.contention import OWNER, crowds, distant, lock_cycle, many, swarms
from benchmarks.figures import Figure, measure_together
from hudi_locks import Lease, LockManager, LockScope, SystemClock

_ROUNDS, _QUICK_ROUNDS, _REPEATS = 30, 4, 20
_CYCLES, _QUICK_CYCLES = 640, 128
_NAME = "storage"
_ENDPOINT = "hudi_locks.storage.endpoint_url"


def run(*, quick: bool) -> list[Figure]:
    with start_server(KINDS["versitygw"]) as server:
        options = {"hoodie.write.lock.provider": "storage", **server.options}
        figures = [_count_requests(options), *_cycles(options, _QUICK_ROUNDS if quick else _ROUNDS)]
        cycles = _QUICK_CYCLES if quick else _CYCLES
        figures += [*crowds(options, _NAME, cycles=cycles), *swarms(options, _NAME, holds=cycles)]
        figures.append(many(lambda: _make(options), _NAME, "no network in between"))
        with distant(server.port) as port:
            far = {**options, _ENDPOINT: f"http://127.0.0.1:{port}"}
            figures.append(many(lambda: _make(far), _NAME, "20 ms away"))
    return figures


def _make(options: Mapping[str, str]) -> StorageLockProvider:
    return StorageLockProvider(options, clock=SystemClock(), on_lost=lambda *_: None)


def _count_requests(options: Mapping[str, str]) -> Figure:
    """Requests of an acquire and a release, token and all, once the record is known."""
    with closing(_make(options)) as provider:
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
    lease = provider.try_acquire(LockScope.table(), OWNER, 0)
    assert lease is not None
    return lease


def _cycles(options: Mapping[str, str], rounds: int) -> list[Figure]:
    with LockManager.from_options(options) as manager, closing(_make(options)) as provider:
        actions = {
            "ours": lock_cycle(manager),
            "2 conditional writes, bare": _bare(provider, 2),
            "3 conditional writes, bare": _bare(provider, 3),
        }
        found = measure_together(actions, rounds=rounds, repeats=_REPEATS)
    ours = found.pop("ours")
    return [Figure("lock cycle, storage", ours, peer, value, "µs", "lower") for peer, value in found.items()]


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
