"""Avro messages in the form of a schema registry: what is no such message is named, and the rest becomes rows."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from avro_session import AvroSession, JobWords, open_avro_session, write_messages
from hudi_locks_conformance.servers import ServerUnavailable
from schema_registry import Schema, SchemaRegistry

from hudi_locks.errors import BadInput
from hudi_locks.spark import HoodieTable

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("avro session")]

SUBJECT = "trips-value"
BROKEN = "is no row by the schema of its id"


def record(*fields: tuple[str, Any]) -> Schema:
    return {"type": "record", "name": "trip", "fields": [{"name": name, "type": kind} for name, kind in fields]}


MAYBE = ["null", "string"]
OLD = record(("id", "string"), ("ts", "long"), ("tags", {"type": "array", "items": "string"}))
NULLS = record(("id", MAYBE), ("ts", ["null", "long"]), ("tags", ["null", {"type": "array", "items": "string"}]))
UNION: Any = ["null", OLD]
IDS = {7: NULLS, 8: UNION, 70_000: OLD}
"""Whose newest is the reader's, which takes the others' rows too, where they have what it needs."""


@pytest.fixture(scope="module")
def session() -> Iterator[AvroSession]:
    try:
        with open_avro_session() as opened:
            yield opened
    except ServerUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry({SUBJECT: IDS}).serving() as made:
        yield made


class Topic:
    """Messages that come in, and a table for them."""

    def __init__(self, folder: Path, session: AvroSession, registry: SchemaRegistry) -> None:
        self.session = session
        self.registry = registry
        self.messages = folder / "messages"
        self.path = str(folder / "table")
        self.keys = {
            "hoodie.table.name": "trips",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.upsert.shuffle.parallelism": "2",
            "hoodie.streamer.source.kafka.topic": "trips",
            "schema.registry.url": registry.url,
        }

    def message(self, number: int, **row: Any) -> bytes:
        return self.registry.encode(SUBJECT, number, row)

    def put(self, first: int, *values: bytes | None) -> None:
        write_messages(self.messages, "trips", dict(enumerate(values, first)))

    def words(self, **settings: Any) -> JobWords:
        return JobWords(self.path, self.messages, self.keys, settings)

    def run(self) -> Any:
        return self.session.run(self.words(retry_interval_s=3600))


@pytest.fixture
def topic(tmp_path: Path, session: AvroSession, registry: SchemaRegistry) -> Topic:
    return Topic(tmp_path, session, registry)


def rows_in(spark: Any, topic: Topic, *columns: str) -> list[tuple[Any, ...]]:
    found = HoodieTable.load(spark, topic.path).read().select(*(columns or ("id", "ts", "tags")))
    return sorted((tuple(row) for row in found.collect()), key=repr)


def test_a_body_that_is_cut_off_is_named_and_nothing_of_its_batch_is_written(spark: Any, topic: Topic) -> None:
    topic.put(10, topic.message(70_000, id="a", ts=1, tags=["x"]))
    assert topic.run().rows_inserted == 1
    topic.put(20, topic.message(70_000, id="b", ts=1, tags=[]), topic.message(70_000, id="c", ts=1, tags=["y"])[:-2])
    with pytest.raises(BadInput) as caught:
        topic.run()
    said = f"message at topic trips, partition 3, offset 21 {BROKEN} 70000"
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)
    assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("trips", 3, 21)
    assert rows_in(spark, topic) == [("a", 1, ["x"])]


@pytest.mark.parametrize(
    ("number", "left", "added"),
    [
        (70_000, 0, b""),
        (70_000, -1, b""),
        (70_000, None, b"\0"),
        (70_000, None, b"x" * 20),
        (7, 0, b"\x02"),
        (8, 0, b"\0"),
    ],
)
def test_bytes_that_are_missing_left_over_or_of_another_kind_are_no_row(
    topic: Topic, number: int, left: int | None, added: bytes
) -> None:
    body = topic.message(70_000, id="a", ts=1, tags=["x"])[5:]
    topic.put(0, struct.pack(">bI", 0, number) + body[:left] + added)
    with pytest.raises(BadInput, match=f"offset 0 {BROKEN} {number}: its Avro data is damaged"):
        topic.run()


def test_rows_whose_nullable_columns_are_null_are_rows(spark: Any, topic: Topic) -> None:
    """Where all of them are, the row is refused for its key, as a row of other sources is."""
    topic.registry.subjects[SUBJECT] = {70_000: OLD, 8: UNION, 7: NULLS}
    topic.put(0, topic.message(7, id="a"), topic.message(8, id="b", ts=1, tags=["x"]), topic.message(7, id="c", ts=1))
    assert topic.run().rows_inserted == 3
    assert rows_in(spark, topic) == [("a", None, None), ("b", 1, ["x"]), ("c", 1, None)]
    topic.put(3, topic.message(7))
    with pytest.raises(BadInput, match="no record key"):
        topic.run()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "is not of the form of a schema registry"),
        (b'{"id": "a"}', "is not of the form of a schema registry"),
        (b"\0\0\0\0\x09\2a\2\0", "has the schema id 9, which the 3 versions of"),
    ],
)
def test_a_value_of_another_form_or_of_an_unknown_schema_is_named(topic: Topic, value: bytes | None, said: str) -> None:
    topic.put(4, topic.message(70_000, id="a", ts=1, tags=[]), value)
    with pytest.raises(BadInput, match=f"^message at topic trips, partition 3, offset 5 {said}"):
        topic.run()
