"""Writers of this package and of JVM Hudi on one table, under one lock."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from other_readers import DEADLINE_S, SCHEMA, Jvm, JvmError

from hudi_locks import SystemClock
from hudi_locks.storage import open_storage
from hudi_locks.table import Table, read_commit
from soak.deeds import KEPT_UNDER, Deed, Kind, draw_deed
from soak.plan import OPTIONS, WriterSpec
from soak.process import WriterProcess
from soak.running import Course, Say
from soak.services import LockService

__all__ = ["OURS", "FleetPlan", "our_options", "run_fleet"]

_PATIENT: Final = {
    "hoodie.client.heartbeat.interval_in_ms": "5000",
    "hoodie.client.heartbeat.tolerable.misses": "6",
    "hoodie.write.lock.zookeeper.session_timeout_ms": "30000",
}
"""JVM writers are not killed here, and a lock that is lost to a busy machine is no fault of theirs."""
_THEIRS: Final = {
    "hoodie.table.name": "soak",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.clean.commits.retained": "10",
    "hoodie.archive.automatic": "false",
    "hoodie.write.lock.wait_time_ms": "60000",
    "hoodie.write.lock.num_retries": "50",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
}
_BY_TIME: Final = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
"""Writers of Hudi 0.15 go by their own options, and else let the later write win."""
_ZOOKEEPER: Final = "hoodie.write.lock.zookeeper."
_OPERATIONS: Final = {Kind.UPSERT: "upsert", Kind.INSERT: "insert", Kind.DELETE: "delete"}
_MOST_SKEW_MS: Final = 80
"""Of two clocks less than the 200 ms for which JVM writers wait."""
OURS: Final = 2
"""Writers of this package."""
_TICK_S: Final = 0.05
_MOST_ATTEMPTS: Final = 200


@dataclass(frozen=True)
class FleetPlan:
    """One run.

    Attributes:
        path: Base path of the table.
        log: File for the events of all writers.
        service: ZooKeeper.
        commits: Of each writer.
        seed: Of all that is drawn.
        keeps_metadata: Whether the JVM writers make a metadata table, which all keep up to date then.
        version: Of the table.
    """

    path: str
    log: Path
    service: LockService
    commits: int
    seed: int
    keeps_metadata: bool = False
    version: int = 9


def our_options(service: LockService) -> dict[str, str]:
    """Hudi's keys for the writers of this package."""
    return {**OPTIONS, **service.options, **_PATIENT}


def run_fleet(plan: FleetPlan, jvms: Sequence[Jvm], say: Say) -> Course:
    """Let one writer in each of `jvms`, and two of this package, make their commits side by side."""
    clock, course = SystemClock(), Course()
    began_s = clock.monotonic()
    theirs = [_JvmWriter(plan, jvm, number, course) for number, jvm in enumerate(jvms)]
    ours = [WriterProcess(_describe_ours(plan, number)) for number in range(OURS)]
    try:
        _listen(plan, ours, theirs, course=course, say=say)
    finally:
        for one in ours:
            one.close()
    course.took_s = clock.monotonic() - began_s
    return course


def _describe_ours(plan: FleetPlan, number: int) -> WriterSpec:
    skew_ms = random.Random(f"{plan.seed} {number}").randint(-_MOST_SKEW_MS, _MOST_SKEW_MS)
    options = our_options(plan.service)
    if plan.keeps_metadata:
        options["hoodie.metadata.compact.max.delta.commits"] = "4"  # before the JVM's turn comes
    return WriterSpec(plan.path, f"ours{number}", plan.seed, options, skew_ms, beside_jvm=True, deeds=plan.commits)


def _listen(
    plan: FleetPlan, ours: Sequence[WriterProcess], theirs: Sequence[_JvmWriter], *, course: Course, say: Say
) -> None:
    """Take down what is told until all are done."""
    clock = SystemClock()
    said = 0
    while any(one.status is None for one in ours) or any(one.is_alive() for one in theirs):
        for one in ours:
            _take_down(plan, one, course)
        if len(course.told.done) >= said + 2 * len(ours):
            said = len(course.told.done)
            say(f"{said} commits")
        clock.sleep(_TICK_S)
    for one in ours:
        _take_down(plan, one, course)
    course.crashes += [f"writer {one.spec.name} ended with status {one.status}" for one in ours if one.status]
    course.crashes += [f"writer jvm{one.number}: {one.failure}" for one in theirs if one.failure]


def _take_down(plan: FleetPlan, one: WriterProcess, course: Course) -> None:
    one.drain(plan.log.with_suffix(".err"))
    with plan.log.open("a") as log:
        for event in one.read(0.0):
            log.write(json.dumps({"writer": one.spec.name, **event}) + "\n")
            course.told.take(event)


class _JvmWriter:
    """A thread that gives one JVM its deeds; begins at once."""

    def __init__(self, plan: FleetPlan, jvm: Jvm, number: int, course: Course) -> None:
        self._plan = plan
        self._jvm = jvm
        self._course = course
        self._clock = SystemClock()
        zookeeper = {name: value for name, value in plan.service.options.items() if name.startswith(_ZOOKEEPER)}
        kept = {"hoodie.metadata.enable": str(plan.keeps_metadata).lower()}
        kept["hoodie.write.table.version"] = str(plan.version)
        self._options = {**_THEIRS, **zookeeper, **_PATIENT, **kept, **(_BY_TIME if plan.version == 6 else {})}
        self.number = number
        self.failure = ""
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _work(self) -> None:
        try:
            for number in range(self._plan.commits):
                self._do(draw_deed(f"{self._plan.seed}:jvm{self.number}:{number}", beside_jvm=True))
        except Exception as error:  # told in the verdict
            self.failure = f"{type(error).__name__}: {error}"

    def _do(self, deed: Deed) -> None:
        for _ in range(_MOST_ATTEMPTS):
            if self._attempt(deed):
                self._note("committed by a JVM", deed)
                self._course.told.done.add(deed.name)
                return
            self._clock.sleep(0.5)
        raise TimeoutError(f"{deed.name} met a conflict {_MOST_ATTEMPTS} times")

    def _attempt(self, deed: Deed) -> bool:
        options = {
            **self._options,
            "hoodie.datasource.write.operation": _OPERATIONS[deed.kind],
            KEPT_UNDER: deed.name,
        }
        rows = [list(row) for row in deed.rows]
        asked = {"path": self._plan.path, "rows": rows, "schema": SCHEMA, "options": options, "gate": ""}
        try:
            self._jvm.ask("write", **asked).result(DEADLINE_S)
        except JvmError as error:
            self._note(f"failed {str(error).partition(': ')[0].rpartition('.')[2]}", deed, why=str(error))
            return _is_committed(self._plan.path, deed)
        return True

    def _note(self, event: str, deed: Deed, **facts: Any) -> None:
        self._course.told.events[event] += 1
        with self._plan.log.open("a") as log:
            log.write(json.dumps({"writer": f"jvm{self.number}", "event": event, "deed": deed.name, **facts}) + "\n")


def _is_committed(path: str, deed: Deed) -> bool:
    """Whether an attempt that failed had made its commit before, as one whose clean fails has."""
    table = Table.load(open_storage(path))
    timeline = table.timeline()
    recent = timeline.completed(("commit", "replacecommit"))[-50:]
    found = (read_commit(table.storage, timeline, requested=instant.requested) for instant in recent)
    return any(commit.extra.get(KEPT_UNDER) == deed.name for commit in found)
