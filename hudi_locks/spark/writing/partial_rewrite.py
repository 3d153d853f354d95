"""Going on with a write that others were quicker than: only what they touched is written again. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.format import CommitMetadata, WriteStat, new_file_id
from hudi_locks.format.claim import FileGroupId
from hudi_locks.spark.index.index import Index
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.placement import GROUP, Placement, Regrouped
from hudi_locks.spark.writing.rows import KeyedRows
from hudi_locks.transaction import Conflict, ReadSet, Transaction

__all__ = ["PartialRewrite", "WrittenFiles", "write_around"]

_NO_COMMIT = "null"


@dataclass(frozen=True)
class WrittenFiles:
    """What the tasks of a write made so far.

    Attributes:
        snapshot: What it is built on, as if it all had been from the start.
        placement: Where its rows went; of a later turn those that it wrote, with what is known of the keys of all.
        stats: Of all turns, as far as they count.
        avoided: Conflicts that it would have met.
        rewritten: How many files were written again for that.
    """

    snapshot: Snapshot
    placement: Placement
    stats: tuple[WriteStat, ...]
    avoided: tuple[Conflict, ...] = ()
    rewritten: int = 0


@dataclass(frozen=True)
class PartialRewrite:
    """Writes the outdated part of one write again, each time that it would meet a conflict.

    Attributes:
        transaction: The write.
        operation: What is done with the rows.
        keyed: All of them.
        index: Of the table.
        run: Writes the rows of a placement.
        draft: What a publish would be given.
    """

    transaction: Transaction
    operation: Operation
    keyed: KeyedRows
    index: Index
    run: Callable[[Placement], list[WriteStat]]
    draft: Callable[[WrittenFiles], tuple[CommitMetadata, ReadSet]]

    @contextmanager
    def finish(self, made: WrittenFiles, *, most: int) -> Iterator[WrittenFiles]:
        """What is to be published after at most so many more turns; may meet a conflict still.

        It goes on only where it may: under its own instant nothing can be written on top of a file that was begun after
        it, and with other columns nothing of what was written stays.
        """
        with ExitStack() as persisted:
            for _ in range(most):
                following = self._follow(made, persisted)
                if following is None:
                    break
                made = following
            yield made

    def _follow(self, made: WrittenFiles, persisted: ExitStack) -> WrittenFiles | None:
        metadata, reads = self.draft(made)
        conflict = self.transaction.check_conflict(metadata, reads=reads)
        later = self.transaction.look_again() if conflict is not None and not conflict.other_is_pending else None
        if conflict is None or later is None:
            return None
        snapshot = Snapshot(made.snapshot.table, later.timeline)
        if snapshot.schema != made.snapshot.schema or snapshot.newest_columns != made.snapshot.newest_columns:
            return None
        regrouped = persisted.enter_context(self._regroup(made, snapshot))
        if not self.transaction.go_on(later, bases=regrouped.bases):
            return None
        return self._write_again(replace(made, snapshot=snapshot, avoided=(*made.avoided, conflict)), regrouped)

    def _regroup(self, made: WrittenFiles, snapshot: Snapshot) -> AbstractContextManager[Regrouped]:
        return self.index.replan(
            self.operation,
            self.keyed,
            made.placement,
            before=made.snapshot,
            now=snapshot,
            written=frozenset(map(_group, made.stats)),
            instant=self.transaction.instant,
        )

    def _write_again(self, made: WrittenFiles, regrouped: Regrouped) -> WrittenFiles:
        kept = [stat for stat in made.stats if _group(stat) not in regrouped.touched]
        stats = self.run(regrouped.placement) if regrouped.touched else []
        rewritten = made.rewritten + _count_files(stats)
        return replace(made, placement=regrouped.placement, stats=(*kept, *stats), rewritten=rewritten)


def _group(stat: WriteStat) -> FileGroupId:
    return FileGroupId(stat.partition_path, stat.file_id)


def _count_files(stats: Iterable[WriteStat]) -> int:
    return sum(stat.path is not None for stat in stats)


def write_around(
    transaction: Transaction, placement: Placement, *, run: Callable[[Placement], list[WriteStat]]
) -> tuple[list[WriteStat], tuple[Conflict, ...]]:
    """Write the rows, and those that went to file groups in which others were first once more, to new ones.

    Rows that are only added may lie anywhere, and a new file group meets nobody; what went to other file groups stays.
    The files in the old ones never get their names, since no stat has their tickets.

    Args:
        transaction: The write.
        placement: Of its rows.
        run: Writes the rows of a placement.

    Returns:
        The stats of what is to be published, and the conflicts that were avoided.
    """
    stats, avoided = run(placement), list[Conflict]()
    while merged := _find_merged(stats):
        conflict = transaction.check_conflict(CommitMetadata.of(stats, transaction.operation, schema=None))
        taken = conflict.groups if conflict is not None else ()
        moves = {group.file_id: new_file_id() for group in taken if tuple(group) in merged}
        if conflict is None or not moves:
            break
        avoided.append(conflict)
        stats = [stat for stat in stats if stat.file_id not in moves] + run(_move(placement, moves))
    return stats, tuple(avoided)


def _find_merged(stats: Iterable[WriteStat]) -> frozenset[tuple[str, str]]:
    """(partition path, file id) of the file groups that were there before, and took rows."""
    return frozenset((stat.partition_path, stat.file_id) for stat in stats if stat.prev_commit != _NO_COMMIT)


def _move(placement: Placement, moves: Mapping[str, str]) -> Placement:
    """The rows of the file groups that `moves` names, in those that it gives them."""
    pairs = [F.lit(file_id) for move in moves.items() for file_id in move]
    rows = placement.rows.where(F.col(GROUP).isin(list(moves)))
    moved = rows.withColumn(GROUP, F.element_at(F.create_map(*pairs), F.col(GROUP)))
    return replace(placement, rows=moved, expected_groups=len(moves))
