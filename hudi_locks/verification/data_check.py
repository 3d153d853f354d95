"""Data files: whether those that commits and savepoints name are there, and can be read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Final

from hudi_locks.errors import DamagedTable, NoSuchFile
from hudi_locks.format import META_COLUMNS, LogFileName, SavepointMetadata, WriteStat, arrow_schema
from hudi_locks.storage import map_in_threads
from hudi_locks.table import (
    PARTITION_METADATA,
    BaseFile,
    LogFile,
    describe_base_file,
    read_changes,
    read_log,
    read_partition_metadata,
)
from hudi_locks.table.losses import Scope, find_losses, is_amiss
from hudi_locks.table.table import CommitFiles
from hudi_locks.verification.survey import Survey

__all__ = ["check_data"]

_BASE: Final = "base-file"
_LOG: Final = "log"
_UNREAD: Final = "the values in base files: their footers alone are read, unless all values are asked for (--values)"


def check_data(survey: Survey) -> None:
    """Look at every data file, and for every one that should be there."""
    named = survey.named_files()
    _check_presence(survey, named)
    _check_savepoints(survey)
    _check_partitions(survey)
    stats = {stat.path: stat for write in survey.writes.values() for stat in write.metadata.stats if stat.path}
    files = [file for file in survey.files.every if file.size]
    change_logs = frozenset(file.path for file in survey.files.change_logs)
    map_in_threads(lambda file: _check_content(survey, file, stats.get(file.path), change_logs), files)
    if survey.files.bases and not survey.reads_values:
        survey.book.leave_out(_UNREAD)
    _note_strays(survey, named)


def _check_presence(survey: Survey, named: Mapping[str, CommitFiles]) -> None:
    """What the newest snapshot needs, and what a later look at the past needs: all that no clean has taken."""
    there = {file.path: file.size for file in survey.files.every}
    ended = survey.replaced_groups()
    scope = Scope().on(survey.timeline, survey.completion)
    losses = find_losses(survey.files, named, scope=scope, completion=survey.completion)
    needed = {loss.file.path: loss.file for loss in losses if loss.group not in ended}
    taken = survey.cleaned_paths()
    for requested, commit in named.items():
        for file in commit.files.every:
            is_kept = survey.writes[requested].is_active and file.path not in taken
            if is_amiss(file, there.get(file.path)) and (is_kept or file.path in there):
                needed[file.path] = file
    for path, file in needed.items():
        if path not in taken or path in there or not survey.table.layout.is_version_6:
            _report_loss(survey, file, there.get(path), is_cleaned=path in taken)


def _report_loss(survey: Survey, file: BaseFile | LogFile, found: int | None, *, is_cleaned: bool) -> None:
    kind = _LOG if isinstance(file, LogFile) else _BASE
    size = f" of {file.size} bytes" if file.size else ""
    gone = "no such file, and a clean says that it took it" if is_cleaned else "no such file"
    advice = "bring the file back from a copy of the table, or restore the table to a savepoint"
    expected = f"the file{size} that the write {file.instant} made"
    survey.book.damage(
        kind, file.path, expected=expected, found=gone if found is None else f"{found} bytes", advice=advice
    )


def _check_savepoints(survey: Survey) -> None:
    there = {file.path for file in survey.files.every}
    for instant in survey.timeline.completed(("savepoint",)):
        path = survey.timeline.paths[instant]
        with survey.book.reading("savepoint", path, "a savepoint"):
            kept = SavepointMetadata.decode(survey.contents.get(path, b""), path).paths
            for lost in sorted(kept - there - _tell_unnamed(survey, kept - there)):
                expected = f"the file that the savepoint of {instant.requested} keeps"
                survey.book.damage("savepoint", lost, expected=expected, found="no such file")


def _tell_unnamed(survey: Survey, paths: Collection[str]) -> frozenset[str]:
    """Logs of version 6 that no write names: a savepoint keeps those of later ones too, which a restore has undone."""
    if not survey.table.layout.is_version_6:
        return frozenset()
    named = {stat.path for write in survey.writes.values() for stat in write.metadata.stats}
    return frozenset(path for path in paths if path not in named and LogFileName.parse(path.rpartition("/")[2]))


def _check_partitions(survey: Survey) -> None:
    for partition in sorted({file.partition for file in survey.files.every} | survey.partitions):
        path = f"{partition}/{PARTITION_METADATA}".removeprefix("/")
        survey.book.checked["partitions"] += 1
        if partition not in survey.partitions:
            advice = f"make it anew with the lines commitTime=… and partitionDepth={partition.count('/') + 1}"
            found = "none, so that no reader looks into the partition"
            survey.book.damage(
                "partition", path, expected="the file that marks a partition", found=found, advice=advice
            )
            continue
        with survey.book.reading("partition", path, "commitTime and partitionDepth"):
            read_partition_metadata(survey.storage, partition)


def _check_content(
    survey: Survey, file: BaseFile | LogFile, stat: WriteStat | None, change_logs: Collection[str]
) -> None:
    """A file that vanishes meanwhile was cleaned, or is missed by the next walk."""
    if survey.completion(file.instant) is None:
        return
    kind = _BASE if isinstance(file, BaseFile) else _LOG
    with suppress(NoSuchFile), survey.book.reading(kind, file.path, "a file that can be read"):
        if isinstance(file, BaseFile):
            _check_base(survey, file, stat)
        elif file.path in change_logs:
            _check_change_log(survey, file)
        else:
            _check_log(survey, file)


def _check_base(survey: Survey, file: BaseFile, stat: WriteStat | None) -> None:
    survey.book.checked["base files"] += 1
    rows, columns = describe_base_file(survey.storage, file.path, decodes=survey.reads_values)
    write = survey.writes.get(file.instant)
    if stat is not None and rows != stat.num_writes:
        raise DamagedTable(f"{rows} rows, and the commit says {stat.num_writes}", path=file.path)
    if write is None or not write.metadata.schema:
        return
    wanted = {*arrow_schema(write.metadata.schema, write.path).names, *META_COLUMNS}
    if lacking := sorted(wanted - set(columns)):
        raise DamagedTable(f"no column {', '.join(lacking)}, which the commit names", path=file.path)


def _check_log(survey: Survey, file: LogFile) -> None:
    survey.book.checked["logs"] += 1
    data = survey.storage.read(file.path)
    takes = (lambda _: True) if survey.table.layout.has_old_logs else None  # a rollback's own blocks have no rows
    for entry in read_log(data or b"", file.path, takes=takes):
        survey.book.checked["log blocks"] += 1
        _ = entry.whole
        _refuse_other_write(survey, file, entry.instant)


def _check_change_log(survey: Survey, file: LogFile) -> None:
    survey.book.checked["change logs"] += 1
    for instant, _ in read_changes(survey.storage.read(file.path) or b"", file.path):
        _refuse_other_write(survey, file, instant)


def _refuse_other_write(survey: Survey, file: LogFile, instant: str) -> None:
    """A JVM writer that writes twice beside a pending clustering names its logs by that, as it says in its commit."""
    if survey.table.layout.has_old_logs or instant == file.instant:
        return
    write = survey.writes.get(instant)
    if write is None or file.path not in {named.path for named in CommitFiles.of(write.metadata).files.every}:
        raise DamagedTable(f"a block of the write {instant}", path=file.path)


def _note_strays(survey: Survey, named: Mapping[str, CommitFiles]) -> None:
    known = {file.path for commit in named.values() for file in commit.files.every}
    pending = survey.pending
    for file in survey.files.every:
        is_told = file.instant in survey.writes
        if file.path in known or file.instant in pending or (survey.completion(file.instant) and not is_told):
            continue  # the last: of a write that left the history, or of one whose metadata is damaged
        found = "a completed write that does not name it" if is_told else "no such write"
        expected, advice = f"a write {file.instant} that names it", "nothing; `hudi-locks clean` sweeps leftovers"
        survey.book.note("stray", file.path, expected=expected, found=found, advice=advice)
