"""One writer of the demonstration: a process of its own, with its own Spark session."""

from __future__ import annotations

import dataclasses
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from hudi_locks.cli.demo.flights import Correction
from hudi_locks.cli.demo.session import start_session
from hudi_locks.clock import Clock, SystemClock
from hudi_locks.spark import HoodieTable, WriteResult

__all__ = ["WriterOrder", "main", "report_of"]

_LONGEST_WAIT_S = 120.0
_POLL_S = 0.02


@dataclass(frozen=True)
class WriterOrder:
    """What one writer process is to do.

    Attributes:
        number: Counts the writers from 1.
        writers: How many there are; they start their upserts together.
        table_path: The table.
        folder: Where they meet and report.
        flights_path: The flights as loaded, Parquet.
        options: Hudi's keys.
        correction: Which rows to change, and how.
    """

    number: int
    writers: int
    table_path: str
    folder: str
    flights_path: str
    options: dict[str, str]
    correction: Correction

    def save(self) -> Path:
        """Write the order to a file that `main` takes."""
        path = Path(self.folder) / f"order-{self.number}.json"
        path.write_text(json.dumps(dataclasses.asdict(self)))
        return path

    @classmethod
    def read(cls, path: Path) -> WriterOrder:
        """Read what `save` wrote."""
        found: dict[str, Any] = json.loads(path.read_text())
        given = found.pop("correction")
        correction = Correction(given["name"], tuple(given["months"]), tuple(given["carriers"]))
        return cls(**found, correction=correction)


def main(order_path: str) -> None:
    """Do what the order says, and write `result-<number>.json` beside it."""
    order = WriterOrder.read(Path(order_path))
    spark = start_session(f"writer {order.number}: {order.correction.name}", Path(order.folder), cores=1)
    changed = Path(order.folder) / f"changed-{order.number}.parquet"
    pq.write_table(order.correction.select(pq.read_table(order.flights_path)), changed)
    with HoodieTable.load(spark, order.table_path, options=order.options) as table:
        rows = spark.read.parquet(str(changed))
        _meet(order, SystemClock())
        result = table.upsert(rows)
    Path(order.folder, f"result-{order.number}.json").write_text(json.dumps(report_of(order, result)))
    spark.stop()


def _meet(order: WriterOrder, clock: Clock) -> None:
    """Wait until every writer is ready, so that their upserts overlap."""
    Path(order.folder, f"ready-{order.number}").touch()
    give_up_s = clock.monotonic() + _LONGEST_WAIT_S
    while len(list(Path(order.folder).glob("ready-*"))) < order.writers and clock.monotonic() < give_up_s:
        clock.sleep(_POLL_S)


def report_of(order: WriterOrder, result: WriteResult) -> dict[str, Any]:
    """What a writer did, for the driver of the demonstration."""
    attempts = [
        {
            "instant": attempt.instant,
            "began_ms": attempt.began_ms,
            "ended_ms": attempt.ended_ms,
            "outcome": attempt.outcome.value,
            "conflict": str(attempt.conflict) if attempt.conflict else "",
            "with": attempt.conflict.other if attempt.conflict else "",
        }
        for attempt in result.attempts
    ]
    return {
        "number": order.number,
        "name": order.correction.name,
        "instant": result.instant,
        "completion_time": result.completion_time,
        "rows_updated": result.rows_updated,
        "file_groups": result.file_groups,
        "lock_wait_ms": result.lock_wait_ms,
        "lock_held_ms": result.lock_held_ms,
        "wasted_s": result.wasted_s,
        "attempts": attempts,
    }


if __name__ == "__main__":
    main(sys.argv[1])
