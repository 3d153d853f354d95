"""Tables whose columns ALTER TABLE changed are refused by the names of these columns."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_locks.errors import DamagedTable, UnsupportedTable
from hudi_locks.format import Instant, State
from hudi_locks.storage import LocalStorage
from hudi_locks.table import ColumnHistory, SchemaHistory, read_schema_history, refuse_altered
from hudi_locks.timeline import LAYOUT_2, Timeline

TIME = "20260101000000000"
NAME = f".hoodie/.schema/{TIME}_20260101000000001.schemacommit"


def column(number: int, name: str, kind: Any = "int") -> dict[str, Any]:
    return {"id": number, "name": name, "optional": True, "type": kind}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "fields": list(fields)}


def keep(tmp_path: Path, *versions: list[dict[str, Any]]) -> SchemaHistory:
    storage, timeline = store(tmp_path, *versions)
    history = read_schema_history(storage, timeline)
    assert history is not None
    return history


def store(tmp_path: Path, *versions: list[dict[str, Any]]) -> tuple[LocalStorage, Timeline]:
    """A history, and a timeline with the completed commit that it belongs to."""
    storage = LocalStorage(str(tmp_path))
    listed = [{"version_id": number, "type": "record", "fields": fields} for number, fields in enumerate(versions)]
    storage.create_if_absent(NAME, json.dumps({"schemas": listed[::-1]}).encode())
    return storage, Timeline(LAYOUT_2, (Instant(TIME, "commit", State.COMPLETED, TIME),))


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
    storage, timeline = store(tmp_path, old, new, [*new, column(9, "later")])
    with pytest.raises(UnsupportedTable, match=rf"{told}.*Do this") as caught:
        refuse_altered(storage, timeline, advice="Do this")
    assert caught.value.path == NAME


def test_columns_that_were_added_dropped_or_moved_are_no_obstacle(tmp_path: Path) -> None:
    inner = struct(column(3, "x"))
    old = [column(1, "a"), column(2, "s", inner), column(5, "gone")]
    history = keep(tmp_path, old, [column(2, "s", struct(column(4, "y"), column(3, "x"))), column(1, "a")])
    assert history.changes == ()
    assert history.find_names() is None
    none = LocalStorage(str(tmp_path / "none"))
    assert read_schema_history(none, Timeline(LAYOUT_2, ())) is None


def test_a_history_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    storage, timeline = store(tmp_path)
    storage.replace(NAME, b'{"schemas": [{}]}')
    with pytest.raises(DamagedTable, match=r"\.schemacommit holds no history"):
        read_schema_history(storage, timeline)


def test_a_history_whose_commit_was_not_completed_does_not_count(tmp_path: Path) -> None:
    storage, _ = store(tmp_path, [column(1, "a")], [column(1, "b")])
    later = "20260102000000000"
    pending = Instant(TIME, "commit", State.INFLIGHT)
    assert read_schema_history(storage, Timeline(LAYOUT_2, (pending,))) is None
    undone = Timeline(LAYOUT_2, (Instant(later, "commit", State.COMPLETED, later),))
    assert read_schema_history(storage, undone) is None  # older than the timeline, and not archived


def test_each_file_has_columns_under_the_names_of_its_time(tmp_path: Path) -> None:
    first = [column(1, "id"), column(2, "y"), column(3, "d")]
    altered = keep(
        tmp_path, first, [column(1, "id"), column(2, "z"), column(3, "d")], [*first[:1], column(2, "z"), column(4, "d")]
    )
    history = pickle.loads(pickle.dumps(altered.find_names()))
    assert isinstance(history, ColumnHistory)
    assert history.find_names("0") == {"id": "id", "z": "y", "d": None}
    assert history.find_names("1") == {"id": "id", "z": "z", "d": None}
    assert history.find_names("7") == {"id": "id", "z": "z", "d": "d"}
    rows = pa.table({"id": [1], "y": [2], "d": [3], "unknown": [4]})
    assert history.bring_up(rows, "0").to_pylist() == [{"id": 1, "z": 2, "unknown": 4}]
    assert keep(tmp_path / "plain", first, [*first, column(5, "later")]).find_names() is None


def test_two_columns_that_changed_their_names_with_each_other_are_told_apart() -> None:
    history = ColumnHistory(((0, ((1, "a"), (2, "b"))), (5, ((1, "b"), (2, "a")))))
    assert history.bring_up(pa.table({"a": [1], "b": [2]}), "3").to_pylist() == [{"b": 1, "a": 2}]
    assert history.bring_up(pa.table({"a": [1], "b": [2]}), "5").to_pylist() == [{"a": 1, "b": 2}]


def test_what_changed_inside_a_struct_is_refused(tmp_path: Path) -> None:
    history = keep(tmp_path, [column(1, "s", struct(column(2, "x")))], [column(1, "s", struct(column(2, "y")))])
    with pytest.raises(UnsupportedTable, match=r"s\.x was renamed to s\.y.*read by JVM Hudi only"):
        history.find_names()


def test_a_history_of_version_6_has_no_completion_time_in_its_name(tmp_path: Path) -> None:
    storage, timeline = store(tmp_path, [column(1, "a")], [column(1, "b")])
    data = storage.read(NAME)
    assert data is not None
    storage.delete(NAME)
    for name in (f"{TIME}.schemacommit.inflight", f".{TIME}.schemacommit.crc"):
        storage.create_if_absent(f".hoodie/.schema/{name}", b"")
    assert read_schema_history(storage, timeline) is None
    storage.create_if_absent(f".hoodie/.schema/{TIME}.schemacommit", data)
    history = read_schema_history(storage, timeline)
    assert history is not None
    assert history.changes == ("a was renamed to b",)
