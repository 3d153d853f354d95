"""Real lock services for tests, and programs of others that tests talk to; fetched when they are asked for."""

from hudi_locks_conformance.servers.cache import ServerUnavailable, compile_java, fetch_maven, find_tool
from hudi_locks_conformance.servers.jvm_bundle import fetch_bundle, fetch_s3a
from hudi_locks_conformance.servers.kind import QUICK_JVM, Container, Launch, ServerKind
from hudi_locks_conformance.servers.kinds import KINDS
from hudi_locks_conformance.servers.local import LocalProcess, LocalServer, started_processes
from hudi_locks_conformance.servers.starting import Server, find_free_port, start_server
from hudi_locks_conformance.servers.zookeeper import ZooKeeper, read_mode, start_ensemble

__all__ = [
    "KINDS",
    "QUICK_JVM",
    "Container",
    "Launch",
    "LocalProcess",
    "LocalServer",
    "Server",
    "ServerKind",
    "ServerUnavailable",
    "ZooKeeper",
    "compile_java",
    "fetch_bundle",
    "fetch_maven",
    "fetch_s3a",
    "find_free_port",
    "find_tool",
    "read_mode",
    "start_ensemble",
    "start_server",
    "started_processes",
]
