"""Files are told apart by the types that they hold, by their commits or, where these are archived, by footers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import CommitMetadata, Instant, State, WriteStat, avro_schema
from hudi_locks.storage import LocalStorage, Storage
from hudi_locks.table import BaseFile, StoredColumn, Table, TableConfig, find_stored_types, refuse_inexact
from hudi_locks.table import base_file as footers

OLD = pa.schema([("id", pa.string()), ("n", pa.int32()), ("f", pa.float32())])
NEW = pa.schema([("id", pa.string()), ("n", pa.int64()), ("f", pa.string())])
MIDDLE = "20260101000000005"
CHANGED = (StoredColumn("n", OLD.field("n")), StoredColumn("f", OLD.field("f")))


def make(storage: Storage, name: str, time: str, schema: pa.Schema) -> BaseFile:
    path = f"{name}-0_0-0-0_{time}.parquet"
    pq.write_table(schema.empty_table(), storage.address(path))
    found = BaseFile.parse("", path, Path(storage.address(path)).stat().st_size)
    assert found is not None
    return found


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table.create(LocalStorage(str(tmp_path / "t")), TableConfig("t", record_key_fields=("id",)))


def commit(table: Table, file: BaseFile, schema: pa.Schema) -> None:
    stat = WriteStat("", file.file_id, file.path, file_size_bytes=file.size)
    content = CommitMetadata.of([stat], "INSERT", schema=avro_schema(schema, "t"))
    done = Instant(file.instant, "commit", State.INFLIGHT).as_completed(file.instant[:-1] + "9")
    data = content.encode("commit", layout_version=table.layout.version)
    assert table.storage.create_if_absent(table.layout.path(done), data)


def test_commits_tell_types_without_a_look_at_files(table: Table) -> None:
    old = make(table.storage, "a", "20260101000000001", OLD)
    new = make(table.storage, "b", MIDDLE, NEW)
    commit(table, old, OLD)
    commit(table, new, NEW)
    for file in (old, new):
        table.storage.delete(file.path)
    groups = find_stored_types(table.storage, table.timeline(), [old, new], NEW)
    assert groups == {CHANGED: [old], (): [new]}


def test_of_archived_commits_the_oldest_footer_decides_whether_others_are_read(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    read = footers.read_file_schema

    def note(storage: Storage, path: str) -> pa.Schema:
        opened.append(path)
        return read(storage, path)

    monkeypatch.setattr("hudi_locks.table.stored_types.read_file_schema", note)
    files = [make(table.storage, name, f"2026010100000000{n}", NEW) for n, name in enumerate("xyz")]
    assert find_stored_types(table.storage, table.timeline(), files, NEW) == {(): files}
    assert len(opened) == 1
    older = make(table.storage, "w", "20250101000000000", OLD)
    groups = find_stored_types(table.storage, table.timeline(), [*files, older], NEW)
    assert groups == {CHANGED: [older], (): files}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pa.int64(), pa.int32()),
        (pa.string(), pa.int32()),
        (pa.struct([("x", pa.int32())]), pa.struct([("x", pa.int64())])),
        (pa.list_(pa.int32()), pa.list_(pa.int64())),
        (pa.decimal128(5, 2), pa.decimal128(5, 3)),
    ],
)
def test_what_cannot_become_the_new_type_is_refused_by_column_and_file(
    table: Table, old: pa.DataType, new: pa.DataType
) -> None:
    file = make(table.storage, "a", MIDDLE, pa.schema([("c", old)]))
    with pytest.raises(UnsupportedTable, match=r"column 'c' is .* read the other columns") as caught:
        find_stored_types(table.storage, table.timeline(), [file], pa.schema([("c", new)]))
    assert caught.value.path == file.path
    assert find_stored_types(table.storage, table.timeline(), [file], pa.schema([("d", new)])) == {(): [file]}


def test_fractions_that_became_text_are_refused_where_they_are_merged(table: Table) -> None:
    file = make(table.storage, "a", MIDDLE, OLD)
    commit(table, file, OLD)
    with pytest.raises(UnsupportedTable, match="column 'f' is float"):
        refuse_inexact(table.storage, table.timeline(), [file], NEW)
    refuse_inexact(table.storage, table.timeline(), [file], NEW.remove(2))
