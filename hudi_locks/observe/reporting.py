"""Hands metrics on: to Prometheus, to a push gateway, or to standard output. Runs where the writer runs, on the driver.

Source: Hudi's `MetricsReporterFactory`, `PrometheusReporter` and `PushGatewayMetricsReporter`.
"""

from __future__ import annotations

import atexit
import errno
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from hudi_locks.clock import Clock
from hudi_locks.config import Options, metrics_keys
from hudi_locks.errors import ConfigError
from hudi_locks.observe.metrics import Gauge, Metrics, Timing
from hudi_locks.redaction import open_log

__all__ = ["start_reporting"]

_logger = open_log(__name__)
_UNNAMED: Final = re.compile("[^a-zA-Z0-9_]")
_JOB: Final = "hudi"
_CONSOLE_PERIOD_S: Final = 30.0
_PUSH_TIMEOUT_S: Final = 10.0

Stop = Callable[[], None]


def start_reporting(metrics: Metrics, options: Options, *, name: str, clock: Clock) -> Stop:
    """Hand metrics on as `hoodie.metrics.*` say, until what is returned is called; nothing where they are off.

    Args:
        metrics: Whose values are told as they are at each moment.
        options: Of the writer, which `check_options` passed.
        name: Of its table.
        clock: For the time between two reports.

    Raises:
        ConfigError: The package that the reporter needs is not installed, or its port is taken.
    """
    if not options.get_value(metrics_keys.METRICS_ON):
        return _do_nothing
    start = _REPORTERS[options.get_value(metrics_keys.REPORTER_TYPE).upper()]
    return start(metrics, options, options.get_value(metrics_keys.NAME_PREFIX) or name, clock)


def _do_nothing() -> None:
    """There is nothing to stop."""


class _Board:
    """The metrics of several writers by their prefixes, those of closed ones included: counters never go back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[tuple[str, Metrics]] = []
        self._closed: dict[str, Metrics] = {}

    def add(self, prefix: str, metrics: Metrics) -> Stop:
        """Show metrics; what is returned keeps their last values."""
        entry = (prefix, metrics)
        with self._lock:
            self._open.append(entry)

        def remove() -> None:
            with self._lock:
                self._open.remove(entry)
                self._closed.setdefault(prefix, Metrics()).add(metrics.snapshot())

        return remove

    def read(self) -> Iterator[tuple[str, int | Timing | Gauge]]:
        """Names and values, as Prometheus and JVM Hudi spell names."""
        with self._lock:
            shown = [*self._closed.items(), *self._open]
        sums: dict[str, Metrics] = {}
        for prefix, metrics in shown:
            sums.setdefault(prefix, Metrics()).add(metrics.snapshot())
        for prefix, total in sums.items():
            for name, value in sorted(total.snapshot().items()):
                yield _spell(f"{prefix}.{name}"), value

    def collect(self) -> Iterator[Any]:
        """What the client library of Prometheus asks for."""
        from prometheus_client.core import GaugeMetricFamily, SummaryMetricFamily

        for name, value in self.read():
            if isinstance(value, Timing):
                yield SummaryMetricFamily(name, "seconds", count_value=value.count, sum_value=value.total_s)
                yield GaugeMetricFamily(f"{name}_longest", "seconds", value.longest_s)
            elif isinstance(value, Gauge):
                yield GaugeMetricFamily(name, "of the last one", value.value)
            else:
                yield GaugeMetricFamily(name, "counted since the writer began", value)


def _spell(name: str) -> str:
    spelt = _UNNAMED.sub("_", name)
    return f"_{spelt}" if spelt[0].isdigit() else spelt


_boards: Final[dict[int, _Board]] = {}
_opening: Final = threading.Lock()


def _answer_prometheus(metrics: Metrics, options: Options, prefix: str, _: Clock) -> Stop:
    port = options.get_value(metrics_keys.PROMETHEUS_PORT)
    with _opening:
        if port not in _boards:
            _boards[port] = _serve(port)
    return _boards[port].add(prefix, metrics)


def _serve(port: int) -> _Board:
    client, board = _import_client(), _Board()
    registry = client.CollectorRegistry()
    registry.register(board)
    try:
        client.start_http_server(port, registry=registry)
    except OSError as error:
        key = metrics_keys.PROMETHEUS_PORT.name
        why = "another process has it" if error.errno == errno.EADDRINUSE else str(error.strerror)
        raise ConfigError(f"{key}={port} cannot be listened at: {why}; give another one", key=key, port=port) from error
    return board


def _import_client() -> Any:
    try:
        import prometheus_client
    except ImportError as error:
        message = "metrics for Prometheus need its client: pip install 'hudi-locks[metrics]'"
        raise ConfigError(message, key=metrics_keys.REPORTER_TYPE.name) from error
    return prometheus_client


def _push(metrics: Metrics, options: Options, prefix: str, clock: Clock) -> Stop:
    client, board, job = _import_client(), _Board(), options.get_value(metrics_keys.PUSHGATEWAY_JOB) or _JOB
    if options.get_value(metrics_keys.PUSHGATEWAY_RANDOM_SUFFIX):
        job = f"{job}-{random.randrange(1 << 31)}"  # noqa: S311  # tells writers apart, guards nothing
    registry, host = client.CollectorRegistry(), options.get_value(metrics_keys.PUSHGATEWAY_HOST)
    registry.register(board)
    gateway = f"{host}:{options.get_value(metrics_keys.PUSHGATEWAY_PORT)}"

    def send() -> None:
        client.push_to_gateway(gateway, job=job, registry=registry, timeout=_PUSH_TIMEOUT_S)

    def forget() -> None:
        if options.get_value(metrics_keys.PUSHGATEWAY_DELETE):
            client.delete_from_gateway(gateway, job=job, timeout=_PUSH_TIMEOUT_S)

    board.add(prefix, metrics)
    return _repeat(send, options.get_value(metrics_keys.PUSHGATEWAY_PERIOD_S), clock=clock, afterwards=forget)


def _print(metrics: Metrics, _: Options, prefix: str, clock: Clock) -> Stop:
    board = _Board()
    board.add(prefix, metrics)

    def send() -> None:
        sys.stdout.write("".join(f"{name} {_say(value)}\n" for name, value in board.read()))

    return _repeat(send, _CONSOLE_PERIOD_S, clock=clock, afterwards=_do_nothing)


def _say(value: int | Timing | Gauge) -> str:
    if isinstance(value, Timing):
        return f"{value.count} times, {value.total_s:.3f} s, the longest {value.longest_s:.3f} s"
    return str(value.value if isinstance(value, Gauge) else value)


def _repeat(send: Stop, period_s: float, *, clock: Clock, afterwards: Stop) -> Stop:
    """Call `send` again and again on a thread, and a last time at the end of it or of the process.

    A failure is logged.
    """
    stopped = threading.Event()

    def run() -> None:
        while not clock.wait(stopped, period_s):
            _try(send)

    thread = threading.Thread(target=run, name="hudi-locks-metrics", daemon=True)
    thread.start()

    def stop() -> None:
        atexit.unregister(stop)
        stopped.set()
        thread.join()
        _try(send)
        _try(afterwards)

    atexit.register(stop)
    return stop


def _try(call: Stop) -> None:
    try:
        call()
    except OSError as error:
        _logger.warning("metrics could not be handed on: %s", error)


def _keep(*_: object) -> Stop:
    """They are kept in memory anyway."""
    return _do_nothing


_REPORTERS: Final[Mapping[str, Callable[[Metrics, Options, str, Clock], Stop]]] = MappingProxyType(
    {"PROMETHEUS": _answer_prometheus, "PROMETHEUS_PUSHGATEWAY": _push, "CONSOLE": _print, "INMEMORY": _keep}
)
