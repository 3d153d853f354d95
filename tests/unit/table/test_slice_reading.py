"""In which pieces the rows of a file slice come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from slice_files import new_file

from hudi_locks.format import avro_schema
from hudi_locks.storage import LocalStorage
from hudi_locks.table import (
    RECORD_KEY,
    BaseFile,
    BaseFileFormat,
    BaseFileWriter,
    FileSlice,
    MergeRule,
    add_meta_schema,
    conform,
    read_slice,
)

USER = pa.schema([("value", pa.int64())])
SCHEMA = add_meta_schema(USER)
ROWS = 1005


@pytest.fixture
def base(tmp_path: Path) -> FileSlice:
    """One row group."""
    keys = pa.array(range(ROWS)).cast(pa.string())
    form = BaseFileFormat(avro_schema(USER, "t", with_meta_columns=True), row_group_bytes=1 << 30)
    writer = BaseFileWriter(new_file(LocalStorage(str(tmp_path)), "base.parquet"), SCHEMA, form)
    writer.write(conform(pa.table({RECORD_KEY: keys, "value": pa.array(range(ROWS))}), SCHEMA))
    writer.close()
    return FileSlice("", "f", "1", BaseFile("", "f", "1", "base.parquet", 0))


@pytest.mark.parametrize(("asked", "pieces"), [({"piece_rows": 500}, [500, 500, 5]), ({}, [ROWS])])
def test_rows_come_in_pieces_as_large_as_asked_for(
    tmp_path: Path, base: FileSlice, asked: dict[str, Any], pieces: list[int]
) -> None:
    found = list(read_slice(LocalStorage(str(tmp_path)), base, SCHEMA, rule=MergeRule(), **asked))
    assert [rows.num_rows for rows in found] == pieces
    assert pa.concat_tables(found)["value"].to_pylist() == list(range(ROWS))
