"""The files of one file slice, written from short records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_locks.format import avro_schema
from hudi_locks.storage import LocalStorage, Storage
from hudi_locks.table import (
    RECORD_KEY,
    BaseFile,
    BaseFileFormat,
    BaseFileWriter,
    LogFile,
    LogFormat,
    LogWriter,
    add_meta_schema,
)

__all__ = ["AVRO", "SCHEMA", "Record", "make_rows", "new_file", "wrap", "write_base", "write_log"]

_USER = pa.schema([("ts", pa.int64()), ("v", pa.int64())])
SCHEMA, AVRO = add_meta_schema(_USER), avro_schema(_USER, "t", with_meta_columns=True)
Record = tuple[str, Any, Any]
"""Key, ordering value, and a value; None in its place is a delete, and without ordering value one of everything."""
_WRAPPER = "org.apache.hudi.avro.model."


def make_rows(records: list[Record]) -> pa.Table:
    return pa.Table.from_pylist([{RECORD_KEY: key, "ts": ts, "v": v} for key, ts, v in records], SCHEMA)


def wrap(ts: int | None) -> Any:
    """An ordering value as a block of deletes has it."""
    return (f"{_WRAPPER}IntWrapper", {"value": 0}) if ts is None else (f"{_WRAPPER}LongWrapper", {"value": ts})


@dataclass(frozen=True)
class NamedFile:
    """A file of a table that is written under the name which it will have."""

    storage: Storage
    target: str

    def open(self) -> pa.NativeFile:
        place = Path(self.storage.address(self.target))
        place.parent.mkdir(parents=True, exist_ok=True)
        return pa.OSFile(str(place), "wb")


def new_file(storage: Storage, path: str) -> NamedFile:
    """A file that is written under the name which it will have."""
    return NamedFile(storage, path)


def write_base(storage: LocalStorage, records: list[Record], *, row_group_bytes: int = 1 << 20) -> BaseFile:
    form = BaseFileFormat(AVRO, "zstd", row_group_bytes)
    writer = BaseFileWriter(new_file(storage, "p/base.parquet"), SCHEMA, form)
    writer.write(make_rows(records))
    writer.close()
    return BaseFile("p", "f-0", "20240101000000000", "p/base.parquet", 0)


def write_log(storage: LocalStorage, instant: str, *records: list[Record], stands_for: tuple[str, ...] = ()) -> LogFile:
    """A log with a block of each of the records, which are rows, or deletes with an ordering value, or without."""

    def make(version: int) -> NamedFile:
        return new_file(storage, f"p/.f-0_{instant}.log.{version}_0-0-0")

    writer = LogWriter(make, LogFormat(AVRO), instant=instant, partition="p", stands_for=stands_for)
    for piece in records:
        if piece[0][2] is not None:
            writer.write(make_rows(piece))
        elif piece[0][1] is None:
            writer.delete(pa.chunked_array([[key for key, _, _ in piece]]))
        else:
            writer.delete_again([(key, wrap(ts)) for key, ts, _ in piece])
    [part] = writer.close()
    log = LogFile.parse("p", f".f-0_{instant}.log.{part.version}_0-0-0", part.size)
    assert log is not None
    return log
