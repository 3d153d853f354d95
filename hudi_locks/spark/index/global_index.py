"""The global indexes: a key is found wherever it lies, so that the table has one row for it. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.errors import BadInput
from hudi_locks.spark.index.key_search import KeySearch, search_files
from hudi_locks.spark.index.missed_keys import LoggedKeys, MissedKeys
from hudi_locks.spark.index.simple_index import SimpleIndex
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.reading.files import read_as_stored, read_keys, read_merged, text_columns
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.placement import GROUP, MOVED, RESERVED, Placement
from hudi_locks.spark.writing.rows import KeyedRows, column_named, keep_persisted, list_compared
from hudi_locks.table import PARTITION_PATH, RECORD_KEY, BaseFile, DeleteMarker, MergeRule, add_meta_schema

__all__ = ["PLACE", "GlobalIndex", "Moves"]

PLACE: Final = f"{RESERVED}place"
"""Column with the partition path under which a row's key was found, or null."""
_OLDER: Final = f"{RESERVED}older_"
_ROWS_PER_TASK: Final = 100_000


@dataclass(frozen=True)
class GlobalIndex(SimpleIndex):
    """Hudi's HoodieGlobalSimpleIndex: reads the keys of all partitions.

    A row whose key lies in another partition than its columns say is written there, or moves, as the options say. A
    row that moves is merged as in its old place: where it is older than the present row it changes nothing.
    """

    can_replan: ClassVar[bool] = False

    @contextmanager
    def assign(
        self, operation: Operation, keyed: KeyedRows, snapshot: Snapshot, *, instant: str
    ) -> Iterator[Placement]:
        """See `Index.assign`."""
        if not self.settings.looks_up(operation):
            with super().assign(operation, keyed, snapshot, instant=instant) as placement:
                yield placement
            return
        base_files = snapshot.base_files()
        rows = _unite_paths(keyed, snapshot) if len(keyed.counts) > 1 and operation is not Operation.DELETE else keyed
        with self.find(rows, snapshot, base_files) as looked_up, keep_persisted(looked_up) as found:
            moves = Moves(self, found, snapshot)
            if operation is Operation.UPSERT and snapshot.table.is_merge_on_read and snapshot.has_record_index:
                moves = moves.without_older_deletes()
            settled = moves.settle(operation)
            with keep_persisted(settled) if MOVED in settled.columns else nullcontext(settled) as tagged:
                lookup = self._look_up(operation, snapshot, None)
                placement = lookup.place(operation, tagged.drop(PLACE), base_files)
                absent = tagged.where(F.col(PLACE).isNull()).select(RECORD_KEY, PARTITION_PATH)
                missed = MissedKeys(absent, snapshot.table.storage, None, lookup.virtual_keys)
                if lookup.late_logs is not None:
                    keys = tagged.select(RECORD_KEY, PARTITION_PATH)
                    missed = LoggedKeys(keys, snapshot.table.storage, None, lookup.virtual_keys)
                yield replace(placement, absent_keys=missed, assigned=None, has_own_paths=True)

    @contextmanager
    def find(self, keyed: KeyedRows, snapshot: Snapshot, base_files: Sequence[BaseFile]) -> Iterator[DataFrame]:
        """Add where the key of each row lies: GROUP, and its partition path as PLACE; null for nowhere.

        Args:
            keyed: With record keys and partition paths, counted.
            snapshot: Of the table.
            base_files: All of it.
        """
        rows = keyed.frame
        if not base_files:
            nothing = F.lit(None).cast("string")
            yield rows.withColumn(PLACE, nothing).withColumn(GROUP, nothing)
            return
        known = self._read_known(keyed, snapshot, base_files)
        yield rows.join(known.withColumnRenamed(PARTITION_PATH, PLACE), [RECORD_KEY], "left")

    def _read_known(self, keyed: KeyedRows, snapshot: Snapshot, base_files: Sequence[BaseFile]) -> DataFrame:
        """Keys of the table, those of the rows among them, with partition paths, and as GROUP ids of file groups."""
        storage, rows, virtual_keys = snapshot.table.storage, keyed.frame, snapshot.table.config.virtual_keys
        if self._searches(keyed.counts):
            asked = KeySearch(
                storage, GROUP, by_partition=False, by_filter=self._goes_by_filters, virtual_keys=virtual_keys
            )
            return search_files(asked, rows, base_files, keys=keyed.keys).frame
        keys = text_columns(RECORD_KEY, PARTITION_PATH)
        return read_keys(rows.sparkSession, storage, base_files, keys, file_id=GROUP, virtual_keys=virtual_keys)


def _unite_paths(keyed: KeyedRows, snapshot: Snapshot) -> KeyedRows:
    """Rows of one key under one path: that of the row which comes last in the table's order."""
    config, there = snapshot.table.config, keyed.schema.names
    named = [column_named(name) for name in config.ordering_fields if name in there]
    ordering = list_compared(named, by_place=config.merge_rule.by_place)
    last = F.max_by(PARTITION_PATH, F.struct(*ordering, F.col(PARTITION_PATH)))
    # Spark would have as many tasks for a few rows as for many, here and in each job on what is persisted of it.
    together = keyed.frame.repartition(_count_tasks(keyed), RECORD_KEY)
    return replace(keyed, frame=together.withColumn(PARTITION_PATH, last.over(Window.partitionBy(RECORD_KEY))))


def _count_tasks(keyed: KeyedRows) -> int:
    cores: int = keyed.frame.sparkSession.sparkContext.defaultParallelism
    return max(cores, sum(keyed.counts.values()) // _ROWS_PER_TASK)


@dataclass(frozen=True)
class Moves:
    """Settles which rows leave their partition.

    Attributes:
        index: Of the table.
        found: Rows with the place of their key; persisted.
        snapshot: Of the table.
    """

    index: SimpleIndex
    found: DataFrame
    snapshot: Snapshot

    def settle(self, operation: Operation) -> DataFrame:
        """The rows under the path where they are written, and for each that moves one more that takes it out."""
        stays = self.found.withColumn(PARTITION_PATH, F.coalesce(PLACE, PARTITION_PATH))
        if not self.index.settings.moves_rows or operation is not Operation.UPSERT:
            return stays
        is_moving = ~F.col(PARTITION_PATH).eqNullSafe(F.coalesce(PLACE, PARTITION_PATH)) & ~self._is_delete()
        groups = self.found.where(is_moving).select(PLACE, GROUP).distinct().collect()
        if not groups:
            return stays
        return self._move(is_moving, {(row[PLACE], row[GROUP]) for row in groups}, operation)

    def _move(self, is_moving: Column, groups: set[tuple[str, str]], operation: Operation) -> DataFrame:
        rule = self.index.settings.merge_rule(operation, self.snapshot.table.config)
        if rule.fills:
            raise self._refuse_filling(groups)
        staying = self.found.where(~is_moving).withColumn(PARTITION_PATH, F.coalesce(PLACE, PARTITION_PATH))
        moving = self._drop_older(self.found.where(is_moving), groups, rule)
        arriving = moving.withColumn(GROUP, F.lit(None).cast("string")).withColumn(MOVED, F.lit(False))
        leaving = moving.withColumn(PARTITION_PATH, F.col(PLACE)).withColumn(MOVED, F.lit(True))
        kept = staying if MOVED in staying.columns else staying.withColumn(MOVED, F.lit(False))
        return reduce(DataFrame.unionByName, (kept, arriving, leaving))

    def without_older_deletes(self) -> Moves:
        """The same without rows that delete nothing, since the row that is there is newer.

        A task that logs a delete does not see that row, and tells the record index that its key is gone.
        """
        rule = self.index.settings.merge_rule(Operation.UPSERT, self.snapshot.table.config)
        ordering = rule.ordering
        is_held = self._is_delete() & F.col(GROUP).isNotNull()
        if len(ordering) == 1:  # else it takes out every row that came before
            is_held &= column_named(ordering[0]).isNotNull()
        groups = self.found.where(is_held).select(PLACE, GROUP).distinct().collect() if ordering else []
        if not groups:
            return self
        kept = self._drop_older(self.found.where(is_held), {(row[PLACE], row[GROUP]) for row in groups}, rule)
        return replace(self, found=self.found.where(~is_held).unionByName(kept))

    def _drop_older(self, moving: DataFrame, groups: set[tuple[str, str]], rule: MergeRule) -> DataFrame:
        """Those that are not behind the row that is there."""
        if not rule.ordering:
            return moving
        present = self._read_ordering(groups, rule.ordering)
        ours = list_compared(map(column_named, rule.ordering), by_place=rule.by_place)
        theirs = list_compared((F.col(f"{_OLDER}{name}") for name in rule.ordering), by_place=rule.by_place)
        joined = moving.join(present, [RECORD_KEY, GROUP], "left")
        wins = _find_wins(ours, theirs)
        if rule.by_place:
            wins |= ours[0].isNull()  # the task that is to write such a row refuses it
        return joined.where(wins).select(*(column_named(name) for name in moving.columns))

    def _read_ordering(self, groups: set[tuple[str, str]], ordering: tuple[str, ...]) -> DataFrame:
        storage, spark = self.snapshot.table.storage, self.found.sparkSession
        slices = [piece for piece in self.snapshot.file_slices() if (piece.partition, piece.file_id) in groups]
        schema = add_meta_schema(self.snapshot.schema)
        columns = text_columns(RECORD_KEY)
        for name in ordering:
            columns = columns.append(schema.field(name))

        def read(some: Sequence[BaseFile], stored: Any) -> DataFrame:
            keys = self.snapshot.table.config.virtual_keys
            return read_keys(spark, storage, some, stored, file_id=GROUP, virtual_keys=keys)

        if any(piece.logs for piece in slices):
            rows = read_merged(spark, self.snapshot, slices, columns, file_id=GROUP)
        else:
            files = [piece.base for piece in slices if piece.base is not None]
            rows = read_as_stored(storage, self.snapshot.timeline, files, columns, read=read)
        return rows.withColumnsRenamed({name: f"{_OLDER}{name}" for name in ordering})

    def _is_delete(self) -> Column:
        rule = self.index.settings.merge_rule(Operation.UPSERT, self.snapshot.table.config)
        kinds = dict(self.found.dtypes)
        marks = [_is_marked(marker, kinds) for marker in rule.deletes if marker.column in kinds]
        marks += [F.col(MOVED)] if MOVED in kinds else []
        return reduce(Column.__or__, marks, F.lit(False))

    def _refuse_filling(self, groups: set[tuple[str, str]]) -> BadInput:
        key = self.index.settings.moving_key
        message = (
            f"rows of the input have keys that lie in other partitions, as in {min(groups)[0]!r}, and the table fills"
            f" the nulls of a row from the one before it, which is not done across partitions: set {key}=false, so that"
            " they are updated where they are"
        )
        return BadInput(message, key=key, partitions=sorted({partition for partition, _ in groups}))


def _find_wins(ours: Sequence[Column], theirs: Sequence[Column]) -> Column:
    """Whether ours are not less than theirs, compared one after the other."""
    wins = F.lit(True)
    for own, other in reversed(list(zip(ours, theirs, strict=True))):
        is_greater = F.coalesce(own > other, own.isNotNull() & other.isNull())
        wins = F.when(own.eqNullSafe(other), wins).otherwise(is_greater)
    return wins


def _is_marked(marker: DeleteMarker, kinds: dict[str, str]) -> Column:
    column = column_named(marker.column)
    if marker.value is not None:
        text, value = column.cast("string"), marker.value
        return F.coalesce(F.lower(text) == value.lower() if marker.any_case else text == value, F.lit(False))
    return F.coalesce(column, F.lit(False)) if kinds[marker.column] == "boolean" else F.lit(False)
