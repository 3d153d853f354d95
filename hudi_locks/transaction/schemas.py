"""Columns that concurrent writes changed: both changes stay, unless they contradict each other.

JVM Hudi lets the later of two such writes fail (SchemaConflictResolutionStrategy, since 1.0); columns that both only
added can be united instead, since readers take a column that a file lacks for null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from hudi_locks.format import CommitMetadata, Instant, interpreting
from hudi_locks.storage import Storage
from hudi_locks.timeline import Timeline

__all__ = ["UnitedSchema", "find_schema", "unite_schemas"]


@dataclass(frozen=True)
class UnitedSchema:
    """The columns after both writes.

    Attributes:
        schema: Avro JSON.
        clashes: Columns that the two writes changed in different ways; `schema` is of no use if there are any.
    """

    schema: str
    clashes: tuple[str, ...] = ()


def unite_schemas(before: str | None, now: str | None, *, ours: str) -> UnitedSchema:
    """The columns after a write with the columns `ours` is published on a table that went from `before` to `now`.

    Args:
        before: Avro JSON of the columns that the write began with; None if there were none.
        now: Of the columns that the table has at its publish.
        ours: Of the columns that it wrote.
    """
    if now is None or now == before:
        return UnitedSchema(ours)
    old, present, written = _fields(before), _fields(now), _fields(ours)
    clashes = tuple(name for name in written if _is_clash(old.get(name), present.get(name), written[name]))
    kept = [written.get(name, field) if field == old.get(name) else field for name, field in present.items()]
    added = [field for name, field in written.items() if name not in present]
    return UnitedSchema(json.dumps(json.loads(ours) | {"fields": kept + added}), clashes)


def find_schema(storage: Storage, timeline: Timeline) -> tuple[str | None, Instant | None]:
    """The columns that the commit which completed last recorded, and that commit; (None, None) if none did.

    A commit that was archived since the timeline was loaded is passed over: archival leaves recent commits alone.

    Raises:
        DamagedTable: It cannot be read.
    """
    for instant in reversed(timeline.completed_between("")):
        data = storage.read(timeline.paths[instant])
        schema = CommitMetadata.decode(data, timeline.paths[instant]).schema if data is not None else None
        if schema is not None:
            with interpreting("Avro schema", timeline.paths[instant]):
                _fields(schema)
            return schema, instant
    return None, None


def _fields(schema: str | None) -> Mapping[str, Any]:
    return _parse_fields(schema or "{}")


@lru_cache(maxsize=16)
def _parse_fields(schema: str) -> Mapping[str, Any]:
    """Each publish meets the columns of the one before."""
    return MappingProxyType({field["name"]: field for field in json.loads(schema).get("fields", [])})


def _is_clash(old: Any, present: Any, written: Any) -> bool:
    """Whether both sides changed a column since `old`, and not to the same."""
    return present is not None and present not in (old, written) and written != old
