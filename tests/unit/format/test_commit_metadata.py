from __future__ import annotations

import io
import json
from collections.abc import Callable

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.errors import DamagedTable
from hudi_locks.format import (
    CommitMetadata,
    Instant,
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    RollbackRequest,
    State,
    WriteStat,
    encode_requested_replace,
)
from hudi_locks.storage import LocalStorage
from hudi_locks.timeline import LAYOUT_1, LAYOUT_2, Timeline, read_instant

PATH = ".hoodie/timeline/20261121032159605_20261121032200229.commit"

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
counts = st.integers(min_value=0, max_value=2**63 - 1)
stats = st.builds(
    WriteStat,
    partition_path=texts,
    file_id=texts,
    path=texts,
    prev_commit=texts,
    num_writes=counts,
    num_inserts=counts,
    num_update_writes=counts,
    num_deletes=counts,
    file_size_bytes=counts,
    prev_base_file=st.none() | texts,
    log_version=st.none() | st.integers(1, 9),
    log_files=st.none() | st.lists(texts, max_size=2).map(tuple),
)
metadata = st.builds(
    CommitMetadata.of,
    st.lists(stats, max_size=4),
    st.just("UPSERT"),
    schema=st.just('{"type":"record"}'),
    extra=st.dictionaries(texts, texts, max_size=2),
    replaced_file_ids=st.dictionaries(texts, st.lists(texts, max_size=3).map(tuple), max_size=2),
)


def sample() -> CommitMetadata:
    return CommitMetadata.of([WriteStat("p=1", "f-0", "p=1/f-0_0-0-0_1.parquet", num_writes=3)], "INSERT", schema="{}")


@given(metadata, st.sampled_from([1, 2]))
def test_metadata_survives_the_round_trip(written: CommitMetadata, layout_version: int) -> None:
    data = written.encode("replacecommit", layout_version=layout_version)
    assert CommitMetadata.decode(data, PATH) == written


def test_same_metadata_has_same_bytes_whatever_the_order_of_tasks() -> None:
    one, other = (WriteStat("p", file_id, f"p/{file_id}") for file_id in ("a-0", "b-0"))
    first = CommitMetadata.of([one, other], "UPSERT", schema="{}")
    second = CommitMetadata.of([other, one], "UPSERT", schema="{}")
    assert first.encode("commit", layout_version=2) == second.encode("commit", layout_version=2)


def test_facts_for_conflicts_are_at_hand() -> None:
    replacing = CommitMetadata.of(
        [WriteStat("p", "a-0", "p/a"), WriteStat("q", "b-0", "q/b")],
        "CLUSTER",
        schema="s",
        replaced_file_ids={"p": ("c-0",)},
    )
    assert replacing.written_file_groups == {("p", "a-0"), ("q", "b-0")}
    assert replacing.replaced_file_groups == {("p", "c-0")}
    assert replacing.paths == {"p/a", "q/b"}
    assert replacing.schema == "s"
    assert len(replacing.stats) == 2


def fields_of(data: bytes) -> tuple[str, list[str]]:
    schema = fastavro.reader(io.BytesIO(data)).writer_schema
    assert isinstance(schema, dict)
    return schema["name"], [field["name"] for field in schema["fields"]]


@pytest.mark.parametrize("name", ["v8_cow", "v9_cow"])
def test_our_schema_is_the_one_of_the_jvm(golden: Callable[[str], LocalStorage], name: str) -> None:
    storage = golden(name)
    timeline = Timeline.load(storage, LAYOUT_2)
    theirs = fastavro.reader(io.BytesIO(read_instant(storage, timeline, instant=timeline.instants[0])))
    ours = fastavro.reader(io.BytesIO(sample().encode("commit", layout_version=2)))
    assert theirs.writer_schema is not None
    assert fastavro.schema.to_parsing_canonical_form(ours.writer_schema) == fastavro.schema.to_parsing_canonical_form(
        theirs.writer_schema
    )


@pytest.mark.parametrize(("name", "layout"), [("v6_cow", LAYOUT_1), ("v8_cow", LAYOUT_2), ("v9_cow", LAYOUT_2)])
def test_commits_of_the_jvm_are_read(golden: Callable[[str], LocalStorage], name: str, layout: object) -> None:
    storage = golden(name)
    timeline = Timeline.load(storage, LAYOUT_1 if layout is LAYOUT_1 else LAYOUT_2)
    read = [
        CommitMetadata.decode(read_instant(storage, timeline, instant=i), timeline.paths[i]) for i in timeline.instants
    ]
    assert [commit.operation for commit in read][:2] == ["INSERT", "UPSERT"]
    assert sum(stat.num_inserts for stat in read[0].stats) == 20
    assert sum(stat.num_update_writes for stat in read[1].stats) == 5
    assert sum(stat.num_deletes for stat in read[2].stats) == 3
    assert set(read[0].partition_to_write_stats) == {"region=us_west", "region=us_east", "region=eu_central_1"}
    assert all(storage.exists(path) for commit in read for path in commit.paths)
    assert json.loads(read[1].schema or "")["name"] == f"{name}_record"
    assert {stat.prev_commit for stat in read[1].stats} == {timeline.instants[0].requested}


def test_forecasts_of_the_jvm_are_read(golden: Callable[[str], LocalStorage]) -> None:
    storage = golden("v9_cow")
    entry = next(e for e in storage.list(LAYOUT_2.folder) if e.name.endswith(".inflight"))
    data = storage.read(f"{LAYOUT_2.folder}/{entry.name}")
    forecast = CommitMetadata.decode(data or b"", entry.name, may_be_empty=True)
    assert forecast.operation == "INSERT"
    assert forecast.paths == frozenset()
    assert forecast.written_file_groups == frozenset()


def test_empty_files_are_legal_only_while_pending() -> None:
    assert CommitMetadata.decode(b"", PATH, may_be_empty=True) == CommitMetadata()
    with pytest.raises(DamagedTable, match="empty file"):
        CommitMetadata.decode(b"", PATH)


@pytest.mark.parametrize("data", [b"{", b"[]", b"{}", b"Obj\x01", b'{"partitionToWriteStats": 3}', b"\xff\xfe\x00"])
def test_damaged_metadata_is_named(data: bytes) -> None:
    with pytest.raises(DamagedTable, match="20261121032159605") as caught:
        CommitMetadata.decode(data, PATH)
    assert caught.value.path == PATH


def is_named_or_read(data: bytes) -> bool:
    try:
        return isinstance(CommitMetadata.decode(data, PATH), CommitMetadata)
    except DamagedTable as error:
        return bool(error.path == PATH)


@given(st.data())
def test_no_damage_ends_in_another_error(data: st.DataObject) -> None:
    whole = sample().encode("commit", layout_version=2)
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255))
    assert is_named_or_read(whole[:at])
    assert is_named_or_read(whole[:at] + bytes([byte]) + whole[at + 1 :])


def test_unknown_fields_of_later_releases_are_passed_over() -> None:
    record = json.loads(sample().encode("commit", layout_version=1))
    record["partitionToWriteStats"]["p=1"][0]["brandNew"] = 1
    record["another"] = {}
    assert CommitMetadata.decode(json.dumps(record).encode(), PATH) == sample()


def test_replacing_without_a_plan_asks_with_nulls() -> None:
    data = encode_requested_replace()
    assert fields_of(data) == (
        "org.apache.hudi.avro.model.HoodieRequestedReplaceMetadata",
        ["operationType", "clusteringPlan", "extraMetadata", "version"],
    )
    assert next(fastavro.reader(io.BytesIO(data))) == {
        "operationType": None, "clusteringPlan": None, "extraMetadata": None, "version": 1,
    }  # fmt: skip


def test_rollback_plans_survive_the_round_trip() -> None:
    requests = (RollbackRequest("p=1", ("/t/p=1/a.parquet",)), RollbackRequest("", (), "f-0", "20261121032159605"))
    plan = RollbackPlan.of(Instant("20261121032159605", "commit", State.INFLIGHT), requests)
    assert RollbackPlan.decode(plan.encode(), PATH) == plan
    assert RollbackPlan.decode(RollbackPlan(None, None).encode(), PATH) == RollbackPlan(None, None)


def test_rollbacks_survive_the_round_trip_and_count_what_they_deleted() -> None:
    done = RollbackMetadata(
        "20261121032159606", 12, (("20261121032159605", "commit"),), {"p=1": RollbackPartition(("a", "b"), ("c",))}
    )
    assert RollbackMetadata.decode(done.encode(), PATH) == done
    record = next(fastavro.reader(io.BytesIO(done.encode())))
    assert isinstance(record, dict)
    assert (record["totalFilesDeleted"], record["commitsRollback"]) == (2, ["20261121032159605"])


@pytest.mark.parametrize("kind", [RollbackPlan, RollbackMetadata])
def test_a_rollback_of_another_kind_is_named(kind: type[RollbackPlan | RollbackMetadata]) -> None:
    with pytest.raises(DamagedTable, match="holds no rollback"):
        kind.decode(sample().encode("commit", layout_version=2), PATH)
