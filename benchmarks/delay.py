"""A network between here and a server of this machine: `python -m benchmarks.delay PORT TARGET_PORT ONE_WAY_MS`."""

from __future__ import annotations

import sys
import threading

from hudi_locks_conformance.faults import FaultProxy


def serve(port: int, target: int, delay_s: float) -> None:
    with FaultProxy(target, port=port) as proxy:
        proxy.delay(delay_s)
        print("ready", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) / 1000)
