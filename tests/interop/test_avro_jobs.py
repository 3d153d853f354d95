"""Avro messages in the form of a schema registry, and Avro files: what is damaged is named, the rest becomes rows."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import fastavro
import pytest
from avro_session import AvroSession, JobWords, follow_job, open_avro_session, write_messages
from hudi_locks_conformance.servers import ServerUnavailable
from schema_registry import Schema, SchemaRegistry
from waiting import until

from hudi_locks.errors import BadInput, WriteError
from hudi_locks.ingest import source_files
from hudi_locks.spark import HoodieTable

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("avro session")]

SUBJECT = "trips-value"
SCHEMA_FILE = "hoodie.streamer.schemaprovider.source.schema.file"
BROKEN = "is no row by the schema of its id"


def record(*fields: tuple[str, Any]) -> Schema:
    return {"type": "record", "name": "trip", "fields": [{"name": name, "type": kind} for name, kind in fields]}


def with_note(schema: Schema) -> Schema:
    return {**schema, "fields": [*schema["fields"], {"name": "note", "type": "string", "default": "none"}]}


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
            "hoodie.streamer.source.dfs.root": str(folder / "in"),
            "schema.registry.url": registry.url,
        }

    def message(self, number: int, **row: Any) -> bytes:
        return self.registry.encode(SUBJECT, number, row)

    def put(self, first: int, *values: bytes | None) -> None:
        write_messages(self.messages, "trips", dict(enumerate(values, first)))

    def run(self) -> Any:
        return self.session.run(JobWords(self.path, self.messages, self.keys, {"retry_interval_s": 3600}))

    def follow(self, batches: int, **settings: Any) -> Future[Any]:
        """A job that goes on, once it has written its first batch."""
        words = JobWords(self.path, self.messages, self.keys, {"is_continuous": True, **settings}, batches)
        job = self.session.start(follow_job, words)
        assert until(lambda: job.done() or [*Path(self.path).glob(".hoodie/timeline/*.commit")])
        return job

    def run_files(self, columns: Path | None = None) -> Any:
        keys = {SCHEMA_FILE: str(columns)} if columns else {}
        return self.session.run(JobWords(self.path, None, {**self.keys, **keys}, {"retry_interval_s": 3600}))


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
        (b"\0\0\0\0\x09\2a\2\0", "has the schema id 9, which is none of the 3 versions of"),
    ],
)
def test_a_value_of_another_form_or_of_an_unknown_schema_is_named(topic: Topic, value: bytes | None, said: str) -> None:
    topic.put(4, topic.message(70_000, id="a", ts=1, tags=[]), value)
    with pytest.raises(BadInput, match=f"^message at topic trips, partition 3, offset 5 {said}"):
        topic.run()


def test_a_job_that_goes_on_takes_up_a_schema_that_comes_later(spark: Any, topic: Topic) -> None:
    topic.registry.subjects[SUBJECT] = {7: OLD}
    topic.put(0, topic.message(7, id="a", ts=1, tags=[]))
    job = topic.follow(2, retries=0)
    topic.registry.subjects[SUBJECT][8] = with_note(OLD)
    topic.put(1, topic.message(8, id="b", ts=1, tags=[], note="new"), topic.message(7, id="c", ts=1, tags=[]))
    report = job.result(600)
    assert (report.batches, report.failures) == (2, 0)
    assert rows_in(spark, topic, "id", "note") == [("a", None), ("b", "new"), ("c", "none")]


def test_a_registry_that_is_away_when_a_schema_comes_is_asked_again(topic: Topic) -> None:
    topic.registry.subjects[SUBJECT] = {7: OLD}
    topic.put(0, topic.message(7, id="a", ts=1, tags=[]))
    job = topic.follow(2, retries=2, retry_interval_s=0)
    value = topic.message(7, id="b", ts=1, tags=[])
    asked = len(topic.registry.asked)
    topic.registry.subjects.clear()
    topic.put(1, value[:4] + bytes([8]) + value[5:])
    with pytest.raises(WriteError, match=r"has the schema id 8.*does not give a schema"):
        job.result(600)
    assert len(topic.registry.asked) - asked == 3


def write_file(file: Path, *, rows: int) -> bytes:
    """An Avro file of many blocks, by an Avro library that is not Spark's."""
    file.parent.mkdir(exist_ok=True)
    with file.open("wb") as out:
        fastavro.writer(out, OLD, ({"id": f"{n:04}", "ts": n, "tags": []} for n in range(rows)), sync_interval=1000)
    return file.read_bytes()


def cut_header(whole: bytes) -> bytes:
    return whole[:40]


def cut_block(whole: bytes) -> bytes:
    return whole[: len(whole) // 2]


def cut_between_blocks(whole: bytes) -> bytes:
    """All but the last byte of the mark behind the last block."""
    return whole[:-1]


def overwrite_mark(whole: bytes) -> bytes:
    return whole[:-3] + b"xxx"


def overwrite_rows(whole: bytes) -> bytes:
    middle = len(whole) // 2
    return whole[:middle] + b"\xff" * 40 + whole[middle + 40 :]


def replace_by_text(whole: bytes) -> bytes:
    return b'{"id": "a"}'


@pytest.mark.parametrize(
    "damage", [cut_header, cut_block, cut_between_blocks, overwrite_mark, overwrite_rows, replace_by_text]
)
def test_an_avro_file_that_is_damaged_is_named_and_read_once_it_is_whole(
    spark: Any, topic: Topic, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    columns = tmp_path / "columns.avsc"
    columns.write_text(json.dumps(OLD))
    write_file(tmp_path / "in" / "1.avro", rows=2)
    assert topic.run_files(columns).rows_inserted == 2
    write_file(tmp_path / "in" / "2.avro", rows=3)
    damaged = tmp_path / "in" / "a file.avro"
    whole = write_file(damaged, rows=500)
    damaged.write_bytes(damage(whole))
    with pytest.raises(BadInput, match="bring it back whole") as caught:
        topic.run_files(columns)
    assert str(caught.value).startswith(f"{damaged} ")
    assert "\n" not in str(caught.value)
    assert caught.value.path == str(damaged)
    assert len(rows_in(spark, topic)) == 2
    damaged.write_bytes(whole)
    assert topic.run_files(columns).batches == 1
    assert len(rows_in(spark, topic)) == 500


def test_an_avro_file_that_cannot_tell_the_columns_is_named(topic: Topic, tmp_path: Path) -> None:
    damaged = tmp_path / "in" / "a file.avro"
    damaged.write_bytes(cut_header(write_file(damaged, rows=1)))
    with pytest.raises(BadInput, match=f"^{damaged} is no whole Avro file"):
        topic.run_files()


def test_a_file_in_a_codec_that_is_not_here_is_not_called_damaged(tmp_path: Path) -> None:
    """Spark writes Avro with snappy; where its reader fails for another reason, nothing is said of such a file."""
    said = {"avro.schema": json.dumps(OLD).encode(), "avro.codec": b"snappy"}
    start, end = tmp_path / "start", tmp_path / "snappy.avro"
    write_file(start, rows=1)
    with end.open("wb") as out:
        fastavro.schemaless_writer(out, source_files._HEADER, {"magic": b"Obj\1", "metadata": said, "mark": b"m" * 16})
        fastavro.schemaless_writer(out, source_files._BLOCK, {"rows": 1, "size": 3})
        out.write(b"xyz" + b"m" * 16)
    source_files.refuse_cut_off([start, end, tmp_path / "gone"])
    assert source_files.find_unreadable_file("org.apache.avro.AvroTypeException", [start, end]) is None
    end.write_bytes(end.read_bytes()[:-1])
    with pytest.raises(BadInput, match=f"^{end} is no whole Avro file"):
        source_files.refuse_cut_off([start, end])


def test_an_avro_file_without_rows_is_none(topic: Topic, tmp_path: Path) -> None:
    write_file(tmp_path / "in" / "1.avro", rows=3)
    write_file(tmp_path / "in" / "2.avro", rows=0)
    (tmp_path / "in" / "3.avro").touch()
    assert topic.run_files().rows_inserted == 3
