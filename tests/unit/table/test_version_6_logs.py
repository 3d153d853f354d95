"""Logs of table version 6 are named by the base file below them; blocks say which write made them, or was taken back.

The golden table is of JVM Hudi 1.2.0: one write was taken back by blocks of a rollback, a compaction is planned, and a
later write lies on top of the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.errors import DamagedTable, UnsupportedTable
from hudi_locks.format import decode_properties, encode_properties
from hudi_locks.format.log_block import BlockHeader, BlockType, decode_blocks
from hudi_locks.storage import LocalStorage
from hudi_locks.table import Table, TableConfig, add_meta_schema, latest_file_slices, list_data_files, read_slice
from hudi_locks.table.log_rows import encode_rollback, find_undone, read_log
from hudi_locks.verification import verify_table

UNDONE = "20261129150648181"
PLANNED = "20261129150701449"
NEWER = "20261129150641021"
SHOWN = [
    ("k00", "above the plan"),
    ("k01", "newer"),
    ("k02", "newer"),
    ("k03", "made"),
    ("k04", "made"),
]


@pytest.fixture
def storage(golden: Callable[[str], LocalStorage]) -> LocalStorage:
    return golden("v6_logs")


def read(storage: LocalStorage, **limits: Any) -> list[tuple[str, str]]:
    table = Table.load(storage)
    timeline = table.timeline()
    schema = add_meta_schema(table.schema(timeline))
    slices = latest_file_slices(storage, timeline, **limits)
    pieces = (rows for piece in slices for rows in read_slice(storage, piece, schema, rule=table.config.merge_rule))
    return sorted((row["id"], row["label"]) for rows in pieces for row in rows.to_pylist())


def test_the_rows_are_those_that_the_jvm_shows(storage: LocalStorage) -> None:
    assert read(storage) == SHOWN
    assert verify_table(storage).damages == ()


def test_a_slice_has_the_logs_below_a_planned_compaction_and_those_above(storage: LocalStorage) -> None:
    slices = latest_file_slices(storage, Table.load(storage).timeline())
    assert [piece.base is not None for piece in slices] == [True, True]
    assert [log.instant == PLANNED for log in slices[0].logs] == [False, False, False, True]


def test_an_earlier_moment_shows_no_later_block_of_the_same_log(storage: LocalStorage) -> None:
    kept = read(storage, as_of_requested=NEWER)
    assert {label for _, label in kept} == {"made", "newer"}
    assert len(kept) == 6


def test_a_block_of_a_rollback_counts_once_both_writes_are_archived(storage: LocalStorage) -> None:
    """What is older than the timeline was completed, but for what a log itself says was taken back."""
    logs = list_data_files(storage).logs
    undone = {time for log in logs for time in find_undone(storage.read(log.path) or b"", log.path)}
    assert undone == {UNDONE}
    for path in Path(storage.base, ".hoodie").glob("2026*"):
        if path.name[:17] < PLANNED:
            path.unlink()
    assert Table.load(storage).timeline().first_active == PLANNED
    assert read(storage) == SHOWN


@pytest.mark.parametrize("is_appended", [False, True])
def test_what_a_write_logs_again_after_it_was_taken_back_counts(storage: LocalStorage, is_appended: bool) -> None:
    """JVM Hudi runs a compaction that died again under its time, and tells its metadata table so again."""
    logs = [log for piece in latest_file_slices(storage, Table.load(storage).timeline()) for log in piece.logs]
    taking = next(log for log in logs if find_undone(storage.read(log.path) or b"", log.path))
    taken = [log for log in logs if log.file_id == taking.file_id and log.instant == taking.instant and log != taking]
    again = next(data for log in taken if is_of(data := storage.read(log.path) or b"", UNDONE))
    data = storage.read(taking.path) or b""
    later = taking.path.replace(f".log.{taking.version}_", f".log.{taking.version + 1}_")
    storage.replace(taking.path if is_appended else later, data + again if is_appended else again)
    done = next(Path(storage.base, ".hoodie").glob("*.deltacommit"))
    Path(storage.base, ".hoodie", f"{UNDONE}.deltacommit").write_bytes(done.read_bytes())
    assert "taken back" in {label for _, label in read(storage)}


def is_of(data: bytes, requested: str) -> bool:
    return {block.instant for block in decode_blocks(data, "a log")} == {requested}


def test_without_a_word_of_the_rollback_its_log_cannot_be_read_as_a_later_version(storage: LocalStorage) -> None:
    [log] = [log for log in list_data_files(storage).logs if find_undone(storage.read(log.path) or b"", log.path)][:1]
    with pytest.raises(UnsupportedTable, match="COMMAND"):
        list(read_log(storage.read(log.path) or b"", log.path))


def test_a_log_above_a_planned_compaction_that_is_gone_is_told(storage: LocalStorage) -> None:
    [lost] = [log for log in list_data_files(storage).logs if log.instant == PLANNED]
    Path(storage.base, lost.path).unlink()
    with pytest.raises(DamagedTable, match="is gone") as told:
        read(storage)
    assert told.value.path == lost.path


def change(storage: LocalStorage, **properties: str) -> None:
    path = ".hoodie/hoodie.properties"
    said = dict(decode_properties(storage.read(path) or b"", path))
    storage.replace(path, encode_properties({**said, **{name.replace("_", "."): v for name, v in properties.items()}}))


@pytest.mark.parametrize(
    ("payload", "mode"),
    [
        ("OverwriteWithLatestAvroPayload", "COMMIT_TIME_ORDERING"),
        ("DefaultHoodieRecordPayload", "EVENT_TIME_ORDERING"),
        ("EventTimeAvroPayload", "EVENT_TIME_ORDERING"),
    ],
)
def test_its_payload_class_alone_says_how_rows_are_merged(storage: LocalStorage, payload: str, mode: str) -> None:
    change(storage, hoodie_compaction_payload_class=f"org.apache.hudi.common.model.{payload}")
    assert Table.load(storage).config.merge_mode == mode


def test_a_payload_class_of_somebody_is_refused_by_name(storage: LocalStorage) -> None:
    change(storage, hoodie_compaction_payload_class="com.example.Custom")
    with pytest.raises(UnsupportedTable, match=r"com\.example\.Custom") as refused:
        Table.load(storage)
    assert refused.value.key == "hoodie.compaction.payload.class"


def test_our_block_of_a_rollback_is_that_of_the_jvm_but_for_its_own_instant(storage: LocalStorage) -> None:
    paths = [log.path for log in list_data_files(storage).logs]
    blocks = [block for path in paths for block in decode_blocks(storage.read(path) or b"", path)]
    theirs = next(block for block in blocks if block.kind is BlockType.COMMAND)
    (ours,) = decode_blocks(encode_rollback(UNDONE), "ours")
    assert {**theirs.header, BlockHeader.INSTANT_TIME: UNDONE} == ours.header
    assert bytes(ours.content) == bytes(theirs.content) == b""


def test_it_is_written(storage: LocalStorage) -> None:
    assert Table.load(storage, for_writing=True).config.version == 6


@pytest.mark.parametrize(("first", "has_old_logs"), [("6", True), ("8", False), ("", False)])
def test_a_table_that_was_upgraded_may_have_such_logs_still(first: str, has_old_logs: bool) -> None:
    said = {"hoodie.table.name": "t", "hoodie.table.version": "9", "hoodie.table.initial.version": first}
    config = TableConfig.from_properties({name: value for name, value in said.items() if value})
    assert config.layout.has_old_logs is has_old_logs


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize(("ordering", "mode"), [(("ts",), "EVENT_TIME_ORDERING"), ((), "COMMIT_TIME_ORDERING")])
def test_the_ordering_columns_of_a_new_table_decide_whatever_its_version(
    tmp_path: Path, version: int, ordering: tuple[str, ...], mode: str
) -> None:
    storage = LocalStorage(str(tmp_path / "new"))
    Table.create(storage, TableConfig("t", ("id",), ("part",), ordering, version=version))
    assert Table.load(storage, for_writing=True).config.merge_mode == mode
