"""Writers that are killed: each is a child of this process, which forks before Arrow has started a thread.

    python kill_writer.py FOLDER STOP…

For each stop a table is made in FOLDER, a child writes row `a` to it and is killed, and other children write `b` until
one lives. A stop is the name of a stop point, or `call:N` for the N-th call that changes the store. Of the points of a
rollback the second writer is the victim, since it rolls back what the first one left. Prints, for each stop, a line of
JSON: the exit codes of the children and the rows at the end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_locks.format import CommitMetadata, avro_schema
from hudi_locks.spark import Operation
from hudi_locks.spark.operation import STAT, decode_stat
from hudi_locks.spark.writing.placement import GROUP, ListedGroups
from hudi_locks.spark.writing.task import WriteTask
from hudi_locks.storage import LocalStorage
from hudi_locks.table import (
    PARTITION_PATH,
    RECORD_KEY,
    BaseFileFormat,
    MergeRule,
    Table,
    TableConfig,
    add_meta_schema,
    latest_base_files,
    read_base_file,
)
from hudi_locks.transaction import Transactions

USER = pa.schema([("id", pa.string()), ("writer", pa.int64())])
CHANGES = (
    *("create_if_absent", "replace", "move_if_absent", "delete", "delete_folder", "touch"),
    *("open_staged", "flush_staged", "redeem", "cancel", "cancel_staged", "flush"),
)


def write(path: str, key: str, writer: int) -> None:
    """Upsert one row as the pipeline does, without Spark."""
    table = Table.load(LocalStorage(path), for_writing=True)
    transactions = Transactions(table, None, options={"hoodie.time.generator.max_expected_clock_skew_ms": "1"})
    with transactions.begin("commit", "UPSERT") as transaction:
        bases = latest_base_files(table.storage, transaction.timeline)
        task = WriteTask(
            files=transaction.files,
            schema=add_meta_schema(USER),
            form=BaseFileFormat(avro_schema(USER, "t", with_meta_columns=True)),
            groups=ListedGroups({(file.partition, file.file_id): file for file in bases}),
            operation=Operation.UPSERT,
            rule=MergeRule(),
            combine=True,
            key_fields=("id",),
            memory_bytes=1 << 20,
            changes=None,
        )
        columns = {"id": [key], "writer": [writer], RECORD_KEY: [key], PARTITION_PATH: [""], GROUP: ["group"]}
        batches = list(task([pa.RecordBatch.from_pydict(columns)]))
        stats = [decode_stat(text) for batch in batches for text in batch[STAT].to_pylist()]
        published = transaction.publish(CommitMetadata.of(stats, "UPSERT", schema=avro_schema(USER, "t")))
    published.raise_unless_committed()


def kill_at_call(number: int) -> None:
    """From now on the `number`-th call that changes the store kills this process before it does anything."""
    calls = 0

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return method(*args)

        return call

    for name in CHANGES:
        setattr(LocalStorage, name, counted(getattr(LocalStorage, name)))


def run_child(path: str, key: str, writer: int, stop: str) -> int:
    """The exit code of a child that writes; minus the signal that killed it."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 1
    try:
        if stop.startswith("call:"):
            kill_at_call(int(stop.removeprefix("call:")))
        elif stop:
            os.environ["HUDI_LOCKS_STOP_AT"] = stop
        write(path, key, writer)
        code = 0
    except BaseException as error:
        sys.stderr.write(f"{stop}: {type(error).__name__}: {error}\n")
    os._exit(code)


def age_heartbeats(path: str) -> None:
    """As if an hour had passed since the death of their writers."""
    for file in Path(path, ".hoodie/.heartbeat").glob("*"):
        os.utime(file, (1_600_000_000, 1_600_000_000))


def run_stop(path: str, stop: str) -> list[int]:
    """Kill at `stop`, then write until a writer lives."""
    Table.create(LocalStorage(path), TableConfig("t", ("id",)))
    is_rollback = stop.startswith("rollback:")
    codes = [run_child(path, "a", 1, "begin:inflight" if is_rollback else stop)]
    age_heartbeats(path)
    if is_rollback:
        codes.append(run_child(path, "b", 2, stop))
        age_heartbeats(path)
    codes.append(run_child(path, "b", 2, ""))
    codes.append(run_child(path, "c", 3, ""))
    return codes


def read(path: str) -> dict[str, Any]:
    """What readers see, and what lies in the table."""
    table = Table.load(LocalStorage(path))
    timeline = table.timeline()
    files = latest_base_files(table.storage, timeline)
    pieces = [piece for file in files for piece in read_base_file(table.storage, file.path)]
    names = [path for path, _ in table.storage.walk("") if path.endswith(".parquet")]
    return {
        "rows": [row for piece in pieces for row in piece["id"].to_pylist()],
        "pending": [str(instant) for instant in timeline.pending(("commit", "rollback"))],
        "files": len(names),
        "commits": [instant.requested for instant in timeline.completed(("commit",))],
        "staged": [path for path, _ in table.storage.walk(".hoodie/.hudi_locks/staging")],
        "marked": [entry.name for entry in table.storage.list(".hoodie/.temp")],
    }


def main(folder: str, stops: list[str]) -> None:
    """Run every stop, and then read, since reading starts Arrow's threads."""
    codes = {stop: run_stop(f"{folder}/{stop.replace(':', '-')}", stop) for stop in stops}
    for stop, found in codes.items():
        print(json.dumps({"stop": stop, "codes": found, **read(f"{folder}/{stop.replace(':', '-')}")}), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
