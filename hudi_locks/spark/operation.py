"""What a write does with its rows, what its tasks report to it, and what it reports to its caller."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from hudi_locks.display import make_card
from hudi_locks.format import ChangeLog, WriteStat
from hudi_locks.format.key_groups import KeyGroups

if TYPE_CHECKING:  # executors need the operations alone
    from hudi_locks.format import CommitMetadata
    from hudi_locks.observe.tracing import SpanValue
    from hudi_locks.transaction import Conflict, Outcome, PublishResult

__all__ = [
    "STAT",
    "TOLD_KEYS",
    "Attempt",
    "KeyReport",
    "Operation",
    "WriteResult",
    "decode_report",
    "decode_stat",
    "encode_report",
    "encode_stats",
]

_SERVICES: Final = ("CLUSTER", "COMPACT", "LOG_COMPACT")
"""These count the rows of their files as inserted, as the JVM does, and deletes of logs again; none of them is new."""
STAT: Final = "stat"
"""Column of what a task reports: a write stat as JSON."""
TOLD_KEYS: Final = "number int, key string, path string, file_id string, is_gone boolean"
"""Columns beside it where record keys are told: the number of the file group that is to know, and what it is told."""
_TOLD_NAMES: Final = ("number", "key", "path", "file_id", "is_gone")
_CHECK_S: Final = "early_conflict_check_s"


class Operation(enum.Enum):
    """The operations; the values are Hudi's, of `hoodie.datasource.write.operation`."""

    INSERT = "insert"
    UPSERT = "upsert"
    BULK_INSERT = "bulk_insert"
    DELETE = "delete"
    INSERT_OVERWRITE = "insert_overwrite"
    INSERT_OVERWRITE_TABLE = "insert_overwrite_table"
    DELETE_PARTITION = "delete_partition"

    @property
    def replaces(self) -> bool:
        """Whether it ends every file group of a partition instead of looking for keys."""
        return self in (Operation.INSERT_OVERWRITE, Operation.INSERT_OVERWRITE_TABLE, Operation.DELETE_PARTITION)

    @property
    def action(self) -> str:
        """Action of its instants on the timeline."""
        return "replacecommit" if self.replaces else "commit"


@dataclass(frozen=True)
class Attempt:
    """One try of a write, from begin to publish.

    Attributes:
        instant: Its requested time.
        began_ms: Wall clock at its begin, ms since the epoch.
        ended_ms: Wall clock when its outcome was known.
        outcome: What became of it.
        conflict: Why it was aborted; None for the last.
        avoided: Conflicts that it would have met, had it not written again what they concern: an insert the rows that
            went to a file of others, to new ones, any other write the file groups that are outdated.
        rewritten: How many files an upsert or delete wrote again for that; all others stayed.
    """

    instant: str
    began_ms: int
    ended_ms: int
    outcome: Outcome
    conflict: Conflict | None = None
    avoided: tuple[Conflict, ...] = ()
    rewritten: int = 0

    @property
    def duration_s(self) -> float:
        """How long it took, in seconds."""
        return (self.ended_ms - self.began_ms) / 1000

    def describe(self) -> dict[str, SpanValue]:
        """What a trace tells of it."""
        told: dict[str, SpanValue] = {"instant": self.instant, "outcome": self.outcome.value}
        told |= {"conflicts_avoided": len(self.avoided), "files_rewritten": self.rewritten}
        if (conflict := self.conflict) is not None:
            told |= {"conflict_with": conflict.other, "conflict_writer": conflict.other_writer}
            told |= {"conflict_is_early": conflict.is_early, "conflict_file_groups": len(conflict.groups)}
        return told


@dataclass(frozen=True)
class WriteResult:
    """A committed write; any other end of a write is raised.

    Attributes:
        instant: Requested time.
        completion_time: When it became visible; what `as_of` and `incremental` take.
        outcome: COMMITTED.
        rows_inserted: Rows that are new. Of a merge-on-read table with the bucket index, where nobody looks, all rows
            of an insert.
        rows_updated: Rows that replaced a present row. Of rows that are logged all of an upsert, though some may lose.
        rows_deleted: Rows taken out. Of keys that are logged all of a delete.
        rows_written: All rows of the files written, those that stayed as they were included.
        file_groups: How many file groups were written.
        file_groups_replaced: How many ended: overwritten, deleted with their partition, or clustered.
        attempts: Every try, the last one being the one that was committed.
        lock_wait_ms: How long the publish waited for the table lock.
        lock_held_ms: How long it held it.
        begin_wait_ms: How long the begin of the last attempt waited for the table lock.
        begin_held_ms: How long that begin held it.
        warnings: What went wrong without touching the outcome.
    """

    instant: str
    completion_time: str
    outcome: Outcome
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_written: int = 0
    file_groups: int = 0
    file_groups_replaced: int = 0
    attempts: tuple[Attempt, ...] = field(default=(), repr=False)
    lock_wait_ms: int = 0
    lock_held_ms: int = 0
    begin_wait_ms: int = 0
    begin_held_ms: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The conflicts met on the way; each cost one retry."""
        return tuple(attempt.conflict for attempt in self.attempts if attempt.conflict)

    @property
    def avoided(self) -> tuple[Conflict, ...]:
        """The conflicts that it avoided, at the price of writing what they concern once more."""
        return tuple(conflict for attempt in self.attempts for conflict in attempt.avoided)

    @property
    def retries(self) -> int:
        """Attempts before the one that was committed."""
        return max(0, len(self.attempts) - 1)

    @property
    def wasted_s(self) -> float:
        """Seconds that went into attempts which met a conflict."""
        return sum(attempt.ended_ms - attempt.began_ms for attempt in self.attempts[:-1]) / 1000

    def describe(self) -> dict[str, SpanValue]:
        """What a trace tells of it."""
        rows = {"inserted": self.rows_inserted, "updated": self.rows_updated, "deleted": self.rows_deleted}
        told: dict[str, SpanValue] = {f"rows_{what}": count for what, count in rows.items()}
        told |= {"instant": self.instant, "outcome": self.outcome.value, "attempts": len(self.attempts)}
        return told | {"rows_written": self.rows_written, "file_groups": self.file_groups}

    def _repr_html_(self) -> str:
        rows = {"inserted": self.rows_inserted, "updated": self.rows_updated, "deleted": self.rows_deleted}
        facts = (
            ("instant", self.instant),
            ("visible since", self.completion_time),
            ("rows", ", ".join(f"{count:,} {what}" for what, count in rows.items())),
            ("file groups", f"{self.file_groups:,} written, {self.file_groups_replaced:,} ended"),
            ("table lock", f"waited {self.lock_wait_ms:,} ms, held {self.lock_held_ms:,} ms"),
            ("conflicts", tuple(f"with {one.other}, {one.other_writer}" for one in self.conflicts)),
            ("warnings", self.warnings),
        )
        return make_card(f"Write {self.outcome.name}", facts)

    @classmethod
    def of(cls, published: PublishResult, metadata: CommitMetadata, *, attempts: Sequence[Attempt]) -> WriteResult:
        """Sum up a committed publish and what it wrote."""
        stats, is_service = metadata.stats, metadata.operation in _SERVICES
        return cls(
            published.instant,
            published.completion_time or "",
            published.outcome,
            rows_inserted=0 if is_service else sum(stat.num_inserts for stat in stats),
            rows_updated=sum(stat.num_update_writes for stat in stats),
            rows_deleted=0 if is_service else sum(stat.num_deletes for stat in stats),
            rows_written=sum(stat.num_writes for stat in stats),
            file_groups=len(metadata.written_file_groups),
            file_groups_replaced=len(metadata.replaced_file_groups),
            attempts=tuple(attempts),
            lock_wait_ms=published.lock_wait_ms,
            lock_held_ms=published.lock_held_ms,
            begin_wait_ms=published.begin_wait_ms,
            begin_held_ms=published.begin_held_ms,
            warnings=published.warnings,
        )


def encode_stats(stats: Sequence[WriteStat]) -> pa.RecordBatch:
    """What a task reports: one row for each file."""
    texts = [json.dumps(dataclasses.asdict(stat)) for stat in stats]
    return pa.RecordBatch.from_pydict({STAT: pa.array(texts, pa.string())})


def encode_report(stats: Sequence[WriteStat], check_s: float) -> pa.RecordBatch:
    """The same, and how long the task looked at other writes before it wrote, if it did."""
    batch = encode_stats(stats)
    if not check_s:
        return batch
    checked = pa.array([*batch.column(STAT).to_pylist(), json.dumps({_CHECK_S: check_s})], pa.string())
    return pa.RecordBatch.from_pydict({STAT: checked})


class KeyReport:
    """Record keys that file groups gain and lose, as a task tells them for the record index of the metadata table.

    Args:
        groups: The file groups of the index; none if nobody wants to know.
    """

    def __init__(self, groups: KeyGroups | None = None) -> None:
        self._groups = groups or KeyGroups()
        self._told: list[pa.RecordBatch] = []

    @property
    def is_asked(self) -> bool:
        """Whether anybody wants to know."""
        return bool(self._groups)

    def tell(self, keys: pa.ChunkedArray, path: str, file_id: str, *, is_gone: bool = False) -> None:
        """Note keys of a file group; `path` is the path of its partition."""
        for chunk in keys.chunks if self.is_asked else ():
            self._note(chunk.cast(pa.string()), *(pa.repeat(value, len(chunk)) for value in (path, file_id, is_gone)))

    def tell_lost(self, keys: pa.Array, paths: pa.Array, file_ids: pa.Array) -> None:
        """Note keys that file groups lose, each with its own."""
        self._note(keys, paths, file_ids, pa.repeat(pa.scalar(value=True), len(keys)))

    def _note(self, keys: pa.StringArray, paths: pa.Array, *others: pa.Array) -> None:
        numbers = self._groups.number(keys, paths)
        self._told.append(pa.RecordBatch.from_arrays([numbers, keys, paths, *others], _TOLD_NAMES))

    def keys(self) -> Iterator[pa.RecordBatch]:
        """What was noted, with the columns TOLD_KEYS."""
        return iter(self._told)

    def join(self, stats: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """What the task reports: its stats, and the keys as rows of their own."""
        if not self.is_asked:
            yield stats
            return
        kinds = (pa.int32(), pa.string(), pa.string(), pa.string(), pa.bool_())
        names, nothing = (STAT, *_TOLD_NAMES), [pa.nulls(stats.num_rows, kind) for kind in kinds]
        yield pa.RecordBatch.from_arrays([stats.column(STAT), *nothing], names)
        for told in self._told:
            yield pa.RecordBatch.from_arrays([pa.nulls(told.num_rows, pa.string()), *told.columns], names)


def decode_stat(text: str) -> WriteStat:
    """A write stat as a task reported it."""
    return _decode(json.loads(text))


def decode_report(texts: Iterable[str]) -> tuple[list[WriteStat], list[float]]:
    """The write stats that tasks reported, and how long each that looked at other writes did so, in seconds."""
    rows = [json.loads(text) for text in texts]
    return [_decode(row) for row in rows if _CHECK_S not in row], [row[_CHECK_S] for row in rows if _CHECK_S in row]


def _decode(row: dict[str, Any]) -> WriteStat:
    """JSON has lists only."""
    logs = row["log_files"]
    changes = tuple(ChangeLog(**log) for log in row["change_logs"])
    return WriteStat(**{**row, "log_files": None if logs is None else tuple(logs), "change_logs": changes})
