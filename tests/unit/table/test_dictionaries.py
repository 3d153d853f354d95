"""Which columns are written as dictionaries, and which of them are read as such."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_locks.table import RECORD_KEY, read_base_file
from hudi_locks.table.dictionaries import find_encoded, find_repetitive

ROWS = pa.table(
    {
        RECORD_KEY: [f"{number:08d}" for number in range(1000)],
        "city": ["Basel", "Chur", None, "Zug"] * 250,
        "street": [f"street {number}" for number in range(1000)],
        "floor": [1, 2, 3, 4] * 250,
        "place": [{"city": "Basel"}] * 1000,
    }
)


def write(folder: Path, *, dictionaries: list[str] | bool) -> str:
    path = str(folder / "rows.parquet")
    pq.write_table(ROWS, path, use_dictionary=dictionaries, row_group_size=400)
    return path


def test_columns_whose_values_come_again_are_written_as_dictionaries() -> None:
    assert find_repetitive(ROWS) == ["city", "floor", "place"]


def test_texts_are_read_as_dictionaries_where_they_are_small(tmp_path: Path) -> None:
    metadata = pq.read_metadata(write(tmp_path, dictionaries=True))
    assert find_encoded(metadata, ROWS.column_names) == ["city"]
    assert find_encoded(metadata, ["floor", "street"]) == []


def test_texts_that_no_dictionary_holds_are_read_as_they_are(tmp_path: Path) -> None:
    metadata = pq.read_metadata(write(tmp_path, dictionaries=["floor"]))
    assert find_encoded(metadata, ROWS.column_names) == []


def test_a_base_file_keeps_the_dictionaries_that_it_is_asked_to_keep(tmp_path: Path) -> None:
    path = write(tmp_path, dictionaries=True)
    [kept] = read_base_file(path, encoded=["city", "street"])
    assert pa.types.is_dictionary(kept["city"].type)
    assert kept["street"].type == pa.string()
    [plain] = read_base_file(path)
    assert plain.schema.field("city").type == pa.string()
    assert kept["city"].cast(pa.string()).to_pylist() == plain["city"].to_pylist()
