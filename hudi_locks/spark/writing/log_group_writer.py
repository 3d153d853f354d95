"""The log files that a task makes of one file group, and what it reports of them. Runs on executors.

The first log of a write in a file group has one name for every attempt of the task, is named last, and decides: who
finds the name taken lets go of what he made. So of two attempts one counts, whole. Further logs, where the first was
full, have names that no other attempt gives; those of an attempt that died are removed before the commit, or hold
nothing but rows that the commit has too.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import secrets
from collections.abc import Collection, Sequence
from typing import Any, Final

import pyarrow as pa

from hudi_locks.errors import DamagedTable
from hudi_locks.format import IOType, LogFileName, MarkerName, WriteStat
from hudi_locks.markers import FinalFiles, StagedFile, staging_folder
from hudi_locks.spark.writing.group_writer import decode_stat
from hudi_locks.spark.writing.placement import FileGroup
from hudi_locks.table import LogFormat, LogPart, LogWriter, count_log, create_partition_metadata

__all__ = ["LogGroupWriter", "name_log_marker"]

_TOKEN_LIMIT: Final = 2**31
_FIRST: Final = 1


def name_log_marker(group: FileGroup, requested: str) -> MarkerName:
    """The marker by which the delta commit begun at `requested` announces the first log of a file group."""
    return MarkerName(group.partition, str(LogFileName(group.file_id, requested)), IOType.CREATE)


class LogGroupWriter:
    """The new logs of one file group. An earlier attempt of the task may have made them: then nothing is written.

    Args:
        files: Gives the files their names.
        form: How they are encoded.
        group: The file group.
        is_update: Whether its rows count as updates: nobody looks which of their keys are there.
        stands_for: Requested times of the writes whose logs a log compaction merges; else none.
    """

    def __init__(
        self,
        files: FinalFiles,
        form: LogFormat,
        *,
        group: FileGroup,
        is_update: bool,
        stands_for: Collection[str] = (),
    ) -> None:
        self._files = files
        self._group = group
        self._is_update = is_update
        self._token = "-".join(str(secrets.randbelow(_TOKEN_LIMIT)) for _ in range(3))
        self._staged = [self._stage(name_log_marker(group, files.requested))]
        self._writer = LogWriter(
            self._open, form, instant=files.requested, partition=group.partition, stands_for=stands_for
        )

    @property
    def is_done(self) -> bool:
        """Whether an earlier attempt made the files."""
        return self._staged[0].is_taken

    def write(self, rows: pa.Table) -> None:
        """Add stamped rows, one for each key."""
        with self._files.within_turn():
            self._writer.write(rows)

    def delete(self, keys: pa.ChunkedArray, orderings: Sequence[pa.ChunkedArray] = ()) -> None:
        """Take out the rows of these keys; see `LogWriter.delete`."""
        with self._files.within_turn():
            self._writer.delete(keys, orderings)

    def delete_again(self, deletes: Sequence[tuple[str, Any]]) -> None:
        """Take out rows as deletes of other logs do; see `LogWriter.delete_again`."""
        with self._files.within_turn():
            self._writer.delete_again(deletes)

    def finish(self) -> list[WriteStat]:
        """Name the files, the one that decides last; the stats of those that count.

        Raises:
            WriteAborted: The instant was rolled back meanwhile.
        """
        with self._files.within_turn():
            parts = self._writer.close()
        if self.is_done or self._files.storage.exists(self._staged[0].target):
            return self._yield_to_other()
        create_partition_metadata(self._files.storage, self._group.partition, instant=self._files.requested)
        stats = [self._make_stat(staged.target, part) for staged, part in zip(self._staged, parts, strict=True)]
        if len(parts) > 1:
            self._name_further()
            stats = self._note(self._writer.first_digest, stats)
        if not self._files.finish(self._staged[0]):
            return self._yield_to_other()
        self._let_go_but_for(stats)
        return stats

    def _stage(self, marker: MarkerName) -> StagedFile:
        """Announced by the caller, or before it is named."""
        return self._files.start(marker.partition_path, marker.data_file, io_type=marker.io_type, is_announced=True)

    def _open(self, version: int) -> StagedFile:
        if version > _FIRST:
            name = LogFileName(self._group.file_id, self._files.requested, version, self._token)
            self._staged.append(self._stage(MarkerName(self._group.partition, str(name), IOType.CREATE)))
        return self._staged[-1]

    def _name_further(self) -> None:
        further = self._staged[1:]
        names = [staged.target.rpartition("/")[2] for staged in further]
        self._files.announce([MarkerName(self._group.partition, name, IOType.CREATE) for name in names])
        for staged in further:
            self._files.finish(staged)

    def _yield_to_other(self) -> list[WriteStat]:
        """Report what the attempt did whose first log is there, and let go of what this one made."""
        target = self._staged[0].target
        data = self._files.storage.read(target)
        if data is None:
            raise DamagedTable(f"{target} is gone: the write was rolled back, or somebody removed it", path=target)
        noted = self._read_note(hashlib.sha256(data).hexdigest())
        stats = noted or [self._make_stat(target, count_log(data, target))]
        self._let_go_but_for(stats)
        return stats

    def _let_go_but_for(self, stats: Sequence[WriteStat]) -> None:
        counted = {stat.path for stat in stats}
        for staged in self._staged[1:]:
            if staged.target not in counted:
                self._files.storage.delete(staged.target)

    def _note(self, digest: str, stats: list[WriteStat]) -> list[WriteStat]:
        """Say which logs go with a first one of these bytes; those of an attempt that said so before, if one did."""
        texts = json.dumps([json.dumps(dataclasses.asdict(stat)) for stat in stats])
        is_first = self._files.storage.create_if_absent(self._note_path(digest), texts.encode())
        return stats if is_first else self._read_note(digest)

    def _read_note(self, digest: str) -> list[WriteStat]:
        noted = self._files.storage.read(self._note_path(digest))
        return [decode_stat(text) for text in json.loads(noted)] if noted else []

    def _note_path(self, digest: str) -> str:
        return f"{staging_folder(self._files.requested)}/logs/{digest}.json"

    def _make_stat(self, path: str, part: LogPart) -> WriteStat:
        return WriteStat(
            self._group.partition,
            self._group.file_id,
            path,
            prev_commit=self._files.requested,
            num_writes=part.rows,
            num_inserts=0 if self._is_update else part.rows,
            num_update_writes=part.rows if self._is_update else 0,
            num_deletes=part.deletes,
            file_size_bytes=part.size,
            total_write_bytes=part.size,
            log_version=part.version,
            log_offset=0,
            base_file="",
            log_files=(path.rpartition("/")[2],),
        )

    def __enter__(self) -> LogGroupWriter:
        return self

    def __exit__(self, *_: object) -> None:
        """Take files away that have no name: on a full disk each attempt would leave some more."""
        self._writer.abandon()
        for staged in self._staged:
            self._files.discard(staged)
