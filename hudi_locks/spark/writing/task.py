"""What an executor does with the rows of its file groups: merge, write, report the file with its ticket.

Nothing here talks to Spark: a task takes record batches and gives back one record batch of write stats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.errors import BadInput
from hudi_locks.format import MarkerName, WriteStat
from hudi_locks.markers import StagedFiles
from hudi_locks.spark.operation import KeyReport, Operation, encode_report
from hudi_locks.spark.writing.group_writer import GroupWriter, name_marker
from hudi_locks.spark.writing.placement import GROUP, MOVED, FileGroup, Groups
from hudi_locks.table import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    FILE_NAME,
    PARTITION_PATH,
    RECORD_KEY,
    AppendMerge,
    BaseFileFormat,
    ChangeFormat,
    DeleteMerge,
    Merge,
    MergeRule,
    MovingMerge,
    RowBuffers,
    UpsertMerge,
    check_partition_path,
    conform,
    find_deletes,
    find_malformed,
)

__all__ = [
    "MovedKeys",
    "WriteTask",
    "input_schema",
    "refuse_keyless",
    "refuse_null_keys",
    "refuse_placeless",
    "select_input",
    "split_by_group",
]

_Key = tuple[str, Any]


@dataclass(frozen=True)
class WriteTask:
    """Writes the file groups of one Spark partition. Picklable; made on the driver, called on executors.

    Attributes:
        files: Makes the data files of the instant.
        schema: Of the base files, meta columns included.
        form: How base files are encoded.
        groups: Resolves the GROUP column.
        operation: What to do with the rows.
        rule: Which of two rows with one key wins.
        combine: Whether rows of the input with one key become one row.
        key_fields: Record key fields, for the error about a row without key.
        memory_bytes: How much of the input stays in memory; more goes to local disk.
        changes: How what changes in a file group is written down; None if it is not.
    """

    files: StagedFiles
    schema: pa.Schema
    form: BaseFileFormat
    groups: Groups
    operation: Operation
    rule: MergeRule
    combine: bool
    key_fields: tuple[str, ...]
    memory_bytes: int
    changes: ChangeFormat | None

    @property
    def input_schema(self) -> pa.Schema:
        """What is kept of the input."""
        return input_schema(self.schema)

    def open(self, group: FileGroup, keys: KeyReport) -> GroupWriter:
        """Begin the new base file of a file group that was announced."""
        return GroupWriter(
            self.files,
            self.schema,
            form=self.form,
            group=group,
            is_announced=True,
            keys=keys,
            changes=self.changes,
            history=self.rule.history,
        )

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take all rows of the partition, and yield one batch of stats, with those of keys where they are told.

        A file group that is left as it is has a stat without a path: also that was decided by what it holds.
        """
        moved, told = MovedKeys(), KeyReport(self.files.key_groups)
        with _Streams(self, told) as streams, RowBuffers[_Key](self.input_schema, self.memory_bytes) as buffers:
            for key, whole in split_by_group(batches):
                refuse_keyless(whole, self.key_fields)
                refuse_placeless(whole, self.rule, self.operation)
                rows = moved.take_out(key, whole)
                if key[0]:
                    check_partition_path(key[0])
                group = self.groups.find(*key)
                if self._is_stream(group):
                    streams.append(group, self._drop_deletes(rows))
                else:
                    buffers.add(key, select_input(rows, self.input_schema))
            keys = list(buffers.keys())
            buffered = {key: self.groups.find(*key) for key in keys}
            streams.check_s += self.announce(buffered.values())
            stats: list[WriteStat] = []
            for key, group in buffered.items():
                stats += self.write(group, buffers.take(key), moved.of(key), told)
            stats += streams.finish()
        yield from told.join(encode_report(stats, streams.check_s))

    def _is_stream(self, group: FileGroup) -> bool:
        """Rows of a new file group can be written at once, unless they must be compared with each other first."""
        return group.base is None and not self.combine and self.operation is not Operation.DELETE

    def _drop_deletes(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        deletes = find_deletes(pa.Table.from_batches([rows]), self.rule.deletes)
        return rows if deletes is None else rows.filter(pa.array(~deletes))

    def _is_left_alone(self, group: FileGroup) -> bool:
        """Keys that are nowhere are not deleted."""
        return group.base is None and self.operation is Operation.DELETE

    def announce(self, groups: Iterable[FileGroup]) -> float:
        """Make the markers of files before the first of them is read, so that a conflict costs as little as it can.

        Returns:
            How long other writes were looked at, in seconds.
        """
        names = [self.name(group) for group in groups if not self._is_left_alone(group)]
        return self.files.announce(names) if names else 0.0

    def name(self, group: FileGroup) -> MarkerName:
        """The marker of the first file that a file group gets."""
        return name_marker(group, self.files)

    def write(self, group: FileGroup, rows: pa.Table, moved: pa.Array | None, told: KeyReport) -> list[WriteStat]:
        """Write the rows of an announced file group, without those that are `moved` elsewhere."""
        if self._is_left_alone(group):
            return [_leave(group)]
        with self.open(group, told) as writer:
            merge = self._choose_merge(writer, rows)
            writer.merge(merge if moved is None else MovingMerge(merge, moved))
            return [writer.finish() or _leave(group)]

    def _choose_merge(self, writer: GroupWriter, rows: pa.Table) -> Merge:
        if self.operation is Operation.DELETE:
            return DeleteMerge(rows)
        stamped = writer.stamp(rows)
        if self.operation is Operation.UPSERT or self.combine:
            return UpsertMerge(stamped, self.rule)
        return AppendMerge(stamped, self.rule)


class MovedKeys:
    """Keys whose rows are taken out, since they go to another partition or are deleted, by file group."""

    def __init__(self) -> None:
        self._keys: dict[_Key, list[pa.Array]] = {}

    def take_out(self, key: _Key, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are written to the file group; remembers the keys of the others."""
        if MOVED not in rows.schema.names:
            return rows
        leaving = rows.column(MOVED)
        keys = rows.column(RECORD_KEY).filter(leaving)
        if len(keys):
            self._keys.setdefault(key, []).append(keys)
        return rows.filter(pc.invert(leaving))

    def of(self, key: _Key) -> pa.Array | None:
        """Those of a file group; None if it keeps all."""
        return pa.concat_arrays(self._keys[key]) if key in self._keys else None


class _Streams:
    """The open files of new file groups; together they keep no more rows in memory than the task may."""

    def __init__(self, task: WriteTask, told: KeyReport) -> None:
        self._task = task
        self._told = told
        self._writers: dict[FileGroup, GroupWriter] = {}
        self.check_s = 0.0

    def append(self, group: FileGroup, rows: pa.RecordBatch) -> None:
        if group not in self._writers:
            self.check_s += self._task.announce([group])
            self._writers[group] = self._task.open(group, self._told)
        self._writers[group].append(rows)
        if sum(writer.buffered_bytes for writer in self._writers.values()) > self._task.memory_bytes:
            max(self._writers.values(), key=lambda writer: writer.buffered_bytes).flush()

    def finish(self) -> list[WriteStat]:
        return [writer.finish() or _leave(group) for group, writer in self._writers.items()]

    def __enter__(self) -> _Streams:
        return self

    def __exit__(self, *args: object) -> None:
        for writer in self._writers.values():
            writer.__exit__(*args)


def _leave(group: FileGroup) -> WriteStat:
    return WriteStat(group.partition, group.file_id, None)


def input_schema(schema: pa.Schema) -> pa.Schema:
    """What is kept of the input for files of this schema: record key, partition path and the user's columns."""
    return pa.schema([field for field in schema if field.name not in (COMMIT_TIME, COMMIT_SEQNO, FILE_NAME)])


def select_input(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with the columns of `schema` alone."""
    chosen = conform(pa.Table.from_batches([rows]), schema).combine_chunks().to_batches()
    return chosen[0] if chosen else pa.RecordBatch.from_pylist([], schema)


def split_by_group(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[_Key, pa.RecordBatch]]:
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


def refuse_keyless(rows: pa.RecordBatch, fields: Sequence[str]) -> None:
    """Raise if a row has no record key.

    Raises:
        BadInput: One has none.
    """
    keys = rows.column(RECORD_KEY)
    if keys.null_count:
        partition = rows.filter(keys.is_null()).column(PARTITION_PATH)[0].as_py()
        refuse_null_keys(keys.null_count, partition, fields=fields)


def refuse_placeless(rows: pa.RecordBatch, rule: MergeRule, operation: Operation) -> None:
    """Raise if a row has no place in a log by which it can be compared, where the rule goes by that.

    Rows that are inserted may have none: whatever comes later replaces them.

    Raises:
        BadInput: One has none, or a text that is no place.
    """
    if not rule.by_place or operation is Operation.DELETE:
        return
    for name in rule.ordering:
        column = pa.chunked_array([rows.column(name)])
        strange = find_malformed(column)
        if strange is not None or (column.null_count and operation is Operation.UPSERT):
            message = (
                f"{name}={strange!r} is no place such as 000002.1234, the number of a file and a position in it, by"
                f" which MySqlDebeziumAvroPayload compares rows; leave such rows out, or give each a place"
            )
            raise BadInput(message, column=name, value=strange)


def refuse_null_keys(count: int, partition: str, *, fields: Sequence[str]) -> NoReturn:
    """Raise for rows whose key fields are null or empty.

    Raises:
        BadInput: Always.
    """
    raise BadInput(
        f"{count} rows have no record key: {', '.join(fields)} is null or empty, for instance in partition"
        f" {partition!r}; give each row a key or leave those rows out",
        count=count,
        partition=partition,
        fields=list(fields),
    )
