"""What partition paths say of values, and where they leave it open."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.errors import BadInput
from hudi_locks.table import PartitionValues, TableConfig, partition_path

SCHEMA = pa.schema(
    [
        ("c", pa.string()),
        ("n", pa.int32()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("x", pa.float64()),
        ("id", pa.string()),
    ]
)  # fmt: skip


def values(*fields: str, **changes: Any) -> PartitionValues:
    return PartitionValues.of(TableConfig("t", ("id",), fields, **changes), SCHEMA)


@pytest.mark.parametrize(
    ("fields", "path", "expected"),
    [
        (["c"], "eu", ("eu",)),
        (["c"], "a b=é", ("a b=é",)),
        (["c"], "2024/02/29", None),
        (["c"], "__HIVE_DEFAULT_PARTITION__", (None,)),
        (["n"], "__HIVE_DEFAULT_PARTITION__", (None,)),
        (["c"], "default", None),
        (["c"], "", None),
        (["n"], "-7", ("-7",)),
        (["n"], "07", None),
        (["n"], "-0", None),
        (["n"], "seven", None),
        (["b"], "true", ("true",)),
        (["b"], "TRUE", None),
        (["d"], "2024-02-29", ("2024-02-29",)),
        (["d"], "19782", None),
        (["x"], "1.0", None),
        (["gone"], "1", None),
        (["c", "n"], "eu/1", ("eu", "1")),
        (["c", "n"], "eu/1/2", None),
        (["c", "n"], "eu/__HIVE_DEFAULT_PARTITION__", ("eu", None)),
        ([], "", None),
    ],
)
def test_only_what_is_beyond_doubt_is_told(fields: list[str], path: str, expected: Any) -> None:
    assert values(*fields).read(path) == expected


@pytest.mark.parametrize("kind", ["TIMESTAMP", "CUSTOM", "USER_PROVIDED"])
def test_other_key_generators_say_nothing(kind: str) -> None:
    assert values("c", extra={"hoodie.table.keygenerator.type": kind}).read("eu") is None


def test_folders_of_another_style_say_nothing() -> None:
    assert values("c", hive_style=True).read("c=a=b") == ("a=b",)
    assert values("c", hive_style=True).read("eu") is None


@given(texts=st.tuples(st.text(max_size=8), st.text(max_size=8)), hive_style=st.booleans(), url_encode=st.booleans())
def test_what_is_told_is_what_was_written(texts: tuple[str, str], hive_style: bool, url_encode: bool) -> None:
    style: Any = {"hive_style": hive_style, "url_encode": url_encode}
    reader = PartitionValues(pa.schema([("c", pa.string()), ("e", pa.string())]), **style)
    try:
        path = partition_path(texts, ("c", "e"), **style)
    except (BadInput, UnicodeEncodeError):
        return
    assert reader.read(path) in (tuple(text or None for text in texts), None)


def test_rows_have_what_the_path_says() -> None:
    rows = pa.table({"c": ["", None], "n": pa.array([1, 2], pa.int32())})
    assert values("c", "n").apply(rows, "__HIVE_DEFAULT_PARTITION__/7").to_pydict() == {"c": [None, None], "n": [7, 7]}
    assert values("c", "n").apply(rows.select(["n"]), "__HIVE_DEFAULT_PARTITION__/1").to_pydict() == {"n": [1, 1]}
    encoded = rows.set_column(0, "c", rows.column("c").dictionary_encode())
    assert values("c").apply(encoded, "a").to_pydict() == {"c": ["a", "a"], "n": [1, 2]}
    assert values("c").apply(rows, "default") is rows


@pytest.mark.parametrize("path", ["2024-02-30", "99999999999"])
def test_a_path_that_gives_no_value_of_the_column_tells_nothing(path: str) -> None:
    name = "d" if "-" in path else "n"
    assert values(name).read(path) is None
