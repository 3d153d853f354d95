"""What an executor does with the rows of its file groups: merge, write, name the file once, report.

Nothing here talks to Spark: a task takes record batches and gives back one record batch of write stats.
"""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.format import BaseFileName, IOType, WriteStat
from hudi_locks.markers import FinalFiles
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.placement import GROUP, FileGroup, Groups
from hudi_locks.spark.refusals import refuse_null_keys
from hudi_locks.table import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    FILE_NAME,
    PARTITION_PATH,
    RECORD_KEY,
    AppendMerge,
    BaseFileFormat,
    BaseFileWriter,
    DeleteMerge,
    Merge,
    MergeRule,
    RowBuffers,
    UpsertMerge,
    check_partition_path,
    conform,
    create_partition_metadata,
    read_base_file,
    read_counts,
    rename_file,
    stamp_rows,
)

__all__ = ["STAT", "WriteTask", "decode_stat"]

STAT: Final = "stat"
"""Column of what a task reports: a write stat as JSON."""

_Key = tuple[str, Any]


@dataclass(frozen=True)
class WriteTask:
    """Writes the file groups of one Spark partition. Picklable; made on the driver, called on executors.

    Attributes:
        files: Gives data files their names, once for each file group and instant.
        schema: Of the base files, meta columns included.
        form: How base files are encoded.
        groups: Resolves the GROUP column.
        operation: What to do with the rows.
        rule: Which of two rows with one key wins.
        combine: Whether rows of the input with one key become one row.
        key_fields: Record key fields, for the error about a row without key.
        memory_bytes: How much of the input stays in memory; more goes to local disk.
    """

    files: FinalFiles
    schema: pa.Schema
    form: BaseFileFormat
    groups: Groups
    operation: Operation
    rule: MergeRule
    combine: bool
    key_fields: tuple[str, ...]
    memory_bytes: int

    @property
    def input_schema(self) -> pa.Schema:
        """What is kept of the input: record key, partition path and the user's columns."""
        return pa.schema([field for field in self.schema if field.name not in (COMMIT_TIME, COMMIT_SEQNO, FILE_NAME)])

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take all rows of the partition, and yield one batch of stats."""
        with _Streams(self) as streams, RowBuffers[_Key](self.input_schema, self.memory_bytes) as buffers:
            for key, rows in _split_by_group(batches):
                self._refuse_keyless(rows)
                if key[0]:
                    check_partition_path(key[0])
                group = self.groups.find(*key)
                if self._is_stream(group):
                    streams.append(group, rows)
                else:
                    buffers.add(key, self._select(rows))
            stats = [self._merge(self.groups.find(*key), buffers.take(key)) for key in list(buffers.keys())]
            stats += streams.finish()
        yield _encode_stats([stat for stat in stats if stat is not None])

    def _is_stream(self, group: FileGroup) -> bool:
        """Rows of a new file group can be written at once, unless they must be compared with each other first."""
        return group.base is None and not self.combine and self.operation is not Operation.DELETE

    def _select(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return conform(pa.Table.from_batches([rows]), self.input_schema).combine_chunks().to_batches()[0]

    def _refuse_keyless(self, rows: pa.RecordBatch) -> None:
        keys = rows.column(RECORD_KEY)
        if keys.null_count:
            partition = rows.filter(keys.is_null()).column(PARTITION_PATH)[0].as_py()
            refuse_null_keys(keys.null_count, partition, fields=self.key_fields)

    def _merge(self, group: FileGroup, rows: pa.Table) -> WriteStat | None:
        if group.base is None and self.operation is Operation.DELETE:
            return None
        with _GroupWriter(self, group) as writer:
            if not writer.is_done:
                writer.merge(self._choose_merge(writer, rows))
            return writer.finish()

    def _choose_merge(self, writer: _GroupWriter, rows: pa.Table) -> Merge:
        if self.operation is Operation.DELETE:
            return DeleteMerge(rows)
        stamped = writer.stamp(rows)
        if self.operation is Operation.UPSERT or self.combine:
            return UpsertMerge(stamped, self.rule)
        return AppendMerge(stamped)


class _GroupWriter:
    """The new base file of one file group. An earlier attempt of the task may have made it: then nothing is written."""

    def __init__(self, task: WriteTask, group: FileGroup) -> None:
        self._task = task
        self._group = group
        self._name = str(BaseFileName(group.file_id, task.files.requested))
        io_type = IOType.MERGE if group.base else IOType.CREATE
        self._staged = task.files.start(group.partition, self._name, io_type=io_type)
        self._counts = {"num_writes": 0, "num_inserts": 0, "num_update_writes": 0, "num_deletes": 0}
        self._stamped = 0
        self._writer = None if self.is_done else self._open()

    @property
    def is_done(self) -> bool:
        """Whether an earlier attempt made the file."""
        return self._staged.is_taken

    def _open(self) -> BaseFileWriter:
        Path(self._staged.native).parent.mkdir(parents=True, exist_ok=True)
        return BaseFileWriter(self._staged.native, self._task.schema, self._task.form)

    def stamp(self, rows: pa.Table) -> pa.Table:
        """Give incoming rows the meta columns."""
        prefix = f"{zlib.crc32(f'{self._group.partition}/{self._group.file_id}'.encode())}"
        stamped = stamp_rows(
            rows, self._task.schema, instant=self._task.files.requested, seqno_prefix=prefix, first_seqno=self._stamped
        )
        self._stamped += rows.num_rows
        return stamped

    def append(self, rows: pa.RecordBatch) -> None:
        """Write rows of a new file group."""
        if not self.is_done:
            self._write(self.stamp(pa.Table.from_batches([rows])))
            self._counts["num_inserts"] += rows.num_rows

    def merge(self, merge: Merge) -> None:
        """Let the present rows stream through `merge` into the new file."""
        for existing in self._read_present():
            self._write(merge.apply(existing))
        for rows in merge.remaining():
            self._write(rows)
            self._counts["num_inserts"] += rows.num_rows
        self._counts |= {"num_update_writes": merge.updates, "num_deletes": merge.deletes}

    def _read_present(self) -> Iterator[pa.Table]:
        if self._group.base is not None:
            path = self._task.files.storage.native(self._group.base.path)
            for rows in read_base_file(path):
                yield conform(rows, self._task.schema)

    def _write(self, rows: pa.Table) -> None:
        if self._writer is None:
            return
        self._counts["num_writes"] += rows.num_rows
        self._writer.write(rename_file(rows, self._name))

    @property
    def buffered_bytes(self) -> int:
        """Memory that rows take which are not in the file yet."""
        return self._writer.buffered_bytes if self._writer is not None else 0

    def flush(self) -> None:
        """Bring them to the file."""
        if self._writer is not None:
            self._writer.flush()

    def finish(self) -> WriteStat | None:
        """Name the file; None if no row changed, so that no new file is needed.

        Raises:
            WriteAborted: The instant was rolled back meanwhile.
        """
        files = self._task.files
        changed = any(self._counts[name] for name in ("num_inserts", "num_update_writes", "num_deletes"))
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close(self._counts)
            if not changed:
                files.discard(self._staged)
                return None
        create_partition_metadata(files.storage, self._group.partition, instant=files.requested)
        if not files.finish(self._staged):
            self._counts = read_counts(files.storage.native(self._staged.target))
        return self._make_stat()

    def _make_stat(self) -> WriteStat:
        entry = self._task.files.storage.stat(self._staged.target)
        size = entry.size if entry else 0
        base = self._group.base
        return WriteStat(
            self._group.partition,
            self._group.file_id,
            self._staged.target,
            prev_commit=base.instant if base else "null",
            prev_base_file=base.path.rpartition("/")[2] if base else None,
            file_size_bytes=size,
            total_write_bytes=size,
            num_writes=self._counts["num_writes"],
            num_inserts=self._counts["num_inserts"],
            num_update_writes=self._counts["num_update_writes"],
            num_deletes=self._counts["num_deletes"],
        )

    def __enter__(self) -> _GroupWriter:
        return self

    def __exit__(self, *_: object) -> None:
        """Take a file away that was not finished: on a full disk each attempt would leave one more."""
        if self._writer is not None:
            self._writer.abandon()
            self._task.files.discard(self._staged)


class _Streams:
    """The open files of new file groups; together they keep no more rows in memory than the task may."""

    def __init__(self, task: WriteTask) -> None:
        self._task = task
        self._writers: dict[FileGroup, _GroupWriter] = {}

    def append(self, group: FileGroup, rows: pa.RecordBatch) -> None:
        if group not in self._writers:
            self._writers[group] = _GroupWriter(self._task, group)
        self._writers[group].append(rows)
        if sum(writer.buffered_bytes for writer in self._writers.values()) > self._task.memory_bytes:
            max(self._writers.values(), key=lambda writer: writer.buffered_bytes).flush()

    def finish(self) -> list[WriteStat | None]:
        return [writer.finish() for writer in self._writers.values()]

    def __enter__(self) -> _Streams:
        return self

    def __exit__(self, *args: object) -> None:
        for writer in self._writers.values():
            writer.__exit__(*args)


def _split_by_group(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[_Key, pa.RecordBatch]]:
    """Cut batches so that each piece belongs to one file group; most batches are of one piece already."""
    for batch in batches:
        table = pa.Table.from_batches([batch])
        keys = table.group_by([PARTITION_PATH, GROUP]).aggregate([]).to_pylist()
        for key in keys:
            rows = batch if len(keys) == 1 else _filter(batch, key)
            yield (key[PARTITION_PATH], key[GROUP]), rows


def _filter(batch: pa.RecordBatch, key: dict[str, Any]) -> pa.RecordBatch:
    masks = [pc.equal(batch.column(name), value) for name, value in key.items()]
    return batch.filter(pc.and_(*masks))


def _encode_stats(stats: list[WriteStat]) -> pa.RecordBatch:
    texts = [json.dumps(dataclasses.asdict(stat)) for stat in stats]
    return pa.RecordBatch.from_pydict({STAT: pa.array(texts, pa.string())})


def decode_stat(text: str) -> WriteStat:
    """A write stat as a task reported it."""
    return WriteStat(**json.loads(text))
