"""What a write owes a table that ALTER TABLE changed: its files and its commit go by the newest version of the columns.

As JVM Hudi does with `hoodie.schema.on.read.enable`, whatever a writer of this package was told: a commit that does not
say `latest_schema` would have JVM readers, and compactions, take every file for one of the columns of today.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from hudi_locks.config import table_keys
from hudi_locks.errors import UnsupportedTable, WriteAborted
from hudi_locks.format import MetadataPartition
from hudi_locks.format.column_versions import ColumnVersion, can_widen, show_kind
from hudi_locks.storage import Storage
from hudi_locks.table.altered_columns import NEWEST_COLUMNS, SchemaHistory
from hudi_locks.table.config import TableConfig

__all__ = ["check_altered", "choose_history", "evolve_columns", "list_key_columns", "tell_columns"]

_STATISTICS: Final = (MetadataPartition.COLUMN_STATS.value, MetadataPartition.PARTITION_STATS.value)
_COPY: Final = "write to it with JVM Hudi, or copy it to a new table"
_SOURCES: Final = table_keys.BOOTSTRAP_BASE_PATH.name
_BOOTSTRAPPED: Final = f"it was bootstrapped, from sources that have the columns of that time; {_COPY}"
_DROP: Final = "hudi-locks metadata drop PATH --part"


def choose_history(config: TableConfig, found: SchemaHistory, schema: pa.Schema | None) -> SchemaHistory | None:
    """The history by which a table is read and written; None where its columns are where their names say.

    Args:
        config: Of the table.
        found: What is there.
        schema: Its columns as its newest commit has them; None for none yet.

    Raises:
        UnsupportedTable: It was bootstrapped, and its columns have other names and types than its sources.
    """
    if found.changes:
        if config.extra.get(_SOURCES):
            raise UnsupportedTable(f"ALTER TABLE changed the columns of a table, and {_BOOTSTRAPPED}", key=_SOURCES)
        return found
    is_kept = schema is not None and not [*_find_differences(found.newest, schema)]
    return found if is_kept else None


def check_altered(storage: Storage, config: TableConfig, history: SchemaHistory, schema: pa.Schema | None) -> None:
    """Refuse what could not be written so that everybody reads it rightly.

    Args:
        storage: Of the table.
        config: Of the table.
        history: Of its columns.
        schema: See `choose_history`.

    Raises:
        UnsupportedTable: It is named, with the way out.
    """
    if not history.changes:
        return
    history.find_names()
    if reasons := [*_find_differences(history.newest, schema), *_find_limits(config, history)]:
        changed = "; ".join(history.changes)
        message = f"{storage.base}: ALTER TABLE changed its columns ({changed}), and it is not written: {reasons[0]}"
        raise UnsupportedTable(message, path=history.path)


def list_key_columns(config: TableConfig) -> frozenset[str]:
    """Columns that decide where a row is, and which row wins."""
    rule = config.merge_rule
    return frozenset((*config.record_key_fields, *config.partition_fields, *rule.deciding, *rule.precombine))


def tell_columns(history: SchemaHistory, schema: pa.Schema, *, instant: str, table_version: int) -> dict[str, str]:
    """What the commit of a write has to say of the columns beside their schema.

    Args:
        history: As the write found it.
        schema: The user's columns after the write.
        instant: Requested time of the write.
        table_version: Of the table.

    Raises:
        UnsupportedTable: The write adds a field inside a column.
        WriteAborted: The columns were changed after the write was planned, so that its files would be read wrongly.
    """
    if history.newest.number >= int(instant):
        message = (
            f"{instant} was planned before ALTER TABLE changed the columns at {history.newest.number}: take the plan"
            " back, and plan anew; a compaction of table version 6 by `compaction unschedule` of Hudi's own command"
            " line, since JVM Hudi empties renamed columns where it runs such a plan"
        )
        raise WriteAborted(message, instant=instant)
    evolved = evolve_columns(history.newest, schema, instant=instant, table_version=table_version)
    return {NEWEST_COLUMNS: evolved.text}


def evolve_columns(newest: ColumnVersion, schema: pa.Schema, *, instant: str, table_version: int) -> ColumnVersion:
    """The columns after a write that may bring new ones; the version that was the newest if it brings none.

    Raises:
        UnsupportedTable: It adds a field inside a column.
    """
    evolved = newest
    for field in schema:
        if field.name not in newest.names:
            evolved = evolved.add(field.name, field.type, table_version=table_version)
    if grown := [field.name for field in schema if _is_other(newest, field)]:
        message = (
            f"column {grown[0]!r} would get a field inside it, and the columns of the table have a history by ids,"
            " which this package keeps for whole columns alone: write without the field, or let JVM Hudi add it"
        )
        raise UnsupportedTable(message, column=grown[0])
    return evolved if evolved is newest else evolved.at(int(instant))


def _find_differences(newest: ColumnVersion, schema: pa.Schema | None) -> Iterator[str]:
    """A writer that does not go by the history changed the columns: its files are read by ids that they do not have."""
    if schema is None:
        return
    extra, lacking = sorted({*schema.names} - {*newest.names}), sorted({*newest.names} - {*schema.names})
    told = [f"has {', '.join(extra)}"] * bool(extra) + [f"lacks {', '.join(lacking)}"] * bool(lacking)
    told += [f"has {field.name} as {field.type}" for field in schema if _is_other(newest, field)]
    if told:
        yield (
            f"its newest commit {' and '.join(told)}, other than the history of its columns says, as after a write of"
            f" JVM Hudi without hoodie.schema.on.read.enable; {_COPY}"
        )


def _is_other(newest: ColumnVersion, field: pa.Field) -> bool:
    return field.name in newest.names and not newest.has_type(field)


def _find_limits(config: TableConfig, history: SchemaHistory) -> Iterator[str]:
    if config.extra.get(_SOURCES):
        yield _BOOTSTRAPPED
    if config.virtual_keys is not None or config.dropped_fields:
        yield f"its files lack columns of their own (meta or partition columns); {_COPY}"
    if config.change_log_mode is not None:
        yield f"its change logs would have columns under names of different times; {_COPY}"
    if found := sorted(config.metadata_parts.intersection(_STATISTICS)):
        yield (
            f"its metadata table has {' and '.join(found)}, which have columns under the names of their time, so that"
            f" filters would miss rows: {' and '.join(f'{_DROP} {name}' for name in found)}"
        )
    yield from _find_changed_keys(config, history)
    yield from _find_inexact(history)


def _find_changed_keys(config: TableConfig, history: SchemaHistory) -> Iterator[str]:
    needed = list_key_columns(config)
    oldest = {one["name"]: (one["id"], one["type"]) for one in history.versions[-1].columns}
    for version in history.versions:
        now = {one["name"]: (one["id"], one["type"]) for one in version.columns}
        if moved := [name for name in sorted(needed) if now.get(name) != oldest.get(name)]:
            yield f"{moved[0]} is a record key, partition or ordering column, which was changed; {_COPY}"
            return


def _find_inexact(history: SchemaHistory) -> Iterator[str]:
    """Types whose values engines write in different ways."""
    newest = {one["id"]: one for one in history.newest.columns}
    for version in history.versions[1:]:
        for before in version.columns:
            now = newest.get(before["id"])
            if now is not None and now["type"] != before["type"] and not can_widen(before["type"], now["type"]):
                kinds = f"{show_kind(before['type'])} and is {show_kind(now['type'])}"
                yield f"{now['name']} was {kinds}, which engines write in different ways; {_COPY}"
                return
