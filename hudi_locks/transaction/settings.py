"""A writer as transactions see it: its options, its table, and who it is."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from hudi_locks.config import Options, has_buckets, index_keys, is_lock_local, lock_keys, service_keys, write_keys
from hudi_locks.errors import ConfigError, UnsupportedTable
from hudi_locks.lock import Owner
from hudi_locks.storage import Storage, refuse_unwritable
from hudi_locks.timeline import TimelineLayout

__all__ = [
    "TransactionTable",
    "TransactionTableConfig",
    "WriterSettings",
    "name_this_process",
    "refuse_old",
    "refuse_unusable",
]

_LOCAL_SKEW_MS: Final = 1


class TransactionTableConfig(Protocol):
    """What transactions need of a table's settings."""

    @property
    def version(self) -> int:
        """Of the table."""

    @property
    def table_type(self) -> str:
        """COPY_ON_WRITE or MERGE_ON_READ."""

    @property
    def extra(self) -> Mapping[str, str]:
        """Its properties of no other use."""


class TransactionTable(Protocol):
    """What transactions need of a table; `hudi_locks.table.Table` is one."""

    @property
    def storage(self) -> Storage:
        """Its files."""

    @property
    def layout(self) -> TimelineLayout:
        """Of its timeline."""

    @property
    def config(self) -> TransactionTableConfig:
        """Its lasting settings."""


@dataclass(frozen=True)
class WriterSettings:
    """How transactions of one writer behave.

    Attributes:
        mode: `hoodie.write.concurrency.mode`, upper case.
        failed_writes_policy: `hoodie.clean.failed.writes.policy`, upper case; LAZY for several writers, whatever is
            given, as Hudi has it.
        heartbeat_interval_ms: Time between two heartbeats.
        heartbeat_tolerable_misses: After so many missed ones a writer counts as dead.
        foreign_writers: Whether JVM writers may write to the table too, as the table says.
        skew_ms: How far their clocks may differ from ours.
        drift_ms: How far any clock may differ from the store's.
        strategy: Conflict resolution strategy as written.
        unites_columns: Whether columns that concurrent writes change are compared and united.
        is_bucketed: Whether the writer finds file groups by a bucket index, by its options or else by the table.
        lock_provider: As written, for a person.
        fresh_key_groups: How many file groups of a record index by partition a partition gets that is new to it.
    """

    mode: str
    failed_writes_policy: str
    heartbeat_interval_ms: int
    heartbeat_tolerable_misses: int
    foreign_writers: bool
    skew_ms: int
    drift_ms: int
    strategy: str
    unites_columns: bool
    is_bucketed: bool
    lock_provider: str
    fresh_key_groups: int = 1

    @classmethod
    def of(cls, options: Mapping[str, object], table_properties: Mapping[str, object]) -> WriterSettings:
        """Read the options of a writer, and of the table whether it knows foreign writers.

        Raises:
            ConfigError: A value is malformed.
        """
        given, table = Options(options), Options(table_properties)
        mode = given.get_value(write_keys.CONCURRENCY_MODE).upper()
        policy = given.get_value(write_keys.FAILED_WRITES_CLEANER_POLICY).upper()
        return cls(
            mode=mode,
            failed_writes_policy="LAZY" if mode in write_keys.MULTI_WRITER_MODES else policy,
            heartbeat_interval_ms=given.get_value(write_keys.HEARTBEAT_INTERVAL_IN_MS),
            heartbeat_tolerable_misses=given.get_value(write_keys.HEARTBEAT_TOLERABLE_MISSES),
            foreign_writers=table.get_value(write_keys.FOREIGN_WRITERS),
            skew_ms=_choose_skew(given),
            drift_ms=given.get_value(write_keys.MAX_CLOCK_DRIFT_MS),
            strategy=given.get_value(lock_keys.CONFLICT_RESOLUTION_STRATEGY),
            unites_columns=given.get_value(write_keys.SCHEMA_CONFLICT_RESOLUTION_ENABLE),
            is_bucketed=has_buckets(given, table),
            lock_provider=given.find(lock_keys.PROVIDER) or "",
            fresh_key_groups=given.get_value(service_keys.PARTITION_INDEX_LEAST_GROUPS),
        )

    @property
    def heartbeat_limit_ms(self) -> int:
        """How old a heartbeat may be, ms."""
        return self.heartbeat_interval_ms * self.heartbeat_tolerable_misses

    @property
    def cleans_failed_writes(self) -> bool:
        """Whether failed writes of others are rolled back before a write begins.

        EAGER and LAZY do, and both leave alone whoever has a fresh heartbeat. JVM Hudi's EAGER rolls back everything
        that is pending, the writes of the living with it.
        """
        return self.failed_writes_policy != "NEVER"

    @property
    def is_non_blocking(self) -> bool:
        """Whether writers add to the same file groups without a conflict, and readers merge what they added."""
        return self.mode == write_keys.NON_BLOCKING

    @property
    def is_multi_writer(self) -> bool:
        """Whether several writers are meant to share the table, and a lock provider is required."""
        return self.mode in write_keys.MULTI_WRITER_MODES


def name_this_process() -> Owner:
    """This thread of this process, for others to read."""
    thread = threading.current_thread().name
    return Owner(uuid.uuid4().hex, host=socket.gethostname(), pid=os.getpid(), thread=thread)


def refuse_unusable(table: TransactionTable, settings: WriterSettings, *, has_lock: bool) -> None:
    """Whether transactions can be held on the table with these settings.

    Raises:
        ConfigError: Several writers without a lock provider; non-blocking ones on a table that does not log, is of
            version 6, or is without the bucket index.
        UnsupportedTable: The store does not keep what writers rest on.
    """
    refuse_unwritable(table.storage)
    if not has_lock and settings.is_multi_writer:
        key = lock_keys.PROVIDER.name
        raise ConfigError(f"{settings.mode} needs a lock: set {key}", key=key)
    if settings.is_non_blocking and table.layout.is_version_6:
        key = write_keys.CONCURRENCY_MODE.name
        message = f"{key}={settings.mode} needs table version 8 or later: before it, logs of several writers get mixed"
        raise ConfigError(f"{message} up; set {write_keys.OPTIMISTIC}, or upgrade the table", key=key)
    if settings.is_non_blocking and not (table.config.table_type == "MERGE_ON_READ" and settings.is_bucketed):
        key = write_keys.CONCURRENCY_MODE.name
        message = f"{key}={settings.mode} needs a MERGE_ON_READ table and {index_keys.INDEX_TYPE.name}=BUCKET, for"
        raise ConfigError(f"{message} writers add to the same file groups only by logs; this is none", key=key)


def refuse_old(layout: TimelineLayout, service: str) -> None:
    """Whether a table service is run here.

    Raises:
        UnsupportedTable: The table is of version 6; the message says who does it.
    """
    if layout.is_version_6:
        message = (
            f"{service} of a table of version 6 is left to JVM Hudi: let a JVM job do it, or upgrade the table, unless"
            " writers of Hudi 0.15 share it: hudi-locks upgrade PATH --to 9, or 8 for writers of Hudi 1.0"
        )
        raise UnsupportedTable(message, service=service)


def _choose_skew(options: Options) -> int:
    """As HoodieTimeGeneratorConfig infers it: a writer whose lock keeps out no other process is said to be alone."""
    is_given = options.has(write_keys.MAX_EXPECTED_CLOCK_SKEW_MS)
    skew_ms = options.get_value(write_keys.MAX_EXPECTED_CLOCK_SKEW_MS)
    return _LOCAL_SKEW_MS if is_lock_local(options) and not is_given else skew_ms
