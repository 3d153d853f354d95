"""The lock services on which a soak runs, and how a writer reaches them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from hudi_locks_conformance.servers import KINDS, start_server

__all__ = ["LOCKS", "LockService", "describe_lock", "describe_service", "run_service", "start_lock"]

_PROVIDER: Final = "hoodie.write.lock.provider"
_SHORT: Final[Mapping[str, Mapping[str, str]]] = {
    "zookeeper": {"hoodie.write.lock.zookeeper.session_timeout_ms": "2000"},
    "versitygw": {
        "hoodie.write.lock.storage.validity.timeout.secs": "10",
        "hoodie.write.lock.storage.renew.interval.secs": "1",
    },
}
_LEASES_S: Final[Mapping[str, float]] = {"filesystem": 60.0, "zookeeper": 2.0, "versitygw": 10.5}
LOCKS: Final = tuple(_LEASES_S)
"""What `--lock` may name; all but the first are servers of the conformance kit."""


@dataclass(frozen=True)
class LockService:
    """One that runs.

    Attributes:
        options: With which a writer reaches it.
        lease_s: How long the lock of a dead holder stands.
    """

    options: Mapping[str, str]
    lease_s: float


@contextmanager
def run_service(name: str, path: str) -> Iterator[LockService]:
    """A lock service for the table at `path`, until the end of the block.

    Raises:
        ServerUnavailable: This machine lacks a tool.
    """
    if name == "filesystem":
        expiring = {"hoodie.base.path": path, "hoodie.write.lock.filesystem.expire": "1"}
        yield LockService({_PROVIDER: name, **expiring}, _LEASES_S[name])
        return
    with start_server(KINDS[name]) as server:
        yield describe_service(name, server.options)


def describe_service(name: str, options: Mapping[str, str]) -> LockService:
    """One that was started elsewhere, with the options of its server."""
    return LockService(describe_lock(name, options), _LEASES_S[name])


def describe_lock(name: str, options: Mapping[str, str]) -> Mapping[str, str]:
    """With what a writer reaches a lock service, given the options of its server."""
    provider = KINDS[name].provider if name in KINDS else name
    return {_PROVIDER: provider, **options, **_SHORT.get(name, {})}


@contextmanager
def start_lock(name: str) -> Iterator[Mapping[str, str]]:
    """Any service of the conformance kit, until the end of the block: its options, none for the file system.

    Raises:
        ServerUnavailable: This machine lacks a tool.
    """
    if name not in KINDS:
        yield {}
        return
    with start_server(KINDS[name]) as server:
        yield server.options
