"""What an ingest job reads: files of a folder or messages of a Kafka topic, as a stream. Runs on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from hudi_locks.config import Options, ingest_keys
from hudi_locks.errors import ConfigError

__all__ = ["SOURCES", "open_source"]


@dataclass(frozen=True)
class _Source:
    """A kind of source: Spark's name of its format, and Hudi's class."""

    form: str
    hudi_class: str
    needs_schema: bool = True


SOURCES: Final[Mapping[str, _Source]] = {
    "json": _Source("json", "JsonDFSSource"),
    "csv": _Source("csv", "CsvDFSSource"),
    "parquet": _Source("parquet", "ParquetDFSSource", needs_schema=False),
    "kafka": _Source("kafka", "JsonKafkaSource"),
}
"""By short name; Hudi's class names mean them too."""
_STRICT: Final = {"mode": "FAILFAST"}
"""A line that is no row of these columns ends the batch, instead of becoming a row of nulls."""
_OFFSETS: Final = {"earliest": "earliest", "latest": "latest", "none": "latest"}


def open_source(
    spark: SparkSession, name: str, options: Options, *, schema: StructType | None, files_per_batch: int | None = None
) -> DataFrame:
    """The stream of rows.

    Args:
        spark: The session.
        name: One of `SOURCES`, or the name of Hudi's class, with or without its package.
        options: Where to read, under `hoodie.streamer.source.*`; keys without `hoodie.` are the Kafka client's.
        schema: Of the rows; for Parquet it may be left to a file that is there.
        files_per_batch: How many files one batch takes at most.

    Raises:
        ConfigError: The source is unknown, or lacks what it needs.
    """
    source = _find(name)
    if schema is None and source.needs_schema:
        raise ConfigError(
            f"a source of kind {source.form} needs its columns: set {ingest_keys.SCHEMA_FILE.name} or"
            f" {ingest_keys.SCHEMA_REGISTRY_URL.name}",
            source=name,
        )
    if source.form == "kafka":
        return _read_kafka(spark, options, schema or StructType())
    return _read_files(spark, source.form, options, schema, files_per_batch)


def _find(name: str) -> _Source:
    asked = name.rpartition(".")[2].lower()
    for short, source in SOURCES.items():
        if asked in (short, source.hudi_class.lower()):
            return source
    known = ", ".join(f"{short} ({source.hudi_class})" for short, source in SOURCES.items())
    raise ConfigError(f"source {name!r} is none of {known}", source=name)


def _read_files(
    spark: SparkSession, form: str, options: Options, schema: StructType | None, files_per_batch: int | None
) -> DataFrame:
    folder = _require(options, ingest_keys.SOURCE_ROOT.name, options.find(ingest_keys.SOURCE_ROOT))
    reader = spark.readStream.format(form)
    if form != "parquet":
        reader = reader.options(**_STRICT)
    if form == "csv":
        header, separator = options.get_value(ingest_keys.CSV_HEADER), options.get_value(ingest_keys.CSV_SEPARATOR)
        reader = reader.options(header=str(header).lower(), sep=separator, enforceSchema="false")
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    schema = schema if schema is not None else spark.read.format(form).load(folder).schema
    return reader.schema(schema).load(folder)


def _read_kafka(spark: SparkSession, options: Options, schema: StructType) -> DataFrame:
    topic = _require(options, ingest_keys.KAFKA_TOPIC.name, options.find(ingest_keys.KAFKA_TOPIC))
    _require(options, "bootstrap.servers", options.get("bootstrap.servers"))
    reader = spark.readStream.format("kafka").options(**kafka_options(options)).option("subscribe", topic)
    try:
        messages = reader.load()
    except AnalysisException as error:
        package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}"
        raise ConfigError(
            f"Spark has no Kafka source here: start it with --packages {package}", source="kafka"
        ) from error
    rows = messages.select(F.from_json(F.col("value").cast("string"), schema, dict(_STRICT)).alias("row"))
    return rows.select("row.*")


def kafka_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options of Spark's Kafka source: the client's own keys, which have no `hoodie.` before them."""
    client = {name: value for name, value in options.items() if not name.startswith(("hoodie.", "hudi_locks."))}
    begins = client.pop("auto.offset.reset", "latest")
    if begins not in _OFFSETS:
        raise ConfigError(f"auto.offset.reset={begins} is none of {', '.join(_OFFSETS)}", key="auto.offset.reset")
    return {"startingOffsets": _OFFSETS[begins], **{f"kafka.{name}": value for name, value in client.items()}}


def _require(options: Mapping[str, str], name: str, value: str | None) -> str:
    if not value:
        raise ConfigError(f"the source needs {name}, which is not among the {len(options)} options given", key=name)
    return value
