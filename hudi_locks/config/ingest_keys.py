"""Keys of ingest jobs: where rows come from, and what columns they have."""

from __future__ import annotations

from hudi_locks.config.key import Key

SOURCE_ROOT = Key(
    "hoodie.streamer.source.dfs.root",
    str,
    None,
    "folder whose files an ingest job reads, new ones as they come",
    aliases=("hoodie.deltastreamer.source.dfs.root",),
    since="0.5.0",
)
KAFKA_TOPIC = Key(
    "hoodie.streamer.source.kafka.topic",
    str,
    None,
    "Kafka topic that an ingest job reads",
    aliases=("hoodie.deltastreamer.source.kafka.topic",),
    since="0.5.0",
)
CSV_HEADER = Key(
    "hoodie.streamer.csv.header",
    bool,
    False,
    "whether the first line of a CSV file names its columns",
    aliases=("hoodie.deltastreamer.csv.header",),
    since="0.6.0",
)
CSV_SEPARATOR = Key(
    "hoodie.streamer.csv.sep",
    str,
    ",",
    "what stands between two values of a CSV file",
    aliases=("hoodie.deltastreamer.csv.sep",),
    since="0.6.0",
)
SCHEMA_FILE = Key(
    "hoodie.streamer.schemaprovider.source.schema.file",
    str,
    None,
    "Avro schema file (.avsc) of the source's columns",
    aliases=("hoodie.deltastreamer.schemaprovider.source.schema.file",),
    since="0.5.0",
)
SCHEMA_REGISTRY_URL = Key(
    "hoodie.streamer.schemaprovider.registry.url",
    str,
    None,
    "address at which a schema registry gives the Avro schema of the source's columns",
    aliases=("hoodie.deltastreamer.schemaprovider.registry.url",),
    since="0.5.0",
)
TARGET_SCHEMA_FILE = Key(
    "hoodie.streamer.schemaprovider.target.schema.file",
    str,
    None,
    "Avro schema file of the table's columns; refused where they are not the source's",
    aliases=("hoodie.deltastreamer.schemaprovider.target.schema.file",),
    since="0.5.0",
)
TARGET_REGISTRY_URL = Key(
    "hoodie.streamer.schemaprovider.registry.targetUrl",
    str,
    None,
    "address of the Avro schema of the table's columns; refused where they are not the source's",
    aliases=("hoodie.deltastreamer.schemaprovider.registry.targetUrl",),
    since="0.5.0",
)
VALUE_DESERIALIZER = Key(
    "hoodie.streamer.source.kafka.value.deserializer.class",
    str,
    "io.confluent.kafka.serializers.KafkaAvroDeserializer",
    "Java class that reads Avro messages",
    aliases=("hoodie.deltastreamer.source.kafka.value.deserializer.class",),
    since="0.7.0",
    accepted=(
        "io.confluent.kafka.serializers.KafkaAvroDeserializer",
        "org.apache.hudi.utilities.deser.KafkaAvroSchemaDeserializer",
    ),
    refusal="messages are read without Java, in the form of a schema registry; leave it out",
)
