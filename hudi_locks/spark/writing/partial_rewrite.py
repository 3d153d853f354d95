"""Going on with a write that others were quicker than: only what they touched is written again. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from hudi_locks.format import CommitMetadata, WriteStat
from hudi_locks.format.claim import FileGroupId
from hudi_locks.spark.index.placing import Placer
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.input_preparation import KeyedRows
from hudi_locks.spark.writing.placement import Placement, Regrouped
from hudi_locks.transaction import Conflict, ReadSet, Transaction

__all__ = ["PartialRewrite", "WrittenFiles"]


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
        placer: Of the first turn.
        run: Writes the rows of a placement.
        draft: What a publish would be given.
    """

    transaction: Transaction
    operation: Operation
    keyed: KeyedRows
    placer: Placer
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
        if snapshot.schema != made.snapshot.schema:
            return None
        regrouped = persisted.enter_context(self._regroup(made, snapshot))
        outdated = [stat for stat in made.stats if _group(stat) in regrouped.touched]
        paths = [stat.path for stat in outdated if stat.path]
        if not self.transaction.go_on(later, bases=regrouped.bases, without=paths):
            return None
        return self._write_again(replace(made, snapshot=snapshot, avoided=(*made.avoided, conflict)), regrouped)

    @contextmanager
    def _regroup(self, made: WrittenFiles, snapshot: Snapshot) -> Iterator[Regrouped]:
        placer = replace(self.placer, snapshot=snapshot)
        before = made.snapshot.base_files(self.keyed.counts)
        written = frozenset(map(_group, made.stats))
        again = placer.place_again(self.operation, self.keyed, made=made.placement, before=before, written=written)
        with again as regrouped:
            yield regrouped

    def _write_again(self, made: WrittenFiles, regrouped: Regrouped) -> WrittenFiles:
        kept = [stat for stat in made.stats if _group(stat) not in regrouped.touched]
        stats = self.run(regrouped.placement) if regrouped.touched else []
        rewritten = made.rewritten + _count_files(stats)
        return replace(made, placement=regrouped.placement, stats=(*kept, *stats), rewritten=rewritten)


def _group(stat: WriteStat) -> FileGroupId:
    return FileGroupId(stat.partition_path, stat.file_id)


def _count_files(stats: Iterable[WriteStat]) -> int:
    return sum(stat.path is not None for stat in stats)
