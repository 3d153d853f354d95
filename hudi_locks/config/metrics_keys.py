"""Keys of the metrics and traces that writers hand on."""

from __future__ import annotations

from hudi_locks.config.key import Key

REPORTERS = ("PROMETHEUS", "PROMETHEUS_PUSHGATEWAY", "CONSOLE", "INMEMORY")
"""Those that are offered."""

METRICS_ON = Key("hoodie.metrics.on", bool, False, "whether the metrics of writers are handed on", since="0.5.0")
REPORTER_TYPE = Key(
    "hoodie.metrics.reporter.type",
    str,
    "GRAPHITE",
    "to whom: PROMETHEUS, which asks this process; PROMETHEUS_PUSHGATEWAY; CONSOLE; INMEMORY for `HoodieTable.metrics`"
    " alone. Any other is refused where metrics are on, Hudi's default too",
    since="0.5.0",
)
NAME_PREFIX = Key(
    "hoodie.metrics.reporter.metricsname.prefix",
    str,
    "",
    "with which each name begins; the table's name if absent",
    since="0.11.0",
)
PROMETHEUS_PORT = Key(
    "hoodie.metrics.prometheus.port",
    int,
    9090,
    "where this process answers; its tables share a port",
    since="0.6.0",
    minimum=1,
)
PUSHGATEWAY_HOST = Key("hoodie.metrics.pushgateway.host", str, "localhost", "host of the push gateway", since="0.6.0")
PUSHGATEWAY_PORT = Key("hoodie.metrics.pushgateway.port", int, 9091, "its port", since="0.6.0", minimum=1)
PUSHGATEWAY_PERIOD_S = Key(
    "hoodie.metrics.pushgateway.report.period.seconds",
    int,
    30,
    "seconds between two pushes",
    since="0.6.0",
    minimum=1,
)
PUSHGATEWAY_DELETE = Key(
    "hoodie.metrics.pushgateway.delete.on.shutdown",
    bool,
    True,
    "whether the gateway forgets the metrics when the writer is closed",
    since="0.6.0",
)
PUSHGATEWAY_JOB = Key(
    "hoodie.metrics.pushgateway.job.name", str, "", "name of the job; `hudi` if absent", since="0.6.0"
)
PUSHGATEWAY_RANDOM_SUFFIX = Key(
    "hoodie.metrics.pushgateway.random.job.name.suffix",
    bool,
    True,
    "whether a number that is drawn at random follows the job's name",
    since="0.6.0",
)
TRACING = Key(
    "hudi_locks.tracing",
    bool,
    False,
    "whether spans of what writers and locks do are made, by OpenTelemetry's API; the process's own SDK says where they"
    " go",
)
