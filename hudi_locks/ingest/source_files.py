"""Files of a source: whether they are whole. Runs on the driver."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import SEEK_CUR
from pathlib import Path
from typing import Any, BinaryIO, Final

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_locks.config import local_path
from hudi_locks.errors import BadInput, ConfigError
from hudi_locks.format.records import MAGIC, UNREADABLE
from hudi_locks.storage import map_in_threads

__all__ = ["find_unreadable_file", "list_batch_files", "refuse_cut_off"]

_MARK: Final = {"type": "fixed", "name": "mark", "size": 16}
_HEADER: Final = fastavro.parse_schema(
    {
        "type": "record",
        "name": "header",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": len(MAGIC)}},
            {"name": "metadata", "type": {"type": "map", "values": "bytes"}},
            {"name": "mark", "type": _MARK},
        ],
    }
)
_BLOCK: Final = fastavro.parse_schema(
    {"type": "record", "name": "block", "fields": [{"name": name, "type": "long"} for name in ("rows", "size")]}
)
"""What stands before the rows of a block."""
_OFFSET: Final = re.compile(r'\{"logOffset":(\d+)\}')
_CODECS: Final = ("null", "deflate", "bzip2", "xz")
"""Those that fastavro reads without a library that is not needed otherwise."""
_AVRO: Final = "org.apache.avro."
_PARQUET: Final = "no whole Parquet file"


def list_batch_files(checkpoint: str, batch: int) -> list[Path]:
    """The files of this machine that a micro-batch reads; none where its source is no folder.

    Spark tells them nowhere but in its checkpoint: a batch has an offset for each source, which is the number of the
    newest list of files that belongs to it.
    """
    try:
        folder = Path(local_path(checkpoint))
    except ConfigError:
        return []
    before, lists = _read_offsets(folder, batch - 1), _read_offsets(folder, batch).items()
    numbers = [(source, number) for source, last in lists for number in range(before.get(source, -1) + 1, last + 1)]
    return [file for source, number in numbers for file in _list_files(folder / "sources" / str(source), number)]


def refuse_cut_off(files: Sequence[Path]) -> None:
    """Find those Avro files that end early: Spark takes a block that is cut off for the end of its file.

    Looks at the head and the end of each block. The files of a source have one form, which its first one tells.

    Raises:
        BadInput: Names the first.
    """
    if next(filter(None, map(_read_magic, files)), None) == MAGIC:
        for damage in map_in_threads(lambda file: _find_damage(file, _walk), files):
            if damage:
                raise damage


def find_unreadable_file(text: str, files: Sequence[Path]) -> BadInput | None:
    """The damaged file, if a failure of Spark's Avro or Parquet reader is due to one; it does not always say which.

    Reads whole Avro files, so this is for a batch that has failed.
    """
    if _PARQUET in text:
        return next(filter(None, (_find_damage(file, _read_footer, form="Parquet") for file in files)), None)
    if _AVRO not in text:
        return None
    return next(filter(None, (_find_damage(file, _read_rows) for file in files)), None)


def _find_damage(file: Path, read: Callable[[BinaryIO], Iterable[Any]], *, form: str = "Avro") -> BadInput | None:
    """What is wrong with a file, as far as `read` goes; nothing with one that is empty, or cannot be opened."""
    try:
        with file.open("rb") as data:
            for _ in read(data) if data.peek(1) else ():
                continue
    except OSError:
        return None  # Spark tells of it, was told to pass over it, or reads on machines that may
    except UNREADABLE as error:
        found = f"{type(error).__name__}: {error}".rstrip(": ")
        message = f"{file} is no whole {form} file ({found}); bring it back whole, and start the job again"
        return BadInput(message, path=str(file))
    return None


def _read_magic(file: Path) -> bytes:
    """The first bytes of a file; none of one that is empty, or cannot be opened."""
    try:
        with file.open("rb") as data:
            return data.read(len(MAGIC))
    except OSError:
        return b""


def _walk(data: BinaryIO) -> Iterator[int]:
    """The rows in each block, without reading them."""
    header: Any = fastavro.schemaless_reader(data, _HEADER, None)
    while data.peek(1):  # type: ignore[attr-defined]
        block: Any = fastavro.schemaless_reader(data, _BLOCK, None)
        if block["size"] < 0:
            raise ValueError("a block of negative size")
        data.seek(block["size"], SEEK_CUR)
        if data.read(len(header["mark"])) != header["mark"]:
            raise ValueError("a block does not end where it says")
        yield block["rows"]


def _read_rows(data: BinaryIO) -> Iterable[Any]:
    """The rows, to see whether they can be read; none of those in a codec of which nothing can be said here."""
    reader = fastavro.reader(data)
    return reader if reader.codec in _CODECS else ()


def _read_footer(data: BinaryIO) -> tuple[()]:
    """Nothing, if the file has a footer that can be read."""
    try:
        pq.read_metadata(data)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(str(error)) from error
    return ()


def _read_offsets(folder: Path, batch: int) -> dict[int, int]:
    """For each source the number of its newest list of files, as of a batch; nothing of other sources."""
    lines = _read_lines(folder / "offsets" / str(batch))[1:]
    return {source: int(match[1]) for source, line in enumerate(lines) if (match := _OFFSET.fullmatch(line))}


def _list_files(folder: Path, number: int) -> list[Path]:
    """The files of one list, which may have been merged with those before it."""
    lines = _read_lines(folder / str(number)) or _read_lines(folder / f"{number}.compact")
    entries = [json.loads(line) for line in lines]
    paths = [entry["path"] for entry in entries if entry["batchId"] == number]
    return [Path(local_path(path)) for path in paths if path.startswith("file:")]


def _read_lines(file: Path) -> list[str]:
    """All but the first, which is the version."""
    return file.read_text(encoding="utf-8").splitlines()[1:] if file.exists() else []
