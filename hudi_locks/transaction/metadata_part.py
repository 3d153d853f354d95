"""The part of a write that goes to the metadata table: planned and uploaded inside the lock, before the claim.

The claim then names the logs by tickets and holds the completed file, so that whoever settles it makes the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hudi_locks.config import service_keys
from hudi_locks.errors import UnsupportedTable, WriteAborted
from hudi_locks.format import CommitMetadata, Instant, LogFileName, MetadataPartition, State, WriteStat
from hudi_locks.format.claim import Content
from hudi_locks.format.key_groups import parse_key_group
from hudi_locks.metadata_table import (
    DeltaCommit,
    Indexed,
    MetadataShape,
    MetadataTable,
    MetadataView,
    StagedLog,
    describe_log,
    encode_empty_log,
    list_fresh_groups,
    metadata_path,
    plan_clean,
    plan_delta_commit,
    plan_restore,
)
from hudi_locks.storage import Storage
from hudi_locks.table import list_data_files
from hudi_locks.timeline import Timeline
from hudi_locks.transaction.context import TableContext, View

__all__ = ["MetadataPart", "carry_out_clean", "carry_out_restore", "plan_metadata_part"]

_ACTION: Final = "deltacommit"
_KEYS: Final = MetadataPartition.RECORD_INDEX
_CHANGED: Final = (
    "the table's metadata table, or its list of indexed columns, changed while the write was under way: begin a new one"
)

_OTHER_COUNT: Final = (
    "another write began a partition that this one writes to with another number of file groups of the record index:"
    f" give all writers of the table one {service_keys.PARTITION_INDEX_LEAST_GROUPS.name}, and begin a new write"
)
_UNTOLD: Final = (
    "the metadata table has a record index, and the write does not tell which keys it brought: give `publish` the logs"
)


@dataclass(frozen=True)
class MetadataPart:
    """A delta commit that waits for its claim.

    Attributes:
        requested: Its requested time.
        metadata: What its completed file says.
        tickets: By which its logs get their names.
        newest: The newest time in the metadata table: the claim's must be later.
        layout_version: Of the timelines of both.
    """

    requested: str
    metadata: CommitMetadata
    tickets: Mapping[str, str] = field(default_factory=dict)
    newest: str = ""
    layout_version: int = 2

    def promise(self, time: str) -> Content:
        """Its completed file, if it is completed at that time."""
        completed = Instant(self.requested, _ACTION, State.INFLIGHT).as_completed(time)
        data = self.metadata.encode(_ACTION, layout_version=self.layout_version)
        return Content.of(completed.file_name(self.layout_version), data)


def plan_metadata_part(
    context: TableContext,
    found: MetadataTable | None,
    requested: str,
    *,
    written: CommitMetadata,
    timeline: Timeline,
    indexed: Indexed | None,
    key_logs: Sequence[StagedLog] | None = None,
) -> MetadataPart:
    """Plan what a write changes in the metadata table, and upload it.

    Args:
        context: Of the writer, which holds the lock.
        found: The metadata table, as it is now; None if there is none any more.
        requested: Of the write.
        written: What it wrote.
        timeline: Of the table, as it is now.
        indexed: What `TableContext.describe_indexed` gave before its tasks ran.
        key_logs: Logs of the record index; None from a write that does not tell its keys.

    Raises:
        WriteAborted: The metadata table changed since then, or a range is missing.
        DamagedTable: It cannot be read.
        StorageError: The store failed.
    """
    if found is None or found.describe_indexed() != indexed:
        raise WriteAborted(_CHANGED, instant=requested)
    if indexed.key_groups and key_logs is None:
        raise WriteAborted(_UNTOLD, instant=requested)
    shape = found.describe(timeline)
    try:
        commit = plan_delta_commit(requested, written, shape)
    except UnsupportedTable as refusal:
        raise WriteAborted(str(refusal), instant=requested) from refusal
    commit = _begin_groups(commit, indexed, shape, written=written, told=key_logs or ())
    tickets = context.delta_commits.stage(commit)
    metadata = commit.metadata
    if key_logs:
        _refuse_moved(indexed, shape, key_logs, requested)
        named = [(indexed.name_key_log(log.group, requested), log) for log in key_logs]
        tickets |= {metadata_path(_KEYS, name): log.ticket for name, log in named}
        metadata = _add_stats(metadata, [describe_log(_KEYS, name, log.size, log.records) for name, log in named])
    return MetadataPart(requested, metadata, tickets, shape.newest, context.layout.version)


def _begin_groups(
    commit: DeltaCommit, indexed: Indexed, shape: MetadataShape, *, written: CommitMetadata, told: Sequence[StagedLog]
) -> DeltaCommit:
    """The same with an empty log for each file group that a record index by partition needs and that gets no keys."""
    requested = commit.requested
    owners = {found[0] or "" for log in told if (found := parse_key_group(log.group)) is not None}
    partitions = owners.union(written.partition_to_write_stats)
    fresh = list_fresh_groups(indexed.key_groups, shape.groups.get(_KEYS, ()), partitions)
    if fresh is None:
        raise WriteAborted(_OTHER_COUNT, instant=requested)
    empty = [LogFileName(group, requested) for group in fresh if group not in {log.group for log in told}]
    data = encode_empty_log(requested, _KEYS, shape.version)
    logs = {metadata_path(_KEYS, name): data for name in empty}
    stats = [describe_log(_KEYS, name, len(data), 0) for name in empty]
    return replace(commit, logs={**commit.logs, **logs}, metadata=_add_stats(commit.metadata, stats))


def _add_stats(metadata: CommitMetadata, stats: Sequence[WriteStat]) -> CommitMetadata:
    """With those of more logs of the record index."""
    known = metadata.partition_to_write_stats
    told = {_KEYS.value: (*known.get(_KEYS.value, ()), *stats)} if stats else {}
    return replace(metadata, partition_to_write_stats={**known, **told})


def _refuse_moved(indexed: Indexed, shape: MetadataShape, logs: Iterable[StagedLog], requested: str) -> None:
    """Logs of version 6 were named when tasks began: a compaction since then would leave them out."""
    for log in logs:
        known, now = indexed.key_places.get(log.group), shape.places.get(log.group)
        if known is not None and now is not None and known.barrier != now.barrier:
            raise WriteAborted(_CHANGED, instant=requested)


def carry_out_clean(context: TableContext, requested: str, deleted: Mapping[str, Sequence[str]], *, view: View) -> bool:
    """Tell the metadata table, if there is one, that a clean removed files; before the clean is completed.

    May be repeated by anybody who carries out the same clean, inside the lock.

    Args:
        context: Of the cleaner.
        requested: Of the clean.
        deleted: Names of the files, by partition path.
        view: Of the table, looked at inside the lock.

    Returns:
        Whether it is told. False: a JVM writer has taken the delta commit back meanwhile, or compacted at a later time.

    Raises:
        DamagedTable: The metadata table cannot be read.
        UnsupportedTable: It has a part that is not kept up to date here.
        StorageError: The store failed.
    """
    return _tell(context, lambda shown: plan_clean(requested, deleted, shown.describe()), view=view)


def carry_out_restore(context: TableContext, requested: str, *, view: View) -> bool:
    """Tell the metadata table, if there is one, which files a restore left; before the restore is completed.

    May be repeated by anybody who carries out the same restore, inside the lock.

    Args:
        context: Of who restores.
        requested: Of the restore.
        view: Of the table, looked at inside the lock, once the files of the undone writes are removed.

    Returns:
        See `carry_out_clean`.

    Raises:
        DamagedTable: The metadata table cannot be read.
        UnsupportedTable: It has a part that is not kept up to date here.
        StorageError: The store failed.
    """
    return _tell(context, lambda shown: plan_restore(requested, _list_names(context.storage), shown), view=view)


def _list_names(storage: Storage) -> dict[str, set[str]]:
    """Of all data files that are there, by partition path."""
    found: dict[str, set[str]] = {}
    for file in list_data_files(storage).every:
        found.setdefault(file.partition, set()).add(file.path.rpartition("/")[2])
    return found


def _tell(context: TableContext, plan: Callable[[MetadataView], DeltaCommit], *, view: View) -> bool:
    found = context.find_metadata_table()
    if found is None:
        return True
    found.refuse_unwritable()
    shown = found.view(view.timeline)
    commits, planned = context.delta_commits, plan(shown)
    time = context.time_after(view, planned.requested, shown.own_timeline.newest_time() or "")
    commits.begin(planned.requested, planned.logs)
    commits.make_logs(planned)
    part = MetadataPart(planned.requested, planned.metadata, layout_version=context.layout.version)
    promised = part.promise(time)
    return commits.complete(promised.name, promised.data or b"", logs=planned.logs) is not None
