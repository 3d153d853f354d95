"""Jobs with the command line of Hudi Streamer, each a process of its own: Avro files, and topics of a real broker."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from avro_session import fetch_packages
from hudi_locks_conformance.servers import ServerUnavailable, start_server
from schema_registry import SchemaRegistry

from hudi_locks.config import Options
from hudi_locks.errors import ConfigError
from hudi_locks.ingest.registry import Registry
from hudi_locks.spark import HoodieTable

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("streamer")]

SOURCES = "org.apache.hudi.utilities.sources"
SCHEMAS = "org.apache.hudi.utilities.schema"
ROOT = "hoodie.streamer.source.dfs.root"
URL = "hoodie.streamer.schemaprovider.registry.url"
SCHEMA_FILE = "hoodie.streamer.schemaprovider.source.schema.file"
OLD: dict[str, Any] = {
    "type": "record",
    "name": "trip",
    "fields": [{"name": "id", "type": "string"}, {"name": "ts", "type": "long"}],
}
NEW: dict[str, Any] = {**OLD, "fields": [*OLD["fields"], {"name": "note", "type": "string", "default": "none"}]}
SUBJECT = "trips-value"
IDS = {7: OLD, 70_000: NEW}
"""As a registry numbers them: over all subjects."""
PROPERTIES = """\
hoodie.datasource.write.recordkey.field=id
hoodie.upsert.shuffle.parallelism=2
hoodie.bulkinsert.shuffle.parallelism=2
hoodie.insert.shuffle.parallelism=2
"""


@pytest.fixture(scope="session")
def jars() -> str:
    """Spark's packages for Avro and Kafka, of the Spark that runs, and what it has not itself."""
    try:
        return fetch_packages("spark-avro", "spark-sql-kafka-0-10")
    except ServerUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def broker() -> Iterator[dict[str, str]]:
    """How a Kafka client reaches a broker of ours."""
    from kafka_broker import Kafka

    try:
        server = start_server(Kafka())
    except ServerUnavailable as error:
        pytest.skip(str(error))
    yield server.options
    server.stop()


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    """A schema registry whose subject trips-value has had the schemas of IDS."""
    with SchemaRegistry({SUBJECT: IDS}).serving() as made:
        yield made


class Streamer:
    """Runs jobs into one table, with a properties file."""

    def __init__(self, folder: Path, jars: str) -> None:
        self.folder = folder
        self.path = str(folder / "table")
        self._jars = jars

    def set_properties(self, **keys: str) -> None:
        (self.folder / "base.properties").write_text(PROPERTIES)
        lines = [f"{name.replace('__', '.')}={value}\n" for name, value in keys.items()]
        (self.folder / "job.properties").write_text("include=base.properties\n" + "".join(lines))

    def start(self, *words: str) -> subprocess.CompletedProcess[str]:
        job = [
            *("ingest", "--props", f"file://{self.folder}/job.properties", "--target-table", "trips"),
            *("--target-base-path", f"file:\\/\\/{self.path}", "--source-ordering-field", "ts"),
            *("--table-type", "COPY_ON_WRITE", "--json", "--spark-master", "local[2]", *words),
        ]
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_SUBMIT_ARGS": f"--jars {self._jars} --conf spark.ui.enabled=false pyspark-shell",
        }
        run = [sys.executable, "-c", "from hudi_locks.cli import main; main()", *job]
        return subprocess.run(run, env=environment, capture_output=True, text=True, timeout=600, check=False)

    def run(self, *words: str) -> dict[str, Any]:
        done = self.start(*words)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return found


@pytest.fixture
def streamer(tmp_path: Path, jars: str) -> Streamer:
    return Streamer(tmp_path, jars)


def write_avro(file: Path, schema: dict[str, Any], *rows: dict[str, Any]) -> None:
    file.parent.mkdir(exist_ok=True)
    with file.open("wb") as out:
        fastavro.writer(out, schema, rows)


def rows_in(spark: Any, streamer: Streamer, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in HoodieTable.load(spark, streamer.path).read().select(*columns).collect())


def test_avro_files_of_older_and_newer_writers_become_rows(spark: Any, streamer: Streamer) -> None:
    (streamer.folder / "trip.avsc").write_text(json.dumps(NEW))
    write_avro(streamer.folder / "in" / "1.avro", OLD, {"id": "a", "ts": 1}, {"id": "b", "ts": 1})
    write_avro(streamer.folder / "in" / "2.avro", NEW, {"id": "b", "ts": 2, "note": "new"})
    file = f"file://{streamer.folder}/trip.avsc"
    streamer.set_properties(**{ROOT: f"file://{streamer.folder}/in", SCHEMA_FILE: file})
    said = streamer.run(
        *("--source-class", f"{SOURCES}.AvroDFSSource", "--schemaprovider-class", f"{SCHEMAS}.FilebasedSchemaProvider"),
        *("--hoodie-conf", f"hoodie.streamer.schemaprovider.target.schema.file={file}"),
    )
    assert (said["batches"], said["rows_inserted"]) == (1, 2)
    assert rows_in(spark, streamer, "id", "ts", "note") == [("a", 1, "none"), ("b", 2, "new")]
    write_avro(streamer.folder / "in" / "3.avro", NEW, {"id": "c", "ts": 1, "note": "x"})
    (streamer.folder / "job.properties").write_text(f"include=base.properties\n{ROOT}={streamer.folder}/in\n")
    assert streamer.run("--source-class", "avro")["rows_inserted"] == 1


def test_a_topic_of_json_is_read_in_batches_and_read_on(spark: Any, streamer: Streamer, broker: dict[str, str]) -> None:
    from kafka_broker import produce

    (streamer.folder / "trip.avsc").write_text(json.dumps(OLD))
    produce(broker, "json-trips", [json.dumps({"id": name, "ts": 1}).encode() for name in "abc"])
    topic = {"hoodie.streamer.source.kafka.topic": "json-trips", "auto.offset.reset": "earliest", "group.id": "g"}
    streamer.set_properties(**broker, **topic, **{SCHEMA_FILE: str(streamer.folder / "trip.avsc")})
    words = ("--source-class", f"{SOURCES}.JsonKafkaSource", "--source-limit", "2", "--op", "UPSERT")
    said = streamer.run(*words)
    assert (said["batches"], said["rows_inserted"]) == (2, 3)
    produce(broker, "json-trips", [b'{"id": "a", "ts": 2}'])
    said = streamer.run(*words)
    assert (said["batches"], said["rows_updated"]) == (1, 1)
    assert rows_in(spark, streamer, "id", "ts") == [("a", 2), ("b", 1), ("c", 1)]


def test_a_topic_of_avro_is_read_by_the_schema_of_each_writer(
    spark: Any, streamer: Streamer, broker: dict[str, str], registry: SchemaRegistry
) -> None:
    from kafka_broker import produce

    old = registry.encode(SUBJECT, 7, {"id": "a", "ts": 1})
    new = registry.encode(SUBJECT, 70_000, {"id": "b", "ts": 1, "note": "new"})
    produce(broker, "trips", [old, new])
    keys = {URL: registry.url_of(SUBJECT), "schema.registry.url": registry.url}
    topic = {"hoodie.streamer.source.kafka.topic": "trips", "auto.offset.reset": "earliest"}
    streamer.set_properties(**broker, **topic, **keys)
    words = (
        *("--source-class", f"{SOURCES}.AvroKafkaSource", "--retry-interval-seconds", "3600"),
        *("--schemaprovider-class", f"{SCHEMAS}.SchemaRegistryProvider"),
    )
    assert streamer.run(*words, "--op", "BULK_INSERT")["rows_inserted"] == 2
    found = [("a", 1, "none"), ("b", 1, "new")]
    assert rows_in(spark, streamer, "id", "ts", "note") == found
    produce(broker, "trips", [old, struct.pack(">bI", 0, 8) + old[5:]])
    _expect_end(streamer.start(*words), "topic trips, partition 0, offset 3 has the schema id 8", "start the job again")
    assert rows_in(spark, streamer, "id", "ts", "note") == found


NIGHTLY = pytest.mark.nightly


@pytest.mark.parametrize(
    "value", [b'{"id": "a", "ts": 1}', *(pytest.param(value, marks=NIGHTLY) for value in (b"", b"\0\0\0", None))]
)
def test_a_value_of_another_form_ends_the_job_at_once(
    streamer: Streamer, broker: dict[str, str], registry: SchemaRegistry, value: bytes | None
) -> None:
    from kafka_broker import produce

    topic = f"other-{len(value) if value is not None else 'none'}"
    produce(broker, topic, [registry.encode(SUBJECT, 7, {"id": "a", "ts": 1}), value])
    keys = {"hoodie.streamer.source.kafka.topic": topic, "auto.offset.reset": "earliest"}
    streamer.set_properties(**broker, **keys, **{URL: registry.url_of(SUBJECT)})
    done = streamer.start("--source-class", "AvroKafkaSource", "--retry-interval-seconds", "3600")
    _expect_end(done, f"topic {topic}, partition 0, offset 1 is not of the form of a schema registry", "new job")


@pytest.mark.parametrize("words", [(), pytest.param(("--disable-compaction",), marks=NIGHTLY)])
def test_a_merge_on_read_table_is_compacted_unless_told_otherwise(
    spark: Any, streamer: Streamer, words: tuple[str, ...]
) -> None:
    (streamer.folder / "trip.avsc").write_text(json.dumps(OLD))
    (streamer.folder / "in").mkdir()
    for number in range(6):
        (streamer.folder / "in" / f"{number}.json").write_text(json.dumps({"id": "a", "ts": number}))
    keys = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    keys |= {ROOT: f"{streamer.folder}/in", SCHEMA_FILE: str(streamer.folder / "trip.avsc")}
    streamer.set_properties(**keys)
    said = streamer.run("--table-type", "MERGE_ON_READ", "--files-per-batch", "1", *words)
    assert said["batches"] == 6
    table = HoodieTable.load(spark, streamer.path)
    actions = {instant.action for instant in table.table.timeline().completed()}
    assert ("commit" in actions) == (not words)
    assert rows_in(spark, streamer, "id", "ts") == [("a", 5)]


def _expect_end(done: subprocess.CompletedProcess[str], *said: str) -> None:
    assert done.returncode == 1, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("error: message at topic ")
    assert [text for text in said if text not in last] == []


@pytest.mark.parametrize(
    ("keys", "url"),
    [
        ({"schema.registry.url": "http://a:1/, http://b:2"}, "http://a:1/subjects/t-value"),
        ({URL: "http://a:1/x/subjects/other/versions/3"}, "http://a:1/x/subjects/other"),
        ({URL: "http://a:1/subjects/o/versions/latest", "schema.registry.url": "http://b"}, "http://b/subjects/o"),
    ],
)
def test_a_subject_is_found_by_either_key(keys: dict[str, str], url: str) -> None:
    assert Registry.of_topic(Options(keys), "t").url == url


def test_a_registry_that_gives_no_schemas_is_one_sentence_without_the_password(registry: SchemaRegistry) -> None:
    with pytest.raises(ConfigError, match="HTTPError"):
        Registry.of_topic(Options({"schema.registry.url": registry.url}), "unknown").list_schemas()
    address = registry.url.replace("//", "//ada:geheim@")
    assert list(Registry.of_topic(Options({"schema.registry.url": address}), "trips").list_schemas()) == list(IDS)
    with pytest.raises(ConfigError) as caught:
        Registry.of_topic(Options({"schema.registry.url": address}), "unknown").list_schemas()
    assert "geheim" not in str(caught.value)
    with pytest.raises(ConfigError, match="need the registry"):
        Registry.of_topic(Options({}), "t")
    with pytest.raises(ConfigError, match="is not of the form http"):
        Registry.of_topic(Options({URL: "http://a/b"}), "t")
