"""The simple index: the keys of the table are joined with the keys of the input (Hudi's SIMPLE index)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.format.claim import FileGroupId
from hudi_locks.spark.index.absent_keys import MissedKeys
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.reading.file_index import read_files, text_columns
from hudi_locks.spark.writing.placement import FOUND, GROUP, RESERVED, ListedGroups, Placement
from hudi_locks.spark.writing.sizing import FileSizing
from hudi_locks.storage import Storage
from hudi_locks.table import PARTITION_PATH, RECORD_KEY, BaseFile

__all__ = ["SimpleIndex", "choose_group", "choose_rows"]

_SHARES = f"{RESERVED}shares"


@dataclass(frozen=True)
class SimpleIndex:
    """Finds the file group of a key by reading the keys of the partitions that the input touches. Runs on the driver.

    Attributes:
        storage: Of the table.
        sizing: How new rows are cut into files.
        planned: (partition path, file id) of file groups that take no new rows, since a plan will replace them.
    """

    storage: Storage
    sizing: FileSizing
    planned: frozenset[tuple[str, str]] = frozenset()

    def tag(self, rows: DataFrame, base_files: Sequence[BaseFile]) -> DataFrame:
        """Add GROUP, the id of the file group that holds the key; null for a key that is new to its partition."""
        return self.locate(rows, base_files, GROUP)

    def locate(self, rows: DataFrame, base_files: Sequence[BaseFile], column: str) -> DataFrame:
        """Add, as `column`, the id of the file group among those of `base_files` that holds the key, or null."""
        if not base_files:
            return rows.withColumn(column, F.lit(None).cast("string"))
        paths = [self.storage.native(file.path) for file in base_files]
        schema = text_columns(RECORD_KEY, PARTITION_PATH)
        file_id = F.substring_index(F.col("_metadata.file_name"), "_", 1)
        known = read_files(rows.sparkSession, paths, schema).withColumn(column, file_id)
        return rows.join(known, [RECORD_KEY, PARTITION_PATH], "left")

    def place(self, operation: Operation, tagged: DataFrame, base_files: Sequence[BaseFile]) -> Placement:
        """Give those rows of a tagged input file groups that the operation writes; the input should be persisted.

        Also what is not written rests on what the index found: a row that is left out, and a key that is nowhere.
        """
        counted = tagged.groupBy(PARTITION_PATH, GROUP).count().collect()
        fresh = {row[PARTITION_PATH]: row["count"] for row in counted if row[GROUP] is None}
        groups = frozenset(FileGroupId(row[PARTITION_PATH], row[GROUP]) for row in counted if row[GROUP] is not None)
        found = tagged.withColumn(FOUND, F.col(GROUP))
        placement = self._share(found, base_files, {} if operation is Operation.DELETE else fresh)
        assigned = placement.rows.withColumn(GROUP, choose_group(operation))
        absent = tagged.where(F.col(GROUP).isNull()).select(RECORD_KEY, PARTITION_PATH)
        missed = MissedKeys(absent, self.storage, frozenset(fresh))
        rows = choose_rows(assigned)
        return replace(placement, rows=rows, absent_keys=missed, read_groups=groups, assigned=assigned)

    def place_new(self, rows: DataFrame, base_files: Sequence[BaseFile], counts: Mapping[str, int]) -> Placement:
        """Give rows file groups without looking at their keys."""
        return self._share(rows.withColumn(GROUP, F.lit(None).cast("string")), base_files, counts)

    def _share(self, tagged: DataFrame, base_files: Sequence[BaseFile], new_rows: Mapping[str, int]) -> Placement:
        open_files = [file for file in base_files if (file.partition, file.file_id) not in self.planned]
        shares = self.sizing.share_rows(new_rows, open_files)
        placed = self._fill(tagged, shares) if shares else tagged
        new_groups = sum(len(set(ids)) for ids in shares.values())
        bases = {(file.partition, file.file_id): file for file in base_files}
        return Placement(placed, ListedGroups(bases), len(base_files) + new_groups)

    def _fill(self, tagged: DataFrame, shares: dict[str, list[str]]) -> DataFrame:
        listed = tagged.sparkSession.createDataFrame(
            list(shares.items()), f"{PARTITION_PATH} string, {_SHARES} array<string>"
        )
        position = F.pmod(F.xxhash64(RECORD_KEY), F.size(_SHARES)) + 1
        drawn = F.element_at(F.col(_SHARES), position.cast("int"))
        joined = tagged.join(F.broadcast(listed), PARTITION_PATH, "left")
        return joined.withColumn(GROUP, F.coalesce(GROUP, drawn)).drop(_SHARES)


def choose_group(operation: Operation) -> Column:
    """The file group that a row is written to, or null, by FOUND, and by GROUP where it would go if that is null."""
    if operation is Operation.DELETE:
        return F.col(FOUND)
    if operation is Operation.UPSERT:
        return F.coalesce(FOUND, GROUP)
    return F.when(F.col(FOUND).isNull(), F.col(GROUP))


def choose_rows(assigned: DataFrame) -> DataFrame:
    """Those that are written."""
    return assigned.where(F.col(GROUP).isNotNull()).drop(FOUND)
