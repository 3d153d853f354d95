"""Plans and results of table services, as the JVM wrote them (bundles 1.0.2 and 1.2.0) and as we do."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastavro.schema import to_parsing_canonical_form

from hudi_locks.errors import DamagedTable
from hudi_locks.format import (
    ArchiveRow,
    CleanMetadata,
    CleanPartition,
    CleanPlan,
    CommitMetadata,
    PartName,
    RestoreMetadata,
    RestorePlan,
    SavepointMetadata,
    decode_manifest,
    decode_rows,
    encode_manifest,
    encode_rows,
)
from hudi_locks.storage import LocalStorage

Golden = Callable[[str], LocalStorage]
TIMELINE = ".hoodie/timeline"
RECORDS = [
    (TIMELINE, ".clean.requested", CleanPlan),
    (TIMELINE, ".clean.inflight", CleanPlan),
    (TIMELINE, ".clean", CleanMetadata),
    (TIMELINE, ".savepoint", SavepointMetadata),
    ("restored", ".restore.requested", RestorePlan),
    ("restored", ".restore", RestoreMetadata),
]
versions = pytest.mark.parametrize("version", [8, 9])


def schema_of(data: bytes) -> str:
    return to_parsing_canonical_form(fastavro.reader(io.BytesIO(data)).writer_schema)


def read_all(storage: LocalStorage, folder: str, ending: str) -> list[tuple[str, bytes]]:
    names = [entry.name for entry in storage.list(folder) if entry.name.endswith(ending)]
    found = [(f"{folder}/{name}", storage.read(f"{folder}/{name}") or b"") for name in names]
    return [(path, data) for path, data in found if data]


@versions
@pytest.mark.parametrize(("folder", "ending", "kind"), RECORDS, ids=[row[1] for row in RECORDS])
def test_records_of_the_jvm_survive_the_round_trip(
    golden: Golden, version: int, folder: str, ending: str, kind: Any
) -> None:
    found = read_all(golden(f"services_v{version}"), folder, ending)
    assert found or (version, ending) == (9, ".clean.inflight")  # empty since 1.2
    for path, data in found:
        theirs = kind.decode(data, path)
        ours = theirs.encode()
        assert kind.decode(ours, path) == theirs
        assert schema_of(ours) == schema_of(data)
        assert list(fastavro.reader(io.BytesIO(ours))) == list(fastavro.reader(io.BytesIO(data)))


@versions
def test_the_history_of_the_jvm_is_read_and_written_the_same(golden: Golden, version: int) -> None:
    found = read_all(golden(f"services_v{version}"), f"{TIMELINE}/history", ".parquet")
    assert {PartName.parse(path.rsplit("/", 1)[-1]).level for path, _ in found} == {0, 1}  # type: ignore[union-attr]
    for path, data in found:
        rows = decode_rows(data, path)
        ours = encode_rows(rows)
        theirs, again = (pq.ParquetFile(pa.BufferReader(part)) for part in (data, ours))
        assert again.read().equals(theirs.read())
        assert again.schema_arrow.remove_metadata() == theirs.schema_arrow.remove_metadata()
        assert again.metadata.metadata == theirs.metadata.metadata
        assert encode_rows(rows) == ours


@versions
def test_what_the_jvm_archived_is_what_stood_on_its_timeline(golden: Golden, version: int) -> None:
    parts = read_all(golden(f"services_v{version}"), f"{TIMELINE}/history", "_1.parquet")
    rows = [row for path, data in parts for row in decode_rows(data, path)]
    assert {row.action for row in rows} == {"commit", "replacecommit"}
    for row in rows:
        assert CommitMetadata.decode(row.metadata, row.requested).stats
        assert (row.plan is None) == (row.action == "commit")


@versions
def test_manifests_of_the_jvm_are_read(golden: Golden, version: int) -> None:
    storage = golden(f"services_v{version}")
    folder = f"{TIMELINE}/history"
    sizes = decode_manifest(storage.read(f"{folder}/manifest_5") or b"", "it")
    assert sizes == {name: len(storage.read(f"{folder}/{name}") or b"") for name in sizes}
    assert decode_manifest(encode_manifest(sizes), "it") == sizes


def test_savepoints_that_a_clean_regarded_are_kept_in_it() -> None:
    plan = CleanPlan(None, "1", "KEEP_LATEST_COMMITS", {"": ("file:/t/a",), "p": ("/t/p/b",)}, savepoints=("2", "3"))
    assert CleanPlan.decode(plan.encode(), "it") == plan
    assert plan.paths == {"a", "p/b"}
    done = CleanMetadata("4", 5, "", "1", "KEEP_LATEST_COMMITS", {"p": CleanPartition(("b",), ("c",))}, ("2", "3"))
    assert CleanMetadata.decode(done.encode(), "it") == done
    assert done.deleted == 1


@pytest.mark.parametrize("kind", [CleanPlan, CleanMetadata, SavepointMetadata, RestorePlan, RestoreMetadata])
@pytest.mark.parametrize("data", [b"", b"Obj\x01nonsense", SavepointMetadata("a", 1, "b").encode()[:-30]])
def test_damage_is_named(kind: Any, data: bytes) -> None:
    with pytest.raises(DamagedTable, match="the file"):
        kind.decode(data, "the file")


def test_a_record_of_another_kind_is_no_plan() -> None:
    for kind in (CleanPlan, CleanMetadata, RestorePlan, RestoreMetadata):
        with pytest.raises(DamagedTable, match="holds no"):
            kind.decode(SavepointMetadata("a", 1, "b").encode(), "the file")
    with pytest.raises(DamagedTable, match="holds no savepoint"):
        SavepointMetadata.decode(RestorePlan("1").encode(), "the file")


def test_damaged_parts_and_manifests_are_named() -> None:
    with pytest.raises(DamagedTable, match="the part"):
        decode_rows(b"PAR1", "the part")
    for data in (b"", b"[]", b'{"files": [{"fileName": "a"}]}'):
        with pytest.raises(DamagedTable, match="the manifest"):
            decode_manifest(data, "the manifest")


def test_a_part_is_named_by_its_first_and_last_instant() -> None:
    assert str(PartName("1", "2")) == "1_2_0.parquet"
    assert PartName.parse("11_22_3.parquet") == PartName("11", "22", 3)
    assert PartName.parse("_version_") is None
    row = ArchiveRow("1", "2", "clean", b"m", b"p")
    assert decode_rows(encode_rows([row]), "it") == [row]
