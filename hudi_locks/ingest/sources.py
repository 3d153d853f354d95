"""What an ingest job reads: files of a folder or messages of a Kafka topic, as a stream. Runs on the driver."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamReader
from pyspark.sql.types import StructType

from hudi_locks.config import SOURCES, Options, SourceKind, find_source, ingest_keys
from hudi_locks.config.read_keys import LENIENT_KEYS
from hudi_locks.errors import ConfigError
from hudi_locks.ingest.messages import decode_avro, decode_json, read_messages, require_package
from hudi_locks.ingest.schemas import find_schema_text
from hudi_locks.ingest.source_files import find_unreadable_file
from hudi_locks.ingest.unreadable import MARKING, keep_sound, mark_corrupt, refuse_line

__all__ = ["SOURCES", "open_source"]

_BINARY: Final = ("avro", "parquet")
_NAMED: Final = re.compile(r"Could not read file: file:([^\n]+)")
"""What Spark says of a file of this machine whose columns it could not tell."""
_LENIENT: Final = tuple(f"spark.sql.files.{key.name}" for key in LENIENT_KEYS)
_BYTES_SINCE: Final = 4
"""The first Spark that counts the bytes of a batch of files."""


def open_source(
    spark: SparkSession,
    name: str,
    options: Options,
    *,
    schema: StructType | None,
    files_per_batch: int | None = None,
    source_limit: int | None = None,
) -> DataFrame:
    """The stream of rows.

    Args:
        spark: The session.
        name: One of `SOURCES`, or the name of Hudi's class, with or without its package.
        options: Where to read, under `hoodie.streamer.source.*`; keys without `hoodie.` are the Kafka client's.
        schema: Of the rows; for Parquet and Avro files it may be left to a file that is there, for Avro messages to
            their registry.
        files_per_batch: How many files one batch takes at most.
        source_limit: How many messages one batch takes at most; of files how many bytes, from Spark 4 on.

    Raises:
        ConfigError: The source is unknown, or lacks what it needs.
        BadInput: The Avro file that is to tell the columns is damaged.

    A session that is told to pass over damaged or missing files is obeyed, with a warning, where files are read.
    """
    source = find_source(name)
    if schema is None and source.needs_schema:
        raise ConfigError(
            f"a source of kind {source.hudi_class} needs its columns: set {ingest_keys.SCHEMA_FILE.name} or"
            f" {ingest_keys.SCHEMA_REGISTRY_URL.name}",
            source=name,
        )
    if not source.is_kafka:
        return _read_files(spark, source, options, schema, _limit_files(spark, files_per_batch, source_limit))
    if files_per_batch is not None:
        raise ConfigError("--files-per-batch is for files; of a topic --source-limit bounds a batch", source=name)
    messages = read_messages(spark, options, limit=source_limit)
    return decode_avro(messages, options) if source.form == "avro" else decode_json(messages, schema or StructType())


def _limit_files(spark: SparkSession, files: int | None, size: int | None) -> dict[str, int]:
    if size is None:
        return {} if files is None else {"maxFilesPerTrigger": files}
    if files is not None:
        raise ConfigError("--files-per-batch and --source-limit both bound a batch; leave one of them out")
    if int(spark.version.partition(".")[0]) < _BYTES_SINCE:
        message = (
            f"--source-limit {size} is bytes of files, which Spark {spark.version} cannot count; use --files-per-batch"
        )
        raise ConfigError(message, value=size)
    return {"maxBytesPerTrigger": size}


def _read_files(
    spark: SparkSession, source: SourceKind, options: Options, schema: StructType | None, limits: dict[str, int]
) -> DataFrame:
    folder = options.find(ingest_keys.SOURCE_ROOT)
    if not folder:
        key = ingest_keys.SOURCE_ROOT.name
        raise ConfigError(f"the source needs {key}, which is not among the {len(options)} options given", key=key)
    if source.form == "avro":
        require_package(spark, "avro", "spark-avro")
    _warn_of_lenience(spark, folder)
    schema = schema if schema is not None else _infer_schema(spark, source, folder)
    reader = _add_options(spark.readStream.format(source.form), source, options)
    reader = reader.options(**limits)
    if source.form in _BINARY:
        return reader.schema(schema).load(folder)
    rows = reader.options(**MARKING).schema(mark_corrupt(schema)).load(folder)
    return keep_sound(rows, schema, refusal=refuse_line())


def _warn_of_lenience(spark: SparkSession, folder: str) -> None:
    """A batch that lacks the rows of a file counts as read: no later one brings them."""
    if lenient := [name for name in _LENIENT if spark.conf.get(name) == "true"]:
        message = (
            f"{' and '.join(lenient)} of the session: Spark passes over such files of {folder}, and no later batch"
            " brings their rows. Set it to false to end the job instead, with the name of the file"
        )
        warnings.warn(message, UserWarning, stacklevel=4)


def _infer_schema(spark: SparkSession, source: SourceKind, folder: str) -> StructType:
    try:
        return spark.read.format(source.form).load(folder).schema
    except (PySparkException, Py4JError) as error:
        damaged = find_unreadable_file(str(error), [Path(named) for named in _NAMED.findall(str(error))])
        if damaged is None:
            raise
        raise damaged from error


def _add_options(reader: DataStreamReader, source: SourceKind, options: Options) -> DataStreamReader:
    if source.form == "csv":
        header, separator = options.get_value(ingest_keys.CSV_HEADER), options.get_value(ingest_keys.CSV_SEPARATOR)
        reader = reader.options(header=str(header).lower(), sep=separator, enforceSchema="false")
    if source.form == "avro" and (text := find_schema_text(options)):
        reader = reader.option("avroSchema", text)
    return reader.option("mode", "FAILFAST") if source.form == "avro" else reader
