"""Names of data files and markers (Hudi's FSUtils, FileNameParser and MarkerUtils)."""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import dataclass
from enum import Enum

from hudi_locks.format.instant import TIME, is_time

__all__ = [
    "METADATA_FOLDER",
    "WRITE_TOKEN",
    "BaseFileName",
    "IOType",
    "LogFileName",
    "LogPlace",
    "MarkerName",
    "MetadataPartition",
    "choose_old_token",
    "choose_token",
    "find_metadata_writer",
    "find_writer",
    "new_file_id",
]

WRITE_TOKEN = "0-0-0"  # noqa: S105 - Hudi's word for task, stage and attempt
"""The token of our files: the name of a file group's file at an instant is the same for every attempt."""
_OLD_TOKEN = re.compile(r"(\d{8})-(\d{1,9})-6")
_FIXED_ID = re.compile(r"\d{8}-0000-0000-0000-000000000000-0")

_MARKER = ".marker"
_TOKEN = r"\d+-\d+-\d+"  # noqa: S105 - a pattern of the above
_BASE = re.compile(rf"([^._/][^_/]*)_([^_/]+)_({TIME})\.([a-z]+)")
_BASE_EXTENSIONS = frozenset({"parquet", "orc", "hfile", "lance"})
_TABLE_FOLDER = ".hoodie"
METADATA_FOLDER = ".hoodie/metadata"
"""Of the metadata table, relative to the base path."""
_METADATA_DEPTH = 3
_MOST_OF_JAVA = 0x7FFF_FFFF
_UNFIT = re.compile("[\0\ufffd\ud800-\udfff]|(?:^|/)\\.{0,2}(?:/|$)")
"""NUL, what was not UTF-8, and components that are empty or lead elsewhere."""
_MOST_BYTES, _MOST_BYTES_OF_NAME = 4_095, 255
_LOG = re.compile(rf"\.([^._/][^_/]*)_(\d+)\.log\.(\d+)(?:_({_TOKEN})(\.cdc)?)?")


class MetadataPartition(Enum):
    """The parts of a metadata table that are read and kept up to date here, by the name of their folder."""

    FILES = "files"
    COLUMN_STATS = "column_stats"
    PARTITION_STATS = "partition_stats"
    BLOOM_FILTERS = "bloom_filters"
    RECORD_INDEX = "record_index"


class IOType(Enum):
    """What a task does to the file that a marker announces."""

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


@dataclass(frozen=True)
class BaseFileName:
    """`<file id>_<write token>_<instant>.<extension>`.

    Attributes:
        file_id: File group.
        instant: Requested time of the write.
        write_token: Task, stage and attempt.
        extension: Without its dot.
    """

    file_id: str
    instant: str
    write_token: str = WRITE_TOKEN
    extension: str = "parquet"

    def __str__(self) -> str:
        return f"{self.file_id}_{self.write_token}_{self.instant}.{self.extension}"

    @classmethod
    def parse(cls, name: str) -> BaseFileName | None:
        """The parts of a base file's name; None if it is not one."""
        match = _BASE.fullmatch(name)
        return cls(match[1], match[3], match[2], match[4]) if match else None


@dataclass(frozen=True)
class LogFileName:
    """`.<file id>_<time>.log.<version>_<write token>`, with `.cdc` for change data.

    Attributes:
        file_id: File group.
        instant: Requested time of the delta commit; in table version 6 that of the base file below.
        version: Counts from 1.
        write_token: Task, stage and attempt; "" in very old tables.
        is_cdc: Whether it holds change data.
    """

    file_id: str
    instant: str
    version: int = 1
    write_token: str = WRITE_TOKEN
    is_cdc: bool = False

    def __str__(self) -> str:
        token = f"_{self.write_token}" if self.write_token else ""
        return f".{self.file_id}_{self.instant}.log.{self.version}{token}{'.cdc' if self.is_cdc else ''}"

    @classmethod
    def parse(cls, name: str) -> LogFileName | None:
        """The parts of a log file's name; None if it is not one."""
        match = _LOG.fullmatch(name)
        return cls(match[1], match[2], int(match[3]), match[4] or "", bool(match[5])) if match else None


@dataclass(frozen=True)
class LogPlace:
    """Where the next log of a file group belongs in a table of version 6.

    Attributes:
        barrier: Requested time of the base file below it, or of the compaction that is to make that.
        version: Of the log.
    """

    barrier: str
    version: int

    def name(self, file_id: str, requested: str, part: int = 1) -> LogFileName:
        """The `part`-th log that the write begun at `requested` adds to the file group."""
        return LogFileName(file_id, self.barrier, self.version + part - 1, choose_old_token(requested))


@dataclass(frozen=True)
class MarkerName:
    """`<partition path>/<data file>.marker.<IO type>`, relative to the marker folder of its instant.

    Attributes:
        partition_path: "" in an unpartitioned table.
        data_file: Name of the file that it announces.
        io_type: What is done to the file.
    """

    partition_path: str
    data_file: str
    io_type: IOType

    def __str__(self) -> str:
        return f"{self.data_path}{_MARKER}.{self.io_type.value}"

    @property
    def data_path(self) -> str:
        """The data file, relative to the base path."""
        return f"{self.partition_path}/{self.data_file}" if self.partition_path else self.data_file

    @property
    def file_id(self) -> str:
        """File group of the data file."""
        return self.data_file.removeprefix(".").split("_", 1)[0]

    @classmethod
    def parse(cls, text: str) -> MarkerName | None:
        """The parts of a marker's name; None if it is not one, or announces nothing that can be below the base path.

        Its data path ends at the first `.marker`.
        """
        data_path, found, rest = text.partition(_MARKER)
        kind = rest.rsplit(".", 1)[-1]
        if not found or kind not in IOType.__members__ or not _is_below(data_path):
            return None
        partition_path, _, data_file = data_path.rpartition("/")
        return cls(partition_path, data_file, IOType[kind])


def choose_token(partition: str, file_id: str) -> str:
    """The write token of our files of a file group.

    JVM Hudi finds the statistics of a file by its bare name. Under non-blocking concurrency control a bucket has the
    same id in every partition, so there the token tells the partition: else a filter takes the statistics of one file
    for those of its namesakes, and misses rows.
    """
    if not partition or not _FIXED_ID.fullmatch(file_id):
        return WRITE_TOKEN
    digest = hashlib.sha256(partition.encode()).digest()
    task, stage = (int.from_bytes(digest[at : at + 4], "big") & _MOST_OF_JAVA for at in (0, 4))
    return f"{task}-{stage}-0"


def choose_old_token(requested: str) -> str:
    """The write token of our logs in a table of version 6, where the name tells the base file and not the write.

    JVM Hudi takes any three numbers. By it a log is known for that of the write begun at `requested` (17 digits).
    """
    return f"{requested[:8]}-{int(requested[8:])}-6"


def _find_log_writer(log: LogFileName) -> str:
    told = _OLD_TOKEN.fullmatch(log.write_token)
    return f"{told[1]}{int(told[2]):09}" if told else log.instant


def find_writer(path: str) -> str | None:
    """The requested time that a data or log file in a partition carries in its name; None if `path` names no such file.

    Nothing else is ever removed on the word of a marker or a plan, since those are text that anybody may have written.

    Args:
        path: Relative to the base path.
    """
    partition, _, file_name = path.rpartition("/")
    if not _is_below(path) or partition.split("/", 1)[0] == _TABLE_FOLDER:
        return None
    base, log = BaseFileName.parse(file_name), LogFileName.parse(file_name)
    if base is not None:
        return base.instant if base.extension in _BASE_EXTENSIONS else None
    return _find_log_writer(log) if log is not None and is_time(log.instant) else None


def find_metadata_writer(path: str) -> str | None:
    """The requested time that a log of the metadata table carries in its name; None if `path` names no such log."""
    if not path.startswith(f"{METADATA_FOLDER}/") or path.count("/") != _METADATA_DEPTH or not _is_below(path):
        return None
    log = LogFileName.parse(path.rpartition("/")[2])
    return _find_log_writer(log) if log is not None and is_time(log.instant) else None


def _is_below(path: str) -> bool:
    """Whether a file of that name can be below the base path."""
    if _UNFIT.search(path) or len(path) > _MOST_BYTES:
        return False
    return all(len(name.encode()) <= _MOST_BYTES_OF_NAME for name in path.split("/"))


def new_file_id() -> str:
    """An id for a new file group, as the JVM makes them: a random UUID and the number 0."""
    return f"{uuid.uuid4()}-0"
