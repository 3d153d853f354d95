"""Hudi's classes of sources and schema providers, as far as an ingest job does what they do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hudi_locks.config import ingest_keys
from hudi_locks.config.key import Key
from hudi_locks.config.options import Options
from hudi_locks.errors import ConfigError

__all__ = ["SOURCES", "SourceKind", "check_schema_provider", "find_source"]


@dataclass(frozen=True)
class SourceKind:
    """A kind of source.

    Attributes:
        form: What it reads: Spark's name of a file format, or of the form of a Kafka message's value.
        hudi_class: Hudi's class, without its package.
        is_kafka: Whether it reads a topic, and not a folder.
        needs_schema: Whether its columns must be given.
    """

    form: str
    hudi_class: str
    is_kafka: bool = False
    needs_schema: bool = True


SOURCES: Final[Mapping[str, SourceKind]] = {
    "json": SourceKind("json", "JsonDFSSource"),
    "csv": SourceKind("csv", "CsvDFSSource"),
    "parquet": SourceKind("parquet", "ParquetDFSSource", needs_schema=False),
    "avro": SourceKind("avro", "AvroDFSSource", needs_schema=False),
    "kafka": SourceKind("json", "JsonKafkaSource", is_kafka=True),
    "avro_kafka": SourceKind("avro", "AvroKafkaSource", is_kafka=True, needs_schema=False),
}
"""By short name; Hudi's class names mean them too."""
_SOURCE_PACKAGES: Final = ("", "org.apache.hudi.utilities.sources", "com.uber.hoodie.utilities.sources")
_PROVIDERS: Final[Mapping[str, Key[str]]] = {
    "FilebasedSchemaProvider": ingest_keys.SCHEMA_FILE,
    "SchemaRegistryProvider": ingest_keys.SCHEMA_REGISTRY_URL,
}
_PROVIDER_PACKAGES: Final = (
    "",
    "org.apache.hudi.utilities.schema",
    "org.apache.hudi.utilities.deltastreamer",
    "org.apache.hudi.utilities.deltastreamer.schema",
    "com.uber.hoodie.utilities.schema",
)


def find_source(name: str) -> SourceKind:
    """The source that a short name means, or the name of Hudi's class with or without its package.

    Raises:
        ConfigError: It is none of `SOURCES`.
    """
    package, _, asked = name.rpartition(".")
    for short, source in SOURCES.items():
        is_class = asked.lower() == source.hudi_class.lower() and package in _SOURCE_PACKAGES
        if is_class or name.lower() == short:
            return source
    known = ", ".join(f"{short} ({source.hudi_class})" for short, source in SOURCES.items())
    message = f"source {name!r} is none of {known}; with IngestJob a Python program reads any stream that Spark has"
    raise ConfigError(message, source=name)


def check_schema_provider(name: str, options: Options) -> None:
    """Whether the class that is to tell the columns is one that we stand for, and has the key that it needs.

    Raises:
        ConfigError: It is another class, or lacks its key, or has the key of another one.
    """
    package, _, asked = name.rpartition(".")
    if asked not in _PROVIDERS or package not in _PROVIDER_PACKAGES:
        raise ConfigError(
            f"--schemaprovider-class {name} is not offered, only {' and '.join(_PROVIDERS)}: write the columns into an"
            f" Avro file that {ingest_keys.SCHEMA_FILE.name} names, or hand IngestJob a stream from a Python program",
            value=name,
        )
    key = _PROVIDERS[asked]
    if not options.find(key):
        raise ConfigError(f"--schemaprovider-class {name} needs {key.name}: {key.doc}", key=key.name)
    other = next(other for other in _PROVIDERS.values() if other is not key)
    if options.find(other):
        given = options.name_used(other)
        message = f"{given} is for another class than --schemaprovider-class {name}; leave one of the two out"
        raise ConfigError(message, key=given)
