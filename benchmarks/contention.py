"""What the benchmarks of lock services share: lock cycles, crowds of threads and processes, and a distant service."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager

from hudi_locks_conformance.history import History
from hudi_locks_conformance.partners import JvmContender, Partner, run_mixed_storm
from hudi_locks_conformance.servers import KINDS, find_free_port, start_server

from benchmarks.figures import Figure
from hudi_locks import LockManager, LockProvider, LockScope, Owner

__all__ = ["OWNER", "crowds", "distant", "distant_s3", "jvm_cycle_us", "lock_cycle", "many", "processes", "swarms"]

OWNER = Owner("benchmark", "here")
_THREADS = (8, 64)
_PROCESSES = 8
_SWARMS = (1, 8, 64)
_MANY, _SAMPLE = 1000, 100
_ONE_WAY_MS = 10
_EAGER = {
    "hoodie.write.lock.num_retries": "100000",
    "hoodie.write.lock.wait_time_ms_between_retry": "2",
    "hoodie.write.lock.max_wait_time_ms_between_retry": "100",
}
"""So that pollers wait for each other and not for Hudi's default pause of a second."""
_WORKER = """
import json, sys
from hudi_locks import LockManager
with LockManager.from_options(json.loads(sys.argv[1])) as manager:
    with manager.lock():
        pass
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(int(sys.argv[2])):
        with manager.lock():
            pass
"""


def lock_cycle(manager: LockManager) -> Callable[[], None]:
    def cycle() -> None:
        with manager.lock():
            pass

    return cycle


def jvm_cycle_us(partner: Partner, cycles: int) -> float:
    """Median of an acquire and a release together; the first quarter is the JVM's warming up."""
    with JvmContender(partner, "storm", cycles) as contender:
        times = [operation.t_ns for operation in contender.finish().operations]
    steps = zip(times[0::4], times[1::4], times[2::4], times[3::4], strict=True)
    found = [(held - asked + freed - freeing) / 1e3 for asked, held, freeing, freed in steps]
    return round(statistics.median(found[len(found) // 4 :]), 1)


def crowds(options: Mapping[str, str], name: str, *, cycles: int) -> list[Figure]:
    """Lock cycles a second of one process, whose threads all want the table's lock."""
    alone = _throughput(options, 1, cycles)
    return [
        Figure(
            f"{threads} threads on one lock, {name}",
            _throughput(options, threads, cycles),
            "1 thread",
            alone,
            "cycles/s",
            "higher",
        )
        for threads in _THREADS
    ]


def _throughput(options: Mapping[str, str], threads: int, cycles: int) -> float:
    with LockManager.from_options(options) as manager:
        cycle = lock_cycle(manager)
        cycle()

        def work() -> None:
            for _ in range(cycles // threads):
                cycle()

        workers = [threading.Thread(target=work) for _ in range(threads)]
        start_s = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return round(cycles / (time.perf_counter() - start_s), 1)


def processes(options: Mapping[str, str], name: str, *, partner: Partner, peer: str, holds: int) -> Figure:
    """Holds a second of processes that poll for one lock without a pause, and work for a moment in it."""
    ours = _hold_rate(run_mixed_storm(name, options, [], ours=_PROCESSES, holds=holds))
    theirs = _hold_rate(run_mixed_storm(name, options, [partner] * _PROCESSES, ours=0, holds=holds))
    return Figure(f"{_PROCESSES} processes on one lock, {name}", ours, peer, theirs, "holds/s", "higher")


def _hold_rate(history: History) -> float:
    found = history.holds()
    span_s = (max(hold.end_ns for hold in found) - min(hold.begin_ns for hold in found)) / 1e9
    return round(len(found) / span_s, 1)


def swarms(options: Mapping[str, str], name: str, *, holds: int) -> list[Figure]:
    """Holds a second of processes that all want the table's lock, and begin at the same moment."""
    rates = {count: _swarm({**options, **_EAGER}, count, max(1, holds // count)) for count in _SWARMS}
    return [
        Figure(
            f"{count} processes of ours on one lock, {name}", rates[count], "1 process", rates[1], "holds/s", "higher"
        )
        for count in _SWARMS[1:]
    ]


def _swarm(options: Mapping[str, str], count: int, holds: int) -> float:
    words = [sys.executable, "-c", _WORKER, json.dumps(options), str(holds)]
    workers = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()
    start_s = time.perf_counter()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate()
        assert worker.returncode == 0
    return round(holds * count / (time.perf_counter() - start_s), 1)


def many(make: Callable[[], LockProvider], name: str, where: str) -> Figure:
    """A thousand file groups at once, and one by one."""
    scopes = [LockScope.file_group("p", str(number)) for number in range(_MANY)]
    with closing(make()) as provider:
        provider.acquire_many(scopes, OWNER, 0)  # so that neither side pays for what is done once
    with _connected(make) as provider:
        one_s = _time(lambda: [provider.try_acquire(scope, OWNER, 0) for scope in scopes[:_SAMPLE]]) / _SAMPLE
    with _connected(make) as provider:
        many_s = _time(lambda: provider.acquire_many(scopes, OWNER, 0)) / _MANY
    title = f"1,000 file groups at once, {name}, {where}"
    return Figure(title, round(many_s * 1e3, 3), "one by one", round(one_s * 1e3, 3), "ms each", "lower")


@contextmanager
def _connected(make: Callable[[], LockProvider]) -> Iterator[LockProvider]:
    with closing(make()) as provider:
        provider.holder(LockScope.table())
        yield provider


def _time(work: Callable[[], object]) -> float:
    start_s = time.perf_counter()
    work()
    return time.perf_counter() - start_s


@contextmanager
def distant_s3() -> Iterator[tuple[str, str]]:
    """The address of versitygw, an S3 service of this machine, and the one under which it is 20 ms away."""
    with start_server(KINDS["versitygw"]) as server, distant(server.port) as port:
        yield f"http://127.0.0.1:{server.port}", f"http://127.0.0.1:{port}"


@contextmanager
def distant(target: int) -> Iterator[int]:
    """A port behind which the service of `target` is 20 ms away."""
    port = find_free_port()
    words = [sys.executable, "-m", "benchmarks.delay", str(port), str(target), str(_ONE_WAY_MS)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield port
        finally:
            process.kill()
