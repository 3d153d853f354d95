"""JVM Hudi's own check of server markers (MarkerBasedEarlyConflictDetectionRunnable), timed.

usage: python -m benchmarks.early_conflict_jvm JAR FOLDER NOW CHECKS     prints milliseconds: of the first, the median
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

from benchmarks.commits_jvm import Hudi

_TOLERATED_MS = 3_600_000
_THREADS = 4


def make_check(hudi: Hudi, now: str) -> tuple[Any, Any]:
    """What a timeline server runs each period for the write begun at `now`, and where it says that it met another."""
    jvm, folder = hudi.jvm, hudi.folder
    service = jvm.org.apache.hudi.timeline.service
    config = getattr(service, "TimelineService$Config")()
    config.markerParallelism = _THREADS
    registry = jvm.org.apache.hudi.common.metrics.Registry.getRegistry("benchmark")
    handler = service.handlers.MarkerHandler(hudi.conf, config, None, registry)
    storage = jvm.org.apache.hudi.storage.HoodieStorageUtils.getStorage(folder, hudi.conf)
    met, seen = jvm.java.util.concurrent.atomic.AtomicBoolean(False), jvm.java.util.HashSet()
    kind = service.handlers.marker.MarkerBasedEarlyConflictDetectionRunnable
    check = kind(met, handler, f"{folder}/.hoodie/.temp/{now}", folder, storage, _TOLERATED_MS, seen, False)
    return check, met


def main(jar: str, folder: str, now: str, checks: str) -> None:
    check, met = make_check(Hudi(jar, folder), now)
    times_ms = []
    for _ in range(int(checks)):
        start_s = time.perf_counter()
        check.run()
        times_ms.append((time.perf_counter() - start_s) * 1e3)
    assert not met.get()
    print(json.dumps([times_ms[0], statistics.median(times_ms[len(times_ms) // 2 :])]), flush=True)
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
