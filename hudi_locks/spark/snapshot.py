"""The table as one timeline shows it. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from hudi_locks.format import clustered_file_groups, merge_schemas
from hudi_locks.table import BaseFile, Table, latest_base_files, read_commit, read_first_key
from hudi_locks.timeline import Timeline

__all__ = ["Snapshot"]

_PREFIXED_KEYS_SINCE = 9
_SAMPLES = 8


@dataclass(frozen=True)
class Snapshot:
    """What a write builds on, or a read shows.

    Attributes:
        table: The table.
        timeline: Its instants at one moment.
    """

    table: Table
    timeline: Timeline

    @classmethod
    def load(cls, table: Table) -> Snapshot:
        """The table as it is now."""
        return cls(table, table.timeline())

    def base_files(self, partitions: Iterable[str] | None = None) -> list[BaseFile]:
        """Latest base file of each file group, of all partitions or of some."""
        return list(latest_base_files(self.table.storage, self.timeline, partitions=partitions))

    @cached_property
    def schema(self) -> pa.Schema | None:
        """The user's columns; None while nobody has written any."""
        return self.table.schema(self.timeline)

    def merge_schema(self, incoming: pa.Schema) -> pa.Schema:
        """The columns after a write of `incoming`.

        Raises:
            BadInput: A column changed its type or is missing.
        """
        return merge_schemas(self.schema if self.schema is not None else incoming, incoming)

    @cached_property
    def planned_groups(self) -> frozenset[tuple[str, str]]:
        """(partition path, file id) of what a pending clustering takes: a write there would meet its plan."""
        paths = [self.timeline.layout.path(i.as_requested()) for i in self.timeline.pending(("clustering",))]
        plans = (clustered_file_groups(self.table.storage.read(path) or b"", path) for path in paths)
        return frozenset(group for groups in plans for group in groups)

    @property
    def record_bytes(self) -> int | None:
        """What a row of the last commit that wrote rows takes on disk; None if that cannot be told."""
        for instant in reversed(self.timeline.completed_between("")):
            stats = read_commit(self.table.storage, self.timeline, requested=instant.requested).stats
            rows = sum(stat.num_writes for stat in stats)
            if rows:
                return max(1, sum(stat.file_size_bytes for stat in stats) // rows)
        return None

    def sample_keys(self, base_files: Sequence[BaseFile]) -> dict[BaseFile, str]:
        """A record key out of each of a few base files."""
        storage = self.table.storage
        sampled = base_files[:: max(1, len(base_files) // _SAMPLES)][:_SAMPLES]
        found = {file: read_first_key(storage.native(file.path)) for file in sampled}
        return {file: key for file, key in found.items() if key is not None}

    def has_composite_keys(self) -> bool:
        """Whether record keys are written `name:value,…`.

        One record key field with several partition fields is the JVM's trap: up to 1.0 its complex key generator wrote
        the bare value, since 1.1 (version 9) it writes `name:value`. The rows that are there decide, else the version.
        """
        config = self.table.config
        if len(config.record_key_fields) > 1 or len(config.partition_fields) < 2:
            return len(config.record_key_fields) > 1
        paths = (self.table.storage.native(file.path) for file in self.base_files())
        key = next(filter(None, map(read_first_key, paths)), None)
        if key is None:
            return config.version >= _PREFIXED_KEYS_SINCE
        return key.startswith(f"{config.record_key_fields[0]}:")
