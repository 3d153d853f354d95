"""The flows that are measured: each makes what it needs in a folder, runs once to warm up, and yields the call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from hudi_locks import LockManager
from hudi_locks.early_conflict import EarlyDetection
from hudi_locks.format import BaseFileName, IOType, MarkerName
from hudi_locks.markers import DirectMarkers
from hudi_locks.storage import Storage, open_storage
from hudi_locks.timeline import LAYOUT_2, Timeline
from hudi_locks.timeline.heartbeat import heartbeat_path

__all__ = ["FLOWS", "SPARK_FLOWS", "Flow"]

Flow = Callable[..., AbstractContextManager[Callable[[], object]]]
"""Takes an empty folder and, if it is one of `SPARK_FLOWS`, a session."""

_SHARED: Final = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "filesystem",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.time.generator.max_expected_clock_skew_ms": "1",
}
_BUCKETS: Final = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
_COLUMNS: Final = "id string, day string, ts long, value double"
_EARLIER, _NOW = "20260101000000001", "20260101000000002"


@contextmanager
def hold_lock(folder: Path) -> Iterator[Callable[[], object]]:
    """Open a lock manager, take the lock of a table on the file system, release it, and close the manager."""
    options = {**_SHARED, "hoodie.base.path": str(folder)}

    def hold() -> None:
        with LockManager.from_options(options) as manager, manager.lock():
            pass

    hold()
    yield hold


@contextmanager
def check_early(folder: Path) -> Iterator[Callable[[], object]]:
    """Make a direct marker beside a living write that is at another file group of the partition.

    What the driver does for that once for each write counts too.
    """
    storage = open_storage(folder)
    storage.create_if_absent(heartbeat_path(_EARLIER), b"")
    DirectMarkers(storage, _EARLIER).create_all([_name_marker(_EARLIER, "theirs-0")])
    detection, timeline = _read_detection(storage), Timeline(LAYOUT_2, ())

    def check() -> None:
        guarded = detection.guard(DirectMarkers(storage, _NOW), timeline, action="commit")
        if guarded is None:
            raise AssertionError("the options ask for a look, and nobody looks")
        guarded.create_all([_name_marker(_NOW, "ours-0")])

    check()
    yield check


def _read_detection(storage: Storage) -> EarlyDetection:
    enable = {"hoodie.write.concurrency.early.conflict.detection.enable": "true"}
    options = {**_SHARED, **enable, "hoodie.base.path": storage.base}
    return EarlyDetection.of(options, heartbeat_limit_ms=600_000)


def _name_marker(requested: str, file_id: str) -> MarkerName:
    return MarkerName("day=1", str(BaseFileName(file_id, requested)), IOType.MERGE)


@contextmanager
def upsert(folder: Path, spark: Any) -> Iterator[Callable[[], object]]:
    """Change rows of a copy-on-write table that other writers may share, and add one."""
    with _open_table(folder, spark, "COPY_ON_WRITE", _SHARED) as table:
        table.upsert(_make_rows(spark, ts=2))
        rows = _make_rows(spark, ts=3)
        yield lambda: table.upsert(rows)


@contextmanager
def compact(folder: Path, spark: Any) -> Iterator[Callable[[], object]]:
    """Merge the logs of a merge-on-read table with its base files."""
    with _open_table(folder, spark, "MERGE_ON_READ", {**_SHARED, **_BUCKETS}) as table:
        table.upsert(_make_rows(spark, ts=2))
        table.compaction.run()
        table.upsert(_make_rows(spark, ts=3))
        yield table.compaction.run


@contextmanager
def read(folder: Path, spark: Any) -> Iterator[Callable[[], object]]:
    """Plan a read of a merge-on-read table that has base files and logs; what Spark does with it does not count."""
    with _open_table(folder, spark, "MERGE_ON_READ", {**_SHARED, **_BUCKETS}) as table:
        table.compaction.run()
        table.upsert(_make_rows(spark, ts=2))
        table.read()
        yield table.read


@contextmanager
def _open_table(folder: Path, spark: Any, table_type: str, options: Mapping[str, object]) -> Iterator[Any]:
    """A table with rows in two partitions."""
    from hudi_locks.spark import HoodieTable

    names = {"name": "trips", "record_key": "id", "partition_by": "day", "ordering": "ts"}
    with HoodieTable.create(spark, str(folder), table_type=table_type, options=options, **names) as table:
        table.insert(_make_rows(spark, ts=1))
        yield table


def _make_rows(spark: Any, *, ts: int) -> Any:
    rows = [(f"{number}", f"{number % 2}", ts, float(ts)) for number in range(ts + 5)]
    return spark.createDataFrame(rows, _COLUMNS).coalesce(1)


FLOWS: Final[Mapping[str, Flow]] = MappingProxyType({"lock": hold_lock, "check": check_early})
SPARK_FLOWS: Final[Mapping[str, Flow]] = MappingProxyType({"upsert": upsert, "compact": compact, "read": read})
