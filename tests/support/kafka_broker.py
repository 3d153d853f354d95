"""A Kafka broker of one node, as a process of this machine, for tests of ingest jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from hudi_locks_conformance.servers.cache import fetch_maven, find_tool, run_tool
from hudi_locks_conformance.servers.kind import QUICK_JVM, Launch, ServerKind
from hudi_locks_conformance.servers.starting import find_free_port

__all__ = ["Kafka", "produce"]

_JARS: Final = ("org.apache.kafka:kafka_2.13:3.9.1",)
_CLUSTER: Final = "aHVkaS1sb2Nrcy10ZXN0cw"
_ANSWER_S: Final = 2.0


@dataclass(frozen=True)
class Kafka(ServerKind):
    """Kafka 3.9, broker and controller in one; topics are made when they are written to."""

    name: ClassVar[str] = "kafka"
    provider: ClassVar[str] = ""

    def fetch(self) -> None:
        """See `ServerKind.fetch`."""
        find_tool("java")
        fetch_maven("kafka", _JARS)

    def launch(self, folder: Path, port: int) -> Launch:
        """See `ServerKind.launch`."""
        settings = folder / "server.properties"
        if not settings.exists():
            settings.write_text(_write_settings(folder, port, find_free_port()))
            run_tool([*_java("kafka.tools.StorageTool"), "format", "-t", _CLUSTER, "-c", str(settings)], folder)
        return Launch([*_java("kafka.Kafka"), str(settings)])

    def is_ready(self, port: int) -> bool:
        """See `ServerKind.is_ready`."""
        try:
            return bool(AdminClient(self.options(port)).list_topics(timeout=_ANSWER_S).brokers)
        except KafkaException:
            return False

    def options(self, port: int) -> dict[str, str]:
        """See `ServerKind.options`."""
        return {"bootstrap.servers": f"127.0.0.1:{port}"}


def _java(main: str) -> list[str]:
    return [find_tool("java"), "-Xmx256m", *QUICK_JVM, "-cp", f"{fetch_maven('kafka', _JARS)}/*", main]


def _write_settings(folder: Path, port: int, controller: int) -> str:
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": folder / "data",
        "offsets.topic.replication.factor": 1,
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def produce(options: Mapping[str, str], topic: str, values: Iterable[bytes | None]) -> None:
    """Write messages, and return once the broker has them."""
    producer = Producer(dict(options))
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(60) == 0
