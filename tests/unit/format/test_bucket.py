"""The vectorised hash against the JVM's answers, and against a fold written as Java writes it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from hudi_locks.format import assign_buckets, bucket_file_id, bucket_of_file_id

VECTORS = Path(__file__).parents[2] / "golden" / "bucket_vectors.json"
PIECES = st.text(st.sampled_from("ab,:_é日😀"), max_size=6) | st.sampled_from(["__null__", "__empty__"])


def java_hash(text: str) -> int:
    data, value = text.encode("utf-16-be"), 0
    for high, low in zip(data[::2], data[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) % 2**32
    return value


def pairs(key: str) -> Iterator[tuple[str, str]]:
    name, *pieces = key.split(":")
    value: list[str] = []
    for piece in pieces[:-1]:
        head, comma, following = piece.rpartition(",")
        value.append(head if comma else piece)
        if comma:
            yield name, ":".join(value)
            name, value = following, []
    yield name, ":".join([*value, pieces[-1]])


def java_bucket(key: str, fields: list[str], buckets: int) -> int:
    fold = 1
    composite = "," in key and ":" in key
    for value in [v for n, v in pairs(key) if n in fields] if composite else [key]:
        skipped = composite and value in ("__null__", "__empty__")
        fold = (31 * fold + (0 if skipped else java_hash(value))) % 2**32
    return (fold & 0x7FFFFFFF) % buckets


def test_every_vector_of_the_jvm() -> None:
    vectors = json.loads(VECTORS.read_text(encoding="utf-8"))["vectors"]
    assert len(vectors) == 500
    for vector in vectors:
        keys = pa.array([vector["key"]], pa.string())
        assert assign_buckets(keys, vector["fields"], buckets=vector["buckets"]).to_pylist() == [vector["bucket"]]


def test_the_vectors_in_one_column_give_what_they_give_alone() -> None:
    vectors = json.loads(VECTORS.read_text(encoding="utf-8"))["vectors"]
    keys = pa.array([vector["key"] for vector in vectors], pa.string())
    found = assign_buckets(keys, ["id"], buckets=64).to_pylist()
    assert found == [java_bucket(vector["key"], ["id"], 64) for vector in vectors]


@given(st.lists(st.text() | PIECES), st.integers(1, 5000))
@example(["a:1,b:2", "", "a", "a:1,b:2:3,c:4", "a:,b:"], 7)
def test_any_text_hashes_as_in_java(keys: list[str], buckets: int) -> None:
    found = assign_buckets(pa.array(keys, pa.string()), ["a", "b"], buckets=buckets)
    assert found.to_pylist() == [java_bucket(key, ["a", "b"], buckets) for key in keys]


@given(st.lists(st.tuples(PIECES, PIECES), min_size=1), st.sampled_from([["a"], ["b"], ["a", "b"], ["b", "a"]]))
def test_composite_keys_hash_their_hash_fields(values: list[tuple[str, str]], fields: list[str]) -> None:
    keys = [f"a:{a},b:{b}" for a, b in values]
    found = assign_buckets(pa.array(keys, pa.string()), fields, buckets=256)
    assert found.to_pylist() == [java_bucket(key, fields, 256) for key in keys]


@given(st.lists(st.text(max_size=5), min_size=2, max_size=20), st.data())
def test_a_slice_of_a_column_hashes_as_its_copy(keys: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(keys) - 1))
    column = pa.array(keys, pa.string())
    expected = [java_bucket(key, ["a"], 99) for key in keys[start:]]
    assert assign_buckets(column.slice(start), ["a"], buckets=99).to_pylist() == expected


def test_a_file_id_tells_its_bucket_and_differs_by_partition_and_seed() -> None:
    seed = uuid.uuid4()
    ids = {bucket_file_id(17, s, partition=p) for s in (seed, uuid.uuid4()) for p in ("p=1", "p=2")}
    assert len(ids) == 4
    assert bucket_file_id(17, seed, partition="p=1") in ids
    assert {bucket_of_file_id(file_id) for file_id in ids} == {17}
    assert all(file_id.startswith("00000017-") and file_id.endswith("-0") for file_id in ids)
