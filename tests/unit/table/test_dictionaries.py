"""Which columns are written as dictionaries, and which of them are read as such."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_locks.storage import LocalStorage
from hudi_locks.table import RECORD_KEY, conform, read_base_file
from hudi_locks.table.dictionaries import find_encoded, find_repetitive, find_single

NAME = "rows.parquet"
ROWS = pa.table(
    {
        RECORD_KEY: [f"{number:08d}" for number in range(1000)],
        "city": ["Basel", "Chur", None, "Zug"] * 250,
        "street": [f"street {number}" for number in range(1000)],
        "floor": [1, 2, 3, 4] * 250,
        "place": [{"city": "Basel"}] * 1000,
        "land": ["Schweiz"] * 1000,
        "canton": ["BS"] * 400 + ["GR"] * 600,
        "note": ["new", None] * 500,
    }
)


def write(folder: Path, *, dictionaries: list[str] | bool, **how: Any) -> str:
    """Three row groups."""
    path = str(folder / NAME)
    pq.write_table(ROWS, path, use_dictionary=dictionaries, row_group_size=400, **how)
    return path


def test_columns_whose_values_come_again_are_written_as_dictionaries() -> None:
    assert find_repetitive(ROWS) == ["city", "floor", "place", "land", "canton", "note"]


def test_texts_are_read_as_dictionaries_where_they_are_small(tmp_path: Path) -> None:
    metadata = pq.read_metadata(write(tmp_path, dictionaries=True))
    assert find_encoded(metadata, ROWS.column_names) == ["city", "land", "canton", "note"]
    assert find_encoded(metadata, ["floor", "street"]) == []


def test_texts_that_no_dictionary_holds_are_read_as_they_are(tmp_path: Path) -> None:
    metadata = pq.read_metadata(write(tmp_path, dictionaries=["floor"]))
    assert find_encoded(metadata, ROWS.column_names) == []


def test_a_base_file_keeps_the_dictionaries_that_it_is_asked_to_keep(tmp_path: Path) -> None:
    write(tmp_path, dictionaries=True)
    storage = LocalStorage(str(tmp_path))
    [kept] = read_base_file(storage, NAME, encoded=["city", "street"])
    assert pa.types.is_dictionary(kept["city"].type)
    assert kept["street"].type == pa.string()
    [plain] = read_base_file(storage, NAME)
    assert plain.schema.field("city").type == pa.string()
    assert kept["city"].cast(pa.string()).to_pylist() == plain["city"].to_pylist()


def test_a_text_that_stands_in_every_row_is_known_without_reading(tmp_path: Path) -> None:
    metadata = pq.read_metadata(write(tmp_path, dictionaries=False))
    found = find_single(metadata, ROWS.column_names)
    assert {name: text.to_pylist() for name, text in found.items()} == {"land": ["Schweiz"]}
    assert find_single(metadata, ["canton", "city"]) == {}


def test_nothing_is_taken_for_the_only_text_where_the_file_does_not_tell(tmp_path: Path) -> None:
    metadata = pq.read_metadata(write(tmp_path, dictionaries=True, write_statistics=False))
    assert find_single(metadata, ROWS.column_names) == {}


def test_a_text_that_is_not_read_stands_where_it_would(tmp_path: Path) -> None:
    write(tmp_path, dictionaries=True)
    storage = LocalStorage(str(tmp_path))
    pieces = list(read_base_file(storage, NAME, encoded=ROWS.column_names, batch_rows=300))
    assert max(rows.num_rows for rows in pieces) == 300
    assert {rows["land"].type.value_type for rows in pieces} == {pa.string()}
    assert pa.concat_tables(conform(rows, ROWS.schema) for rows in pieces).equals(ROWS)
    [alone] = read_base_file(storage, NAME, columns=["land"], encoded=["land"])
    assert conform(alone, pa.schema([("land", pa.string())])).equals(ROWS.select(["land"]))
