"""Rows of an insert whose small file another writer changed meanwhile: they go to new files. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.format import CommitMetadata, WriteStat, new_file_id
from hudi_locks.spark.writing.placement import GROUP, Placement
from hudi_locks.transaction import Conflict, Transaction

__all__ = ["write_around"]

_NO_COMMIT = "null"


def write_around(
    transaction: Transaction, placement: Placement, *, run: Callable[[Placement], list[WriteStat]]
) -> tuple[list[WriteStat], tuple[Conflict, ...]]:
    """Write the rows, and those that went to file groups in which others were first once more, to new ones.

    Rows that are only added may lie anywhere, and a new file group meets nobody; what went to other file groups stays.
    The publish removes the files in the old ones, since no stat names them.

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
