"""The file that a task makes of one file group. Runs on executors."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.errors import WriteAborted
from hudi_locks.format import IOType, MarkerName, WriteStat
from hudi_locks.markers import StagedFiles
from hudi_locks.spark.operation import KeyReport
from hudi_locks.spark.writing.change_log_writer import ChangeLogWriter
from hudi_locks.spark.writing.placement import FileGroup
from hudi_locks.table import (
    RECORD_KEY,
    BaseFileFormat,
    BaseFileWriter,
    ChangeFormat,
    ColumnHistory,
    Merge,
    conform,
    create_partition_metadata,
    read_base_file,
    rename_file,
    stamp_rows,
)

__all__ = ["GroupWriter", "name_marker", "seqno_prefix"]


class GroupWriter:
    """The new base file of one file group, which gets its name from the claim of the commit.

    Args:
        files: Of the instant.
        schema: Of the base file, meta columns included.
        form: How it is encoded.
        group: The file group.
        is_announced: Whether its file was announced before, with others.
        keys: Takes the record keys that the file group gains and loses.
        changes: How what a merge changes is written down, in a file of its own; None if it is not.
        history: Of a table in which ALTER TABLE changed columns, as the file before has them.
    """

    def __init__(
        self,
        files: StagedFiles,
        schema: pa.Schema,
        *,
        form: BaseFileFormat,
        group: FileGroup,
        is_announced: bool = False,
        keys: KeyReport | None = None,
        changes: ChangeFormat | None = None,
        history: ColumnHistory | None = None,
    ) -> None:
        self._files = files
        self._history = history
        self._keys = keys or KeyReport()
        self._schema = schema
        self._group = group
        marker = name_marker(group, files)
        self._name = marker.data_file
        self._staged = files.start(group.partition, self._name, io_type=marker.io_type, is_announced=is_announced)
        self._counts = {"num_writes": 0, "num_inserts": 0, "num_update_writes": 0, "num_deletes": 0}
        self._stamped = 0
        self._virtual_keys = form.virtual_keys
        self._writer = BaseFileWriter(self._staged, self._schema, form, indexed=files.indexed)
        self._changes = None if changes is None or group.base is None else ChangeLogWriter(files, group, changes)
        self._is_finished = False

    def stamp(self, rows: pa.Table) -> pa.Table:
        """Give incoming rows the meta columns."""
        instant, prefix = self._files.requested, seqno_prefix(self._group)
        stamped = stamp_rows(rows, self._schema, instant=instant, seqno_prefix=prefix, first_seqno=self._stamped)
        self._stamped += rows.num_rows
        return stamped

    def append(self, rows: pa.RecordBatch) -> None:
        """Write rows of a new file group."""
        self._add(self.stamp(pa.Table.from_batches([rows])))

    def carry(self, rows: pa.RecordBatch) -> None:
        """Write rows of other file groups as they are, with all meta columns but the name of their file."""
        self._add(conform(pa.Table.from_batches([rows]), self._schema))

    def merge(self, merge: Merge) -> None:
        """Let the present rows stream through `merge` into the new file.

        Raises:
            WriteAborted: Rows are missing from it, or there twice, by what `merge` counted.
        """
        present = 0
        if self._changes is not None:
            merge.tell_changes(self._changes.change)
        for existing in self._read_present():
            present += existing.num_rows
            merged = merge.apply(existing)
            self._tell_lost(existing, merged)
            self._write(merged)
        for rows in merge.remaining():
            self._add(rows)
        self._counts |= {"num_update_writes": merge.updates, "num_deletes": merge.deletes}
        self._refuse_other_count(present)

    def _add(self, rows: pa.Table) -> None:
        """Write rows that are new to the file group."""
        self._write(rows)
        self._counts["num_inserts"] += rows.num_rows
        if self._changes is not None:
            self._changes.add(rows)
        self._keys.tell(rows.column(RECORD_KEY), self._group.partition, self._group.file_id)

    def _tell_lost(self, existing: pa.Table, merged: pa.Table) -> None:
        if self._keys.is_asked and merged.num_rows < existing.num_rows:
            keys, kept = existing.column(RECORD_KEY), merged.column(RECORD_KEY)
            lost = keys.filter(pc.invert(pc.is_in(keys, value_set=kept)))
            self._keys.tell(lost, self._group.partition, self._group.file_id, is_gone=True)

    def _refuse_other_count(self, present: int) -> None:
        written, added, taken_out = (self._counts[name] for name in ("num_writes", "num_inserts", "num_deletes"))
        expected = present + added - taken_out
        if written == expected:
            return
        message = (
            f"the new file {self._name} has {written} rows, and {present} present and {added} new ones less {taken_out}"
            f" deleted are {expected}: it is not used, and the table is as before; report it with the rows and options"
        )
        raise WriteAborted(message, path=self._staged.target, rows_written=written, rows_expected=expected)

    def _read_present(self) -> Iterator[pa.Table]:
        base, history, keys = self._group.base, self._history, self._virtual_keys
        for rows in () if base is None else read_base_file(self._files.storage, base.path):
            named = rows if history is None or base is None else history.bring_up(rows, base.instant)
            yield conform(named if keys is None else keys.fill(named, self._group.partition), self._schema)

    def _write(self, rows: pa.Table) -> None:
        self._counts["num_writes"] += rows.num_rows
        with self._files.while_inflight():
            self._writer.write(rename_file(rows, self._name))

    @property
    def buffered_bytes(self) -> int:
        """Memory that rows take which are not in the file yet."""
        return self._writer.buffered_bytes

    def flush(self) -> None:
        """Bring them to the file."""
        with self._files.while_inflight():
            self._writer.flush()

    def finish(self) -> WriteStat | None:
        """Seal the file; None if no row changed, so that no new file is needed.

        Raises:
            WriteAborted: The instant was rolled back meanwhile.
        """
        changed = any(self._counts[name] for name in ("num_inserts", "num_update_writes", "num_deletes"))
        return self.finish_always() if changed else None

    def finish_always(self) -> WriteStat:
        """Seal the file, though it may have no rows, or those that were there. Raises what `finish` raises."""
        files = self._files
        with files.while_inflight():
            size = self._writer.close()
            if self._group.base is None:  # else the partition was marked before that was written
                create_partition_metadata(files.storage, self._group.partition, instant=files.requested)
        stat = self._make_stat(size, ticket=files.seal(self._staged))
        self._is_finished = True
        return stat

    def _make_stat(self, size: int, *, ticket: str) -> WriteStat:
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
            ticket=ticket,
            ranges=self._writer.ranges(),
            key_filter=self._writer.key_filter if self._files.has_filters else None,
            change_logs=() if self._changes is None else self._changes.finish(),
        )

    def __enter__(self) -> GroupWriter:
        return self

    def __exit__(self, *_: object) -> None:
        """Give a file up that was not finished: on a full disk each attempt would leave one more."""
        if not self._is_finished:
            self._writer.abandon()
            self._staged.discard()
            if self._changes is not None:
                self._changes.abandon()


def seqno_prefix(group: FileGroup) -> str:
    """Middle part of the sequence numbers of a file group's rows: the JVM has the number of its task there."""
    return str(zlib.crc32(f"{group.partition}/{group.file_id}".encode()))


def name_marker(group: FileGroup, files: StagedFiles) -> MarkerName:
    """The marker by which a write announces its base file of a file group."""
    io_type = IOType.MERGE if group.base else IOType.CREATE
    return MarkerName(group.partition, str(files.name_base(group.partition, group.file_id)), io_type)
