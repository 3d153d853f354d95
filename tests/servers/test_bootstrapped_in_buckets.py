"""Bootstrapped tables in buckets of real object stores: their rows lie in files outside of the table."""

from __future__ import annotations

import pickle
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from bootstrapped_tables import bootstrap, write_index
from hudi_locks_conformance.servers import Server
from real_servers import copy_table

from hudi_locks.errors import DamagedTable
from hudi_locks.storage import LocalStorage, Storage, open_storage
from hudi_locks.table import Table, latest_file_slices, read_base_file

pytestmark = pytest.mark.servers
FOLDER, FILE = "region=a b", "region=a b/part-0.parquet"
ROWS = pa.table({"id": [f"k{n}" for n in range(9)], "ts": [1] * 9, "value": [float(n) for n in range(9)]})


@pytest.fixture(params=["versitygw", "fake_gcs", "azurite"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Storage, Storage]:
    """A table and its source, beside each other in one bucket."""
    server: Server = request.getfixturevalue(request.param)
    base = f"{server.options['hoodie.base.path']}/{uuid.uuid4().hex}"
    table, source = (open_storage(f"{base}/{name}", server.options) for name in ("table", "source"))
    given = {"partitions": {"region": pa.string()}}
    made = bootstrap(tmp_path / "table", tmp_path / "source", {FOLDER: [ROWS]}, **given)  # type: ignore[arg-type]
    copy_table(made.storage, table)
    copy_table(LocalStorage(str(tmp_path / "source")), source)
    size = (tmp_path / "source" / FILE).stat().st_size
    write_index(table, {FOLDER: [f"{source.base}/{FILE}"]}, size=size)
    return table, source


def test_rows_come_from_a_source_in_the_bucket_on_executors_too(places: tuple[Storage, Storage]) -> None:
    table = Table.load(places[0])
    (piece,) = latest_file_slices(table.storage, table.timeline())
    assert piece.base
    sent = pickle.loads(pickle.dumps(table.storage))
    found = pa.concat_tables(read_base_file(sent, piece.base.path))
    assert found.select(ROWS.column_names).equals(ROWS)
    assert set(found.column("region").to_pylist()) == {"a b"}


def test_a_source_that_is_gone_is_named(places: tuple[Storage, Storage]) -> None:
    table, source = places
    assert source.delete(FILE)
    loaded = Table.load(table)
    with pytest.raises(DamagedTable, match=f"{FILE} is gone"):
        latest_file_slices(loaded.storage, loaded.timeline())
