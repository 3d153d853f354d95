"""Tables whose columns ALTER TABLE changed are refused by the names of these columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.errors import DamagedTable, UnsupportedTable
from hudi_locks.storage import LocalStorage
from hudi_locks.table import refuse_altered

NAME = ".hoodie/.schema/20260101000000000_20260101000000001.schemacommit"


def column(number: int, name: str, kind: Any = "int") -> dict[str, Any]:
    return {"id": number, "name": name, "optional": True, "type": kind}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "fields": list(fields)}


def keep(tmp_path: Path, *versions: list[dict[str, Any]]) -> LocalStorage:
    storage = LocalStorage(str(tmp_path))
    listed = [{"version_id": number, "type": "record", "fields": fields} for number, fields in enumerate(versions)]
    storage.create_if_absent(NAME, json.dumps({"schemas": listed[::-1]}).encode())
    return storage


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ([column(1, "a")], [column(1, "a", "long")], "a was int and is long"),
        ([column(1, "a")], [column(1, "b")], "a was renamed to b"),
        ([column(1, "a")], [column(2, "a")], "a was dropped and added anew"),
        (
            [column(1, "s", struct(column(2, "x")))],
            [column(1, "s", struct(column(2, "y")))],
            r"s\.x was renamed to s\.y",
        ),
        (
            [column(1, "l", {"type": "array", "element": "int"})],
            [column(1, "l", "string")],
            "l was array and is string",
        ),
    ],
)
def test_a_changed_column_is_named(tmp_path: Path, old: Any, new: Any, told: str) -> None:
    with pytest.raises(UnsupportedTable, match=rf"{told}.*JVM Hudi only") as caught:
        refuse_altered(keep(tmp_path, old, new, [*new, column(9, "later")]))
    assert caught.value.path == NAME


def test_columns_that_were_added_dropped_or_moved_are_no_obstacle(tmp_path: Path) -> None:
    inner = struct(column(3, "x"))
    old = [column(1, "a"), column(2, "s", inner), column(5, "gone")]
    refuse_altered(keep(tmp_path, old, [column(2, "s", struct(column(4, "y"), column(3, "x"))), column(1, "a")]))
    refuse_altered(LocalStorage(str(tmp_path / "none")))


def test_a_history_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.create_if_absent(NAME, b'{"schemas": [{}]}')
    with pytest.raises(DamagedTable, match=r"\.schemacommit holds no history"):
        refuse_altered(storage)
