"""The part of a write that goes to the metadata table: planned and uploaded inside the lock, before the claim.

The claim then names the logs by tickets and holds the completed file, so that whoever settles it makes the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hudi_locks.errors import UnsupportedTable, WriteAborted
from hudi_locks.format import CommitMetadata, Instant, State
from hudi_locks.format.claim import Content
from hudi_locks.metadata_table import DeltaCommit, MetadataTable, plan_clean, plan_delta_commit, plan_restore
from hudi_locks.timeline import Timeline
from hudi_locks.transaction.context import TableContext, View

__all__ = ["MetadataPart", "carry_out_clean", "carry_out_restore", "plan_metadata_part"]

_ACTION: Final = "deltacommit"
_LAYOUT: Final = 2
_CHANGED: Final = (
    "the table's metadata table, or its list of indexed columns, changed while the write was under way: begin a new one"
)


@dataclass(frozen=True)
class MetadataPart:
    """A delta commit that waits for its claim.

    Attributes:
        requested: Its requested time.
        metadata: What its completed file says.
        tickets: By which its logs get their names.
        newest: The newest time in the metadata table: the claim's must be later.
    """

    requested: str
    metadata: CommitMetadata
    tickets: Mapping[str, str] = field(default_factory=dict)
    newest: str = ""

    def promise(self, time: str) -> Content:
        """Its completed file, if it is completed at that time."""
        completed = Instant(self.requested, _ACTION, State.INFLIGHT).as_completed(time)
        return Content.of(completed.file_name(_LAYOUT), self.metadata.encode(_ACTION, layout_version=_LAYOUT))


def plan_metadata_part(
    context: TableContext,
    found: MetadataTable | None,
    requested: str,
    *,
    written: CommitMetadata,
    timeline: Timeline,
    indexed: tuple[str, ...] | None,
) -> MetadataPart:
    """Plan what a write changes in the metadata table, and upload it.

    Args:
        context: Of the writer, which holds the lock.
        found: The metadata table, as it is now; None if there is none any more.
        requested: Of the write.
        written: What it wrote.
        timeline: Of the table, as it is now.
        indexed: What `TableContext.read_indexed_columns` gave before its tasks ran.

    Raises:
        WriteAborted: The metadata table changed since then, or a range is missing.
        DamagedTable: It cannot be read.
        StorageError: The store failed.
    """
    if found is None or found.list_writable_columns() != indexed:
        raise WriteAborted(_CHANGED, instant=requested)
    shape = found.describe(timeline)
    try:
        commit = plan_delta_commit(requested, written, shape)
    except UnsupportedTable as refusal:
        raise WriteAborted(str(refusal), instant=requested) from refusal
    return MetadataPart(requested, commit.metadata, context.delta_commits.stage(commit), shape.newest)


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
    found = context.find_metadata_table()
    if found is None:
        return True
    found.refuse_unwritable()
    shape = found.describe(view.timeline)
    return _carry_out(context, plan_clean(requested, deleted, shape), view=view, newest=shape.newest)


def carry_out_restore(
    context: TableContext, requested: str, there: Mapping[str, Collection[str]], *, view: View
) -> bool:
    """Tell the metadata table, if there is one, which files a restore left; before the restore is completed.

    May be repeated by anybody who carries out the same restore, inside the lock.

    Args:
        context: Of who restores.
        requested: Of the restore.
        there: Names of the files that are left, by partition path.
        view: Of the table, looked at inside the lock.

    Returns:
        See `carry_out_clean`.

    Raises:
        DamagedTable: The metadata table cannot be read.
        UnsupportedTable: It has a part that is not kept up to date here.
        StorageError: The store failed.
    """
    found = context.find_metadata_table()
    if found is None:
        return True
    found.refuse_unwritable()
    shown = found.view(view.timeline)
    newest = shown.own_timeline.newest_time() or ""
    return _carry_out(context, plan_restore(requested, there, shown), view=view, newest=newest)


def _carry_out(context: TableContext, planned: DeltaCommit, *, view: View, newest: str) -> bool:
    commits, requested = context.delta_commits, planned.requested
    time = context.time_after(view, requested, newest)
    commits.begin(requested)
    commits.make_logs(planned)
    promised = MetadataPart(requested, planned.metadata).promise(time)
    return commits.complete(promised.name, promised.data or b"", logs=planned.logs) is not None
