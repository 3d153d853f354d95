"""One Spark application of the soak of streams: a streaming writer, the compactor, or a reader that follows the table.

Run as `python -m soak.streamer ROLE SPEC`. Tells on standard output, a line of JSON each, what it did.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from hudi_locks import SystemClock
from hudi_locks.observe import CONFLICT_RESOLUTION_FAILURE
from hudi_locks.spark import HoodieTable
from hudi_locks.spark.services.background import SERVICE_ERRORS
from soak.flight_events import SCHEMA
from soak.streams import StreamSpec

_BATCH_FILES: Final = 50
_PAUSE_S: Final = 0.5
_COMPACTION_PAUSE_S: Final = 3.0
_COLUMNS: Final = ("_hoodie_commit_time", "id", "region", "ts", "value", "label")


def tell(event: str, **facts: Any) -> None:
    """A line for the process that started this one."""
    sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
    sys.stdout.flush()


def open_spark() -> SparkSession:
    """A session of one core: there are more of them than cores."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[1]").appName("hudi-locks soak")
    settings = {
        "spark.driver.memory": "700m",
        "spark.log.level": "OFF",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def stream(spec: StreamSpec, table: HoodieTable) -> None:
    """Write whatever comes into the stream's folder, until no more will come."""
    sink = table.stream_sink(identifier=spec.name)

    def write(rows: DataFrame, number: int) -> None:
        sink(rows, number)
        tell("batch", number=number, conflicts=table.metrics.counter(CONFLICT_RESOLUTION_FAILURE))

    is_last = False
    while not is_last:
        is_last = spec.is_ending
        events = table.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", _BATCH_FILES).parquet(spec.events)
        writer = events.writeStream.foreachBatch(write).option("checkpointLocation", spec.checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()
        SystemClock().sleep(_PAUSE_S)


def compact(spec: StreamSpec, table: HoodieTable) -> None:
    """Compact again and again beside the writers."""
    while not spec.is_ending:
        try:
            done = table.compaction.run()
        except SERVICE_ERRORS as error:
            tell("compaction failed", error=f"{type(error).__name__}: {error}")
        else:
            tell("idle" if done is None else "compacted")
        SystemClock().sleep(_COMPACTION_PAUSE_S)


def follow(spec: StreamSpec, table: HoodieTable) -> None:
    """Read what changed since the last look, again and again."""
    begin, is_last = "0", False
    while not is_last:
        is_last = spec.is_ending
        completed = table.table.timeline().completed_between("")
        end = max((instant.completion or "" for instant in completed), default=begin)
        if end > begin:
            rows = table.incremental(begin, end).select(*_COLUMNS).collect()
            tell("read", begin=begin, end=end, rows=[list(row) for row in rows])
            begin = end
        SystemClock().sleep(_PAUSE_S)


ROLES: Final[dict[str, Callable[[StreamSpec, HoodieTable], None]]] = {
    "stream": stream,
    "compact": compact,
    "follow": follow,
}


def main(role: str, spec: StreamSpec) -> None:
    """Play one role to its end."""
    with HoodieTable.load(open_spark(), spec.path, options=spec.options) as table:
        tell("ready")
        ROLES[role](spec, table)
        tell("done")


if __name__ == "__main__":
    main(sys.argv[1], StreamSpec.decode(sys.argv[2]))
