"""Messages of a Kafka topic, and the rows in their values. Runs on the driver; Spark decodes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import StructType

from hudi_locks.config import Options, ingest_keys
from hudi_locks.errors import ConfigError
from hudi_locks.ingest.registry import Registry
from hudi_locks.ingest.schemas import find_schema_text, interpret
from hudi_locks.ingest.unreadable import MARKING, keep_sound, mark_corrupt
from hudi_locks.spark._compat import find_data_source, name_scala

__all__ = ["decode_avro", "decode_json", "kafka_options", "read_messages", "require_package"]

_OFFSETS: Final = {"earliest": "earliest", "latest": "latest", "none": "latest"}
_OURS: Final = ("hoodie.", "hudi_locks.", "schema.registry.")
_READERS: Final = ("key.deserializer", "value.deserializer", "enable.auto.commit", "interceptor.classes")
"""Keys of the Kafka client that Spark sets itself, and refuses."""
_HEAD: Final = 5
"""Bytes before the Avro data: zero, then the schema's id, the highest byte first."""
_END: Final = b"hudi_locks: end."
"""Put behind the Avro data of a message before it is read."""
_PLACE: Final = "message at topic {}, partition {}, offset {} "
_NO_OBJECT: Final = "is no JSON object of the table's columns and their types"
_UNFRAMED: Final = "is not of the form of a schema registry (a zero byte, the id of its schema in four, Avro data)"
_BROKEN: Final = (
    "is no row by the schema of its id %s: its Avro data is damaged, or of another schema, or lacks a column without"
    " default"
)


def read_messages(spark: SparkSession, options: Options, *, limit: int | None = None) -> DataFrame:
    """The stream of messages, as Spark's Kafka source gives them.

    Raises:
        ConfigError: No topic or broker is given, or Spark lacks its Kafka package.
    """
    topic = _require(options, ingest_keys.KAFKA_TOPIC.name, options.find(ingest_keys.KAFKA_TOPIC))
    _require(options, "bootstrap.servers", options.get("bootstrap.servers"))
    require_package(spark, "kafka", "spark-sql-kafka-0-10")
    reader = spark.readStream.format("kafka").options(**kafka_options(options)).option("subscribe", topic)
    return (reader if limit is None else reader.option("maxOffsetsPerTrigger", limit)).load()


def kafka_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options of Spark's Kafka source: the client's own keys, which have no `hoodie.` before them."""
    client = {name: value for name, value in options.items() if not name.startswith(_OURS) and name not in _READERS}
    begins = client.pop("auto.offset.reset", "latest")
    if begins not in _OFFSETS:
        raise ConfigError(f"auto.offset.reset={begins} is none of {', '.join(_OFFSETS)}", key="auto.offset.reset")
    return {"startingOffsets": _OFFSETS[begins], **{f"kafka.{name}": value for name, value in client.items()}}


def decode_json(messages: DataFrame, schema: StructType) -> DataFrame:
    """The rows of messages whose values are JSON objects.

    A value that is none, or has a value of another type than its column, ends the query; see `find_unreadable`.
    """
    row = F.from_json(F.col("value").cast("string"), mark_corrupt(schema), dict(MARKING)).alias("row")
    placed = messages.select("topic", "partition", "offset", row)
    return keep_sound(placed, schema, refusal=_refuse(_NO_OBJECT, "let a new job begin behind it"), of="row.")


def decode_avro(messages: DataFrame, options: Options) -> DataFrame:
    """The rows of messages whose values are Avro records in the form of a schema registry.

    Each is read by the schema of its writer, and has the columns of the schema that the options name, else of the
    newest one. A value of another form, of an unknown schema, or that is no row by its schema, ends the query; see
    `find_unreadable`.

    Raises:
        ConfigError: The registry does not answer, or Spark lacks its Avro package.
        BadInput: A table cannot have these columns.
    """
    require_package(messages.sparkSession, "avro", "spark-avro")
    registry = Registry.of_topic(options, options.get_value(ingest_keys.KAFKA_TOPIC))
    writers = registry.list_schemas()
    reader = find_schema_text(options) or list(writers.values())[-1]
    interpret(reader, registry.key)
    number = F.conv(F.hex(F.substring("value", 2, 4)), 16, 10).cast("long").alias("number")
    numbered = messages.select("topic", "partition", "offset", "value", number)
    decoded = numbered.select("topic", "partition", "offset", "number", _decode(writers, reader, registry.shown))
    row = F.when(F.col("message.end").eqNullSafe(F.lit(_END)), F.col("message.row"))
    row = row.otherwise(_refuse(_BROKEN, "let a new job begin behind it", F.col("number")))
    return decoded.select(row.alias("row")).select("row.*")


def _decode(writers: Mapping[int, str], reader: str, registry: str) -> Column:
    """The row of a message by the schema of its writer, and what stands behind it; see `_wrap`."""
    unknown = f"has the schema id %s, which is none of the {len(writers)} versions of {registry}"
    is_framed = F.coalesce((F.substring("value", 1, 1) == F.lit(b"\x00")) & (F.length("value") >= _HEAD), F.lit(False))
    found = F.when(~is_framed, _refuse(_UNFRAMED, "have its producer write so, or let a new job begin behind it"))
    body = F.concat(F.expr(f"substring(value, {_HEAD + 1})"), F.lit(_END))
    options = {"mode": "PERMISSIVE", "avroSchema": _wrap(reader)}
    for number, writer in writers.items():
        found = found.when(F.col("number") == number, from_avro(body, _wrap(writer), options))
    way_out = "start the job again once the id is one of the subject"
    return found.otherwise(_refuse(unknown, way_out, F.col("number"))).alias("message")


def _wrap(schema: str) -> str:
    """The schema of a record that holds what `schema` describes, and then the bytes of `_END`.

    A message is refused unless these bytes follow its row. Spark's strict mode does not say which message it could not
    read; its permissive mode gives a row of nulls, which a sound message may be too; and neither notices bytes that
    are left over, as where a message was written by a schema with more fields than that of its id.
    """
    end = {"type": "fixed", "name": "_hudi_locks_end", "size": len(_END)}
    fields = [{"name": "row", "type": json.loads(schema)}, {"name": "end", "type": end}]
    return json.dumps({"type": "record", "name": "_hudi_locks_message", "fields": fields})


def _refuse(what: str, way_out: str, *facts: Column) -> Column:
    """An expression that ends the query, naming the message."""
    form = _PLACE.replace("{}", "%s") + f"{what}; {way_out}".replace("%s", "%s" if facts else "%%s")
    return F.raise_error(F.format_string(form, F.col("topic"), F.col("partition"), F.col("offset"), *facts))


def _require(options: Mapping[str, str], name: str, value: str | None) -> str:
    if not value:
        raise ConfigError(f"the source needs {name}, which is not among the {len(options)} options given", key=name)
    return value


def require_package(spark: SparkSession, form: str, package: str) -> None:
    """Whether Spark has what it brings along in a package of its own.

    Raises:
        ConfigError: It has not; says with which words it is started.
    """
    try:
        find_data_source(spark, form)
    except AnalysisException as error:
        wanted = f"org.apache.spark:{package}_{name_scala(spark)}:{spark.version}"
        message = f"Spark has no {form.title()} source here: start it with --packages {wanted}"
        raise ConfigError(message, source=form, package=wanted) from error
