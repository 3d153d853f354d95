"""Skeletons and the files that have the other columns of their rows, joined by the places of the rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bootstrapped_tables import bootstrap, write_index

from hudi_locks.config import Options
from hudi_locks.config.checks import check_writer_options
from hudi_locks.errors import ConfigError, DamagedTable, UnsupportedTable
from hudi_locks.format import META_COLUMNS, CleanPlan
from hudi_locks.format import column_range as kinds
from hudi_locks.format.avro import CLEANER_PLAN
from hudi_locks.format.bootstrap_index import BOOTSTRAP_INDEX
from hudi_locks.format.records import encode_record
from hudi_locks.metadata_table.measuring import measure_file
from hudi_locks.table import (
    FileSlice,
    MergeRule,
    PartitionValues,
    Table,
    TableConfig,
    add_meta_schema,
    describe_base_file,
    latest_file_slices,
    read_base_file,
    read_slice,
)
from hudi_locks.table.base_file import read_file_schema
from hudi_locks.verification import verify_table

ROWS = 25
EU, US = "region=eu", "region=us"


def make_rows(first: int, count: int = ROWS) -> pa.Table:
    numbers = list(range(first, first + count))
    return pa.table(
        {
            "id": [f"k{n:03}" for n in numbers],
            "ts": pa.array([1] * count, pa.int64()),
            "value": [float(n) for n in numbers],
        }
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "source"


@pytest.fixture
def make(tmp_path: Path, source: Path) -> Callable[..., Table]:
    def create(files: dict[str, list[pa.Table]] | None = None, **config: Any) -> Table:
        files = files or {EU: [make_rows(0), make_rows(100, 7)], US: [make_rows(200)]}
        config.setdefault("partitions", {"region": pa.string()})
        return bootstrap(tmp_path / "table", source, files, **config)

    return create


def list_slices(table: Table) -> tuple[FileSlice, ...]:
    return latest_file_slices(table.storage, table.timeline())


def find_path(table: Table, number: int = 0) -> str:
    base = list_slices(table)[number].base
    assert base is not None
    return base.path


@pytest.mark.parametrize("batch_rows", [1, 2, 5, 1000])
def test_rows_are_joined_by_their_places_whatever_the_row_groups(make: Any, batch_rows: int) -> None:
    table = make()
    found = pa.concat_tables(read_base_file(table.storage, find_path(table), batch_rows=batch_rows))
    assert found.column("_hoodie_record_key").to_pylist() == found.column("id").to_pylist()
    assert found.drop_columns([*META_COLUMNS, "region"]).equals(make_rows(0))
    assert set(found.column("region").to_pylist()) == {"eu"}


def test_columns_are_chosen_of_both(make: Any) -> None:
    table = make()
    for columns in (["_hoodie_record_key"], ["value"], ["region"], ["_hoodie_record_key", "value"], ["value", "none"]):
        found = pa.concat_tables(read_base_file(table.storage, find_path(table), columns=columns))
        assert found.column_names == [name for name in columns if name != "none"]
        assert found.num_rows == ROWS


def test_a_source_may_have_more_columns_or_less_and_those_of_hudi_too(make: Any) -> None:
    more = (
        make_rows(0, 3).append_column("extra", pa.array([1, 2, 3])).append_column(META_COLUMNS[2], pa.array(["x"] * 3))
    )
    table = make({EU: [make_rows(10, 3)], US: [more]})
    schema = add_meta_schema(
        pa.schema([("id", pa.string()), ("value", pa.float64()), ("region", pa.string()), ("new", pa.int32())])
    )
    [rows] = read_slice(table.storage, list_slices(table)[1], schema, rule=MergeRule())
    assert rows.column("_hoodie_record_key").to_pylist() == ["k000", "k001", "k002"]
    assert rows.column("region").to_pylist() == ["us"] * 3
    assert rows.column("new").null_count == 3


def test_folders_tell_values_in_the_types_of_the_table(make: Any) -> None:
    files = {
        "day=2024-02-29/n=7/t=a%3Ab": [make_rows(0, 2)],
        "day=__HIVE_DEFAULT_PARTITION__/n=8/t=x": [make_rows(5, 2)],
    }
    kinds = {"day": pa.date32(), "n": pa.int32(), "t": pa.string()}
    table = make(files, partitions=kinds)
    schema = add_meta_schema(pa.schema(list(kinds.items())))
    read = [pa.concat_tables(read_slice(table.storage, one, schema, rule=MergeRule())) for one in list_slices(table)]
    found = [tuple(rows.column(name)[0].as_py() for name in kinds) for rows in read]
    assert found == [(dt.date(2024, 2, 29), 7, "a:b"), (None, 8, "x")]


def test_types_of_arrow_become_those_of_tables(make: Any, source: Path) -> None:
    table = make({EU: [make_rows(0, 3)]})
    odd = make_rows(0, 3).append_column("big", pa.array(["a"] * 3, pa.large_string()))
    odd = odd.append_column("few", pa.array(["a", "b", "a"]).dictionary_encode()).append_column(
        "small", pa.array([1, 2, 3], pa.int8())
    )
    pq.write_table(odd, source / EU / "part-0.parquet")
    write_index(table.storage, {EU: [f"file:{source}/{EU}/part-0.parquet"]})
    path = find_path(table)
    [rows] = read_base_file(table.storage, path)
    wanted = {"big": pa.string(), "few": pa.string(), "small": pa.int32()}
    assert {name: rows.schema.field(name).type for name in wanted} == wanted
    stored = read_file_schema(table.storage, path)
    assert {name: stored.field(name).type for name in wanted} == wanted
    assert stored.names[:5] == list(META_COLUMNS)


def test_ranges_of_columns_are_those_of_the_source(make: Any) -> None:
    table = make()
    base = list_slices(table)[0].base
    assert base is not None
    found = measure_file(table.storage, base, {"ts": kinds.LONG, "value": kinds.DOUBLE, "region": kinds.STRING})
    assert found is not None
    assert (found["value"].low, found["value"].high, found["value"].nulls) == (0.0, 24.0, 0)
    assert (found["ts"].low, found["region"].high) == (1, "eu")


def test_a_table_of_whole_files_is_sound(make: Any) -> None:
    table = make()
    report = verify_table(table.storage, reads_values=True)
    assert report.damages == ()
    rows, columns = describe_base_file(table.storage, find_path(table))
    assert (rows, set(columns)) == (ROWS, {*META_COLUMNS, "id", "ts", "value", "region"})


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_source_that_is_gone_is_named_with_its_skeleton(make: Any, source: Path, is_listed: bool) -> None:
    table = make()
    path = find_path(table)
    (source / EU / "part-0.parquet").unlink()
    with pytest.raises(DamagedTable, match=rf"region=eu/part-0.parquet is gone.*{path}") as caught:
        list_slices(table) if is_listed else list(read_base_file(table.storage, path))
    assert caught.value.skeleton == path
    assert latest_file_slices(table.storage, table.timeline(), partitions=[US])
    [finding] = verify_table(table.storage).damages
    assert (finding.kind, finding.path) == ("base-file", path)


@pytest.mark.parametrize("is_source", [True, False])
def test_what_cannot_be_read_is_told_of_its_own_file(make: Any, source: Path, tmp_path: Path, is_source: bool) -> None:
    table = make()
    path = find_path(table)
    file = source / EU / "part-0.parquet" if is_source else tmp_path / "table" / path
    file.write_bytes(b"x" * file.stat().st_size)
    with pytest.raises(DamagedTable) as caught:
        list(read_base_file(table.storage, path))
    assert caught.value.path == (f"file:{file}" if is_source else path)


def test_a_source_behind_a_link_is_there(make: Any, source: Path) -> None:
    table = make()
    file = source / EU / "part-0.parquet"
    file.rename(source / "elsewhere")
    file.symlink_to(source / "elsewhere")
    assert sum(rows.num_rows for rows in read_base_file(table.storage, find_path(table))) == ROWS


def test_a_source_with_other_rows_is_refused(make: Any, source: Path) -> None:
    table = make()
    path, file = find_path(table), source / EU / "part-0.parquet"
    pq.write_table(make_rows(0, ROWS - 1), file)
    with pytest.raises(DamagedTable, match=r"part-0.parquet has \d+ bytes, and had \d+ then"):
        list_slices(table)
    addresses = [f"file:{source}/{EU}/part-{number}.parquet" for number in range(2)]
    write_index(table.storage, {EU: addresses, US: [f"file:{source}/{US}/part-0.parquet"]})
    for columns in (None, ["region"]):
        with pytest.raises(DamagedTable, match=r"part-0.parquet has 24 rows, and the skeleton 25"):
            list(read_base_file(make_afresh(table).storage, path, columns=columns))


def make_afresh(table: Table) -> Table:
    """The table as another process has it, which remembers nothing."""
    from hudi_locks.table import bootstrap

    bootstrap._read_sources.cache_clear()
    return table


@pytest.mark.parametrize("what", ["gone", "junk", "of others"])
def test_an_index_that_does_not_tell_is_named(make: Any, what: str) -> None:
    table = make_afresh(make())
    if what == "gone":
        table.storage.delete(BOOTSTRAP_INDEX)
    elif what == "junk":
        table.storage.replace(BOOTSTRAP_INDEX, b"junk")
    else:
        write_index(table.storage, {"region=other": ["file:/none"]})
    with pytest.raises(DamagedTable, match=r"bootstrap index|HFile") as caught:
        list_slices(table)
    assert caught.value.path == BOOTSTRAP_INDEX
    assert "metadata rebuild" not in str(caught.value)


def test_a_source_in_another_store_is_refused_by_its_name(make: Any) -> None:
    table = make_afresh(make({EU: [make_rows(0)]}))
    write_index(table.storage, {EU: ["s3a://bucket/data/part-0.parquet"]})
    with pytest.raises(UnsupportedTable, match="s3a://bucket/data"):
        list_slices(table)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.bootstrap.index.enable", "false"),
        ("hoodie.bootstrap.index.type", "NO_OP"),
        ("hoodie.bootstrap.index.class", "a.B"),
    ],
)
def test_other_indexes_are_refused(make: Any, source: Path, key: str, value: str) -> None:
    with pytest.raises(UnsupportedTable, match=f"{key}={value}"):
        make(extra={"hoodie.bootstrap.base.path": str(source), key: value})


def test_folders_of_a_bootstrapped_table_are_read_as_spark_wrote_them() -> None:
    schema = pa.schema([("region", pa.string())])
    plain = TableConfig("t", ("id",), ("region",), extra={"hoodie.bootstrap.base.path": "/source"})
    values = PartitionValues.of(plain, schema)
    assert [values.read(folder) for folder in ("region=a%3Ab", "a%3Ab", "eu")] == [("a:b",), ("a:b",), ("eu",)]


def test_a_clean_of_jvm_hudi_that_takes_sources_is_gone_on_with_without_them() -> None:
    paths = {EU: [
        {"filePath": "/table/region=eu/a.parquet", "isBootstrapBaseFile": False},
        {"filePath": "/source/region=eu/part-0.parquet", "isBootstrapBaseFile": True},
    ]}  # fmt: skip
    record = {"policy": "KEEP_LATEST_COMMITS", "filePathsToBeDeletedPerPartition": paths, "version": 2}
    known: dict[str, Any] = {
        "earliestInstantToRetain": None,
        "lastCompletedCommitTimestamp": "",
        "filesToBeDeletedPerPartition": {},
    }
    more: dict[str, Any] = {"partitionsToBeDeleted": [], "extraMetadata": {}}
    plan = CleanPlan.decode(encode_record(CLEANER_PLAN, {**record, **known, **more}), "plan")
    assert plan.paths == {"region=eu/a.parquet"}


def test_to_remove_sources_is_refused() -> None:
    key = "hoodie.cleaner.delete.bootstrap.base.file"
    with pytest.raises(ConfigError, match="never removed"):
        check_writer_options(Options({key: "true"}))
    check_writer_options(Options({key: "false"}))
