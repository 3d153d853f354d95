"""The metadata table: whether it names the data files that are there, as readers that go by it see no others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hudi_locks.metadata_table import METADATA_FOLDER, MetadataTable
from hudi_locks.table import BaseFile, LogFile
from hudi_locks.verification.survey import Survey

__all__ = ["check_metadata_table"]

_KIND: Final = "metadata-table"
_UNREAD: Final = "the statistics and indexes of the metadata table"
_UNUSED: Final = "the metadata table, since the table's properties name no part of it that is in use"
_REBUILD: Final = (
    "delete .hoodie/metadata, take hoodie.table.metadata.partitions out of hoodie.properties, delete"
    " .hoodie/.hoodie.properties.crc, and let the next JVM writer make the metadata table anew"
)


def check_metadata_table(survey: Survey) -> None:
    """Compare the names in the metadata table with what is there, if the table keeps one."""
    with survey.book.reading(_KIND, METADATA_FOLDER, "a metadata table that can be read"):
        found = MetadataTable.of(survey.storage, survey.table.config)
        if found is not None:
            _compare(survey, found.view(survey.timeline).files)
            survey.book.leave_out(_UNREAD)
        elif survey.storage.stat(METADATA_FOLDER) is not None:
            survey.book.leave_out(_UNUSED)


def _compare(survey: Survey, named: dict[str, dict[str, int]]) -> None:
    told = {file.path: file.size for file in _parse(named) if survey.completion(file.instant) is not None}
    there = {file.path: file.size for file in survey.files.both}
    survey.book.checked["files in the metadata table"] += len(told)
    for path in sorted(_list_written(survey) - told.keys()):
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
    named = {file.path for commit in survey.named_files().values() for file in commit.files.both}
    return {file.path for file in survey.files.both if file.path in named}


def _parse(named: dict[str, dict[str, int]]) -> Iterator[BaseFile | LogFile]:
    for partition, files in named.items():
        for name, size in files.items():
            file = BaseFile.parse(partition, name, size) or LogFile.parse(partition, name, size)
            if file is not None:
                yield file


def _report(survey: Survey, path: str, expected: str, found: str) -> None:
    survey.book.damage(_KIND, path, expected=expected, found=found, advice=_REBUILD)
