"""The tables of the benchmark of read costs, in a process of their own.

usage: python -m benchmarks.nbcc_costs_side DATA FOLDER         prints one JSON object: what was measured by name
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.lineitem_side import (
    drain,
    read_lines,
    start_session,
)
from benchmarks.nbcc_tables import LOGS, create_table, make_small_upsert, make_upsert, measure, take_medians
from hudi_locks.spark import HoodieTable
from hudi_locks.table import latest_file_slices


def measure_costs(lines: DataFrame, folder: str) -> dict[str, dict[str, float]]:
    """What upserts and snapshots cost, by the state of the table."""
    cow, mor = (create_table(lines.sparkSession, f"{folder}/{kind}", table_type=kind) for kind in _KINDS)
    cow.bulk_insert(lines)
    mor.insert(lines)
    mor.compaction.run()
    costs: dict[str, dict[str, float]] = {}
    moments: dict[str, str] = {}
    for number in range(1, LOGS[-1] + 1):
        for name, table in (("COW", cow), ("MOR", mor)):
            before = _count_bytes(table.path)
            rows = make_upsert(lines, number)
            took = measure(partial(table.upsert, rows))
            costs[f"{name}, upsert {number}"] = {**took, "written": _count_bytes(table.path) - before}
        moments |= {f"MOR, snapshot, {number} logs": mor.table.timeline().newest_time() or ""} if number in LOGS else {}
    before = _count_bytes(mor.path)
    costs["MOR, compaction"] = measure(mor.compact)
    costs["MOR, compaction"]["written"] = _count_bytes(mor.path) - before
    logged = [_Read(f"MOR, snapshot, {LOGS[-1]} small logs", _make_small(lines, folder))]
    logged += [_Read(name, mor, as_of=moment) for name, moment in moments.items()]
    others = _list_others(logged[-1], cow)
    one = _list_one_slice(lines, folder)
    return costs | _take_turns([*logged, *others]) | _take_turns(one)


def _list_one_slice(lines: DataFrame, folder: str) -> list[_Read]:
    """All rows in one file group, with its logs and compacted."""
    table = create_table(lines.sparkSession, f"{folder}/one", table_type="MERGE_ON_READ", one_slice=True)
    _fill(table, lines, make_upsert)
    logged = _Read(f"MOR, one slice, {LOGS[-1]} logs", table, as_of=table.table.timeline().newest_time())
    table.compaction.run()
    return [logged, _Read("MOR, one slice, compacted", table)]


def _make_small(lines: DataFrame, folder: str) -> HoodieTable:
    """The same rows, with as many logs of a tenth of the size, each with rows of its own."""
    table = create_table(lines.sparkSession, f"{folder}/small", table_type="MERGE_ON_READ")
    _fill(table, lines, make_small_upsert)
    return table


def _fill(table: HoodieTable, lines: DataFrame, make: Callable[[DataFrame, int], DataFrame]) -> None:
    """Base files of all rows, and upserts on top of them."""
    table.insert(lines)
    table.compaction.run()
    for number in range(1, LOGS[-1] + 1):
        table.upsert(make(lines, number))


_KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
_TWO = ("l_quantity", "l_shipdate")
_TURNS = 15
"""Of five, one slow moment of the machine still moves the median of one state and not of another."""


@dataclass(frozen=True)
class _Read:
    """A state of a table, and how it is read."""

    name: str
    table: HoodieTable
    as_of: str | None = None
    read_optimized: bool = False
    columns: tuple[str, ...] | None = None

    def drain(self) -> None:
        what: dict[str, Any] = {"columns": self.columns, "meta_columns": self.columns is None}
        if self.as_of is None:
            drain(self.table.read(read_optimized=self.read_optimized, **what))
        else:
            drain(self.table.as_of(self.as_of, **what))

    def count_bytes(self) -> int:
        """Of all files that are read."""
        slices = latest_file_slices(self.table.table.storage, self.table.table.timeline(), as_of=self.as_of)
        files = [
            file for piece in slices for file in (piece.base, *(() if self.read_optimized else piece.logs)) if file
        ]
        return sum(Path(self.table.path, file.path).stat().st_size for file in files)


def _list_others(logged: _Read, cow: HoodieTable) -> list[_Read]:
    mor = logged.table
    return [
        _Read("COW, snapshot", cow),
        _Read("MOR, read-optimised", mor, read_optimized=True),
        _Read("MOR, snapshot, compacted", mor),
        _Read("MOR, two columns, compacted", mor, columns=_TWO),
        replace(logged, name=f"MOR, two columns, {LOGS[-1]} logs", columns=_TWO),
    ]


def _take_turns(reads: list[_Read]) -> dict[str, dict[str, float]]:
    """Each in a session that has done as much before it as before the others; the first turn only warms it."""
    found: dict[str, list[dict[str, float]]] = {}
    for _ in range(_TURNS + 1):
        for read in reads:
            took = measure(read.drain)
            crossed = _count_crossed(read.table.spark)
            found.setdefault(read.name, []).append({**took, "crossed": crossed})
    return {read.name: {**take_medians(found[read.name][1:]), "read": read.count_bytes()} for read in reads}


def _count_bytes(folder: str) -> int:
    return sum(
        file.stat().st_size for file in Path(folder).rglob("*") if file.is_file() and ".hoodie/" not in str(file)
    )


def _count_crossed(spark: SparkSession) -> float:
    """Rows that came from Python workers in the last query, as Spark counted them."""
    shared: Any = spark._jsparkSession.sharedState()  # noqa: SLF001  # PySpark shows no metrics
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # noqa: SLF001  # type: ignore[union-attr]
    store = shared.statusStore()
    last = store.executionsList().last().executionId()
    values, nodes = store.executionMetrics(last), store.planGraph(last).allNodes()
    crossed = 0.0
    for node in (nodes.apply(place) for place in range(nodes.size())):
        if "InArrow" in node.name():
            metrics = node.metrics()
            for metric in (metrics.apply(place) for place in range(metrics.size())):
                if metric.name() == "number of output rows" and values.contains(metric.accumulatorId()):
                    crossed += float(values.apply(metric.accumulatorId()).replace(",", ""))
    return crossed


def main(data: str, folder: str) -> None:
    spark = start_session(None)
    lines = read_lines(spark, data)
    drain(lines)  # warms the session, so that the first write does not pay Spark's first job
    print(json.dumps(measure_costs(lines, folder)))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
