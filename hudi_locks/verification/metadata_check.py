"""The metadata table: whether readers that go by it see every data file, and every row that they filter for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

import pyarrow as pa

from hudi_locks.errors import NoSuchFile
from hudi_locks.format import METADATA_FOLDER, MetadataPartition
from hudi_locks.format.column_range import ColumnRange
from hudi_locks.format.key_groups import KeyGroups
from hudi_locks.format.metadata_keys import NO_PARTITION
from hudi_locks.format.metadata_record import ColumnStatistics
from hudi_locks.metadata_table import LocatedKeys, MetadataTable, MetadataView, hides_some, read_keys, read_ranges
from hudi_locks.storage import map_in_threads
from hudi_locks.table import (
    BaseFile,
    DataFiles,
    FileSlice,
    LogFile,
    slice_file_groups,
)
from hudi_locks.verification.survey import Survey

__all__ = ["check_metadata_table"]

_File = TypeVar("_File", bound=BaseFile | LogFile)
_KIND: Final = "metadata-table"
_FILE_KINDS: Final = ("base-file", "log-file")
_STATISTICS: Final = (MetadataPartition.COLUMN_STATS, MetadataPartition.PARTITION_STATS)
_LOGS: Final = "statistics of logs in the metadata table"
_READ: Final = frozenset(part.value for part in MetadataPartition if part is not MetadataPartition.BLOOM_FILTERS)
_KEYS: Final = MetadataPartition.RECORD_INDEX
_UNREAD_KEYS: Final = "the record index: keys are read if all values are asked for (--values), or by metadata verify"
_INDEX_ANEW: Final = (
    "make it anew with hudi-locks metadata rebuild, with the lock options of the table's writers; until then write with"
    " hoodie.index.type=GLOBAL_SIMPLE, or with SIMPLE where a key may be in several partitions"
)
_UNUSED: Final = "the metadata table, since the table's properties name no part of it that is in use"
_REBUILD: Final = "make it anew with hudi-locks metadata rebuild, with the lock options of the table's writers"
_COMPACT: Final = "compact its file group: the base file gets a name of its own; until then filters may miss rows"
_READ_ALL: Final = (
    "make it anew with hudi-locks metadata rebuild; until then read with hoodie.enable.data.skipping=false. If the"
    " column holds NaN, JVM Hudi itself made the range"
)


def check_metadata_table(survey: Survey) -> None:
    """Compare the names in the metadata table with what is there, if the table keeps one."""
    with survey.book.reading(_KIND, METADATA_FOLDER, "a metadata table that can be read"):
        found = MetadataTable.of(survey.storage, survey.table.config)
        if found is not None:
            view = found.view(survey.timeline)
            _compare(survey, view.data_files())
            _check_statistics(survey, view)
            _check_record_index(survey, view)
        elif survey.storage.stat(METADATA_FOLDER) is not None:
            survey.book.leave_out(_UNUSED)


def _compare(survey: Survey, named: DataFiles) -> None:
    written = _list_written(survey)
    shown = _list_shown(survey, named) + [file for file in named.every if file.path in written]
    told = {file.path: file.size for file in shown}
    there = {file.path: file.size for file in survey.files.every}
    survey.book.checked["files in the metadata table"] += len(told)
    for path in sorted(written - told.keys()):
        _report(survey, path, "its name in the metadata table", "no such name, so that readers that go by it miss it")
    leaving = survey.planned_paths()
    for path, size in sorted(told.items()):
        found = there.get(path)
        if found is None and path not in leaving:
            _report(survey, path, f"the file of {size} bytes that the metadata table names", "no such file")
        elif found is not None and found != size:
            _report(survey, path, f"{found} bytes in the metadata table, as the file has", f"{size} bytes")


def _list_written(survey: Survey) -> set[str]:
    """Files that are there and that a completed write names."""
    named = {file.path for commit in survey.named_files().values() for file in commit.files.every}
    return {file.path for file in survey.files.every if file.path in named}


def _list_shown(survey: Survey, named: DataFiles) -> list[BaseFile | LogFile]:
    """Those of completed writes. Logs of version 6 are named by what is below them, perhaps by a plan of compaction."""
    if not survey.table.layout.is_version_6:
        return _list_completed(survey, named.every)
    return [*_list_completed(survey, named.bases), *named.logs, *named.change_logs]


def _check_statistics(survey: Survey, view: MetadataView) -> None:
    """Compare ranges with those in the footers of base files, which are a matter of their own for each column."""
    for name in sorted(view.table.names - _READ):
        survey.book.leave_out(f"the part {name} of the metadata table")
    told = {partition: _read_statistics(view, partition) for partition in _STATISTICS}
    columns = sorted({column for found in told.values() for _, column in found})
    if columns:
        _report_namesakes(survey)
    bases = _list_completed(survey, survey.files.bases) if columns else []
    ranges = dict(zip(bases, map_in_threads(partial(_read_ranges, survey, columns), bases), strict=True))
    for file, found in ranges.items():
        _compare_ranges(survey, file, found, told[MetadataPartition.COLUMN_STATS], file.path.rpartition("/")[2])
    for file in _list_newest(survey):
        name = file.partition or NO_PARTITION
        _compare_ranges(survey, file, ranges.get(file, {}), told[MetadataPartition.PARTITION_STATS], name)
    if any(name.startswith(".") for name, _ in told[MetadataPartition.COLUMN_STATS]):
        survey.book.leave_out(_LOGS)


def _check_record_index(survey: Survey, view: MetadataView) -> None:
    """Whether the key of each row is where the record index says."""
    if _KEYS.value not in view.table.names:
        return
    if not survey.reads_keys:
        survey.book.leave_out(_UNREAD_KEYS)
        return
    index = _open_index(survey, view)
    rule, schema = survey.table.config.merge_rule, survey.table.schema(survey.timeline) or pa.schema([])
    for piece in _list_slices(survey):
        file = piece.base or piece.logs[0]
        with suppress(NoSuchFile), survey.book.reading(_FILE_KINDS[piece.base is None], file.path, "rows to be read"):
            _look_up_keys(survey, file, read_keys(survey.storage, piece, schema, rule), index)


def _open_index(survey: Survey, view: MetadataView) -> Mapping[str, LocatedKeys]:
    """Each file group of the record index by its id."""
    slices = view.list_slices(_KEYS)
    opened = map_in_threads(lambda piece: LocatedKeys.open(survey.storage, piece), slices)
    return {piece.file_id: group for piece, group in zip(slices, opened, strict=True)}


def _look_up_keys(survey: Survey, file: BaseFile | LogFile, keys: pa.Array, index: Mapping[str, LocatedKeys]) -> None:
    survey.book.checked["record keys in the metadata table"] += len(keys)
    groups = KeyGroups.of(index) or KeyGroups(is_partitioned=True)
    for one, asked in groups.spread(keys, file.partition):
        group = index.get(one, LocatedKeys([]))
        places = {(row["key"], row["path"], row["file_id"]) for row in group.find(asked).to_pylist()}
        lost = [key for key in asked.to_pylist() if (key, file.partition, file.file_id) not in places]
        if lost:
            found = f"another place, or none, for {len(lost)} of them, such as {lost[0]!r}"
            expected = "this file group for each of its record keys in the record index"
            survey.book.damage(_KIND, file.path, expected=expected, found=found, advice=_INDEX_ANEW)


def _report_namesakes(survey: Survey) -> None:
    """Files of one name in several partitions, as releases before 0.2.0 wrote them where all have the same bucket ids.

    JVM Hudi finds the statistics of a file by its bare name.
    """
    first: dict[str, str] = {}
    for path in sorted(_list_written(survey)):
        known = first.setdefault(path.rpartition("/")[2], path)
        if known != path:
            expected = "a name that no file of another partition has"
            survey.book.damage(_KIND, path, expected=expected, found=f"that of {known}", advice=_COMPACT)


def _read_statistics(view: MetadataView, partition: MetadataPartition) -> dict[tuple[str, str], ColumnStatistics]:
    """By the name of the file, or of the partition, and the column."""
    records = view.read(partition).values() if partition.value in view.table.names else ()
    found = (record.statistics for record in records if record.statistics is not None)
    return {(one.name, one.column): one for one in found}


def _read_ranges(survey: Survey, columns: list[str], file: BaseFile) -> dict[str, ColumnRange]:
    """None of a file that cannot be read, or that a clean took: then the next walk does not meet it either."""
    found: dict[str, ColumnRange] = {}
    try:
        with survey.book.reading("base-file", file.path, "a file that can be read"):
            found = read_ranges(survey.storage, file.path, columns)
    except NoSuchFile:
        return {}
    return found


def _list_completed(survey: Survey, files: Iterable[_File]) -> list[_File]:
    return [file for file in files if survey.completion(file.instant) is not None]


def _list_newest(survey: Survey) -> list[BaseFile]:
    """The base file of the newest slice of each file group."""
    return [piece.base for piece in _list_slices(survey) if piece.base is not None]


def _list_slices(survey: Survey) -> list[FileSlice]:
    """The newest of each file group."""
    bases, logs = _list_completed(survey, survey.files.bases), _list_completed(survey, survey.files.logs)
    groups = slice_file_groups(bases, logs, survey.completion)
    ended = survey.replaced_groups()
    return [slices[0] for group, slices in groups.items() if group not in ended]


def _compare_ranges(
    survey: Survey,
    file: BaseFile,
    ranges: dict[str, ColumnRange],
    told: dict[tuple[str, str], ColumnStatistics],
    name: str,
) -> None:
    for column, found in sorted(ranges.items()):
        statistics = told.get((name, column))
        if statistics is None:
            continue
        survey.book.checked["ranges in the metadata table"] += 1
        if hides_some(statistics, found):
            whose = "the file" if file.path.endswith(name) else "its partition"
            expected = f"a range of {column} in the statistics of {whose} that holds its values"
            found_instead = "a narrower one, so that filters of readers that go by it miss rows"
            survey.book.damage(_KIND, file.path, expected=expected, found=found_instead, advice=_READ_ALL)


def _report(survey: Survey, path: str, expected: str, found: str) -> None:
    survey.book.damage(_KIND, path, expected=expected, found=found, advice=_REBUILD)
