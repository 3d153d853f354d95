"""How the keys of rows are looked up in base files, if the rows are not too many: each file is searched for them.

The keys come to the driver. Few keys in few files it finds by itself; more it sends to the tasks that read the files.
Footers spare what cannot have them: row groups by the ranges of their keys, and under a bloom index whole files by
their filters. Runs on the driver.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.spark._compat import collect_columns, local_rows, run_in_workers
from hudi_locks.spark.reading.files import text_columns
from hudi_locks.spark.writing.rows import literal_map
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table import PARTITION_PATH, RECORD_KEY, BaseFile, VirtualKeys, search_base_file

__all__ = ["FEW_KEYS", "MOST_KEYS", "FoundKeys", "GroupCounts", "KeySearch", "search_files"]

MOST_KEYS: Final = 500_000
"""Keys of more rows are not sent to every task; Spark joins them with all keys of the files."""
FEW_KEYS: Final = 10_000
_FEW_FILES: Final = 16
_FEW_BYTES: Final = 64 << 20
"""So many keys the driver has found in so many files before Spark has begun a task; more is for the executors."""
_FEW_CONSTANTS: Final = 256
_SHORT_BYTES: Final = 32 << 10
"""So many found keys, of so many bytes, are a constant of a query; a row is compared with all of its partition."""
_TASKS_PER_CORE: Final = 2


@dataclass(frozen=True)
class _WantedKeys:
    """The keys of some rows. Picklable.

    Attributes:
        lists: Those of a partition each, or of all rows.
        places: By partition path the number of its list; None if there is one list for all.
    """

    lists: pa.ListArray
    places: Mapping[str, int] | None

    @classmethod
    def among(cls, rows: pa.Table, *, by_partition: bool) -> _WantedKeys:
        """Those of rows with record keys, and with partition paths if each is looked for in its own."""
        if not by_partition:
            keys = rows.column(RECORD_KEY).combine_chunks().unique()
            return cls(pa.ListArray.from_arrays([0, len(keys)], keys), None)
        grouped = rows.group_by(PARTITION_PATH).aggregate([(RECORD_KEY, "distinct")])
        lists = grouped.column(f"{RECORD_KEY}_distinct").combine_chunks()
        places = {path: place for place, path in enumerate(grouped.column(PARTITION_PATH).to_pylist())}
        return cls(lists, places)

    def of(self, partition: str) -> pa.Array:
        """Those that may be in files of this partition."""
        place = 0 if self.places is None else self.places.get(partition)
        found = self.lists.values[:0] if place is None else self.lists[place].values
        return found.drop_null()


GroupCounts = Mapping[tuple[str, "str | None"], int]
"""Rows by partition path and id of file group; None for rows of new keys."""


@dataclass(frozen=True)
class FoundKeys:
    """Keys of some rows that base files have, as often as they have them.

    Attributes:
        spark: Where the rows are.
        file_id: Name of the column with the ids of file groups, beside record keys and partition paths.
        keys: Of all rows, on the driver; None where Spark alone has them.
        table: What was found, on the driver; None where tasks find it.
        tasks: What tasks find, else.
    """

    spark: SparkSession
    file_id: str
    keys: pa.Table | None = None
    table: pa.Table | None = None
    tasks: DataFrame | None = None

    @property
    def frame(self) -> DataFrame:
        """What was found, for Spark.

        Of what the driver found it is told to broadcast it: it could broadcast the rows of the input, which come in
        another order then. What tasks find it is not: it would give a search up that takes longer than
        `spark.sql.broadcastTimeout`.
        """
        if self.table is None:
            return cast("DataFrame", self.tasks)
        columns = dict.fromkeys(self.table.column_names, "string")
        return F.broadcast(local_rows(self.spark, columns, zip(*self.table.to_pydict().values(), strict=True)))

    def join(self, rows: DataFrame) -> DataFrame:
        """The rows with the id of the file group in their partition that has their key, or null.

        Few keys become a constant of the query, which Spark need neither join nor broadcast.
        """
        if self.table is None or not self._is_short() or self._has_key_twice():
            return rows.join(self.frame, [RECORD_KEY, PARTITION_PATH], "left")
        places = defaultdict[str, dict[str, str]](dict)
        for row in self.table.to_pylist():
            places[row[PARTITION_PATH]][row[RECORD_KEY]] = row[self.file_id]
        of_partition = F.element_at(literal_map(places, "map<string,string>"), F.col(PARTITION_PATH))
        return rows.withColumn(self.file_id, F.element_at(of_partition, F.col(RECORD_KEY)))

    def _is_short(self) -> bool:
        found = cast("pa.Table", self.table)
        return len(found) <= _FEW_CONSTANTS and found.nbytes <= _SHORT_BYTES

    def _has_key_twice(self) -> bool:
        places = cast("pa.Table", self.table).select([RECORD_KEY, PARTITION_PATH])
        return len(places.group_by(places.column_names).aggregate([])) < len(places)

    def count(self) -> GroupCounts | None:
        """How many of the joined rows are of each file group; None if only Spark knows."""
        if self.table is None or self.keys is None:
            return None
        located = self.keys.join(self.table, [RECORD_KEY, PARTITION_PATH], join_type="left outer")
        counted = located.group_by([PARTITION_PATH, self.file_id]).aggregate([([], "count_all")])
        return {(row[PARTITION_PATH], row[self.file_id]): row["count_all"] for row in counted.to_pylist()}


@dataclass(frozen=True)
class KeySearch:
    """How keys are looked for in base files. Picklable.

    Attributes:
        storage: Of the table.
        file_id: Name of the column with the ids of file groups.
        by_partition: Whether a key is looked for in the files of its row's partition alone.
        by_filter: See `search_base_file`.
        virtual_keys: See `search_base_file`.
    """

    storage: Storage
    file_id: str
    by_partition: bool
    by_filter: bool
    virtual_keys: VirtualKeys | None = None

    def of(self, keys: pa.Table) -> _Search:
        """For these keys."""
        return _Search(self, _WantedKeys.among(keys, by_partition=self.by_partition))


@dataclass(frozen=True)
class _Search:
    """Looks for keys in files. Picklable; made on the driver, called there and on executors.

    Attributes:
        how: How they are looked for.
        wanted: The keys.
    """

    how: KeySearch
    wanted: _WantedKeys

    @property
    def columns(self) -> pa.Schema:
        """Of what is found."""
        return text_columns(RECORD_KEY, PARTITION_PATH, self.how.file_id)

    def find(self, file: BaseFile) -> list[pa.RecordBatch]:
        """The keys that are in this file, with its partition path and the id of its file group."""
        keys = self.wanted.of(file.partition)
        how = self.how
        found = search_base_file(how.storage, file.path, keys, by_filter=how.by_filter, virtual_keys=how.virtual_keys)
        return [self._name(keys, file) for chunked in found for keys in chunked.chunks]

    def find_in_all(self, files: Sequence[BaseFile]) -> pa.Table:
        """The same of several files."""
        found = map_in_threads(self.find, files)
        return pa.Table.from_batches([batch for batches in found for batch in batches], self.columns)

    def _name(self, keys: pa.Array, file: BaseFile) -> pa.RecordBatch:
        place = [pa.repeat(pa.scalar(text), len(keys)) for text in (file.partition, file.file_id)]
        return pa.RecordBatch.from_arrays([keys, *place], self.columns.names)


@dataclass(frozen=True)
class _SearchTask:
    """Searches the packs of files whose numbers it is given. Picklable; made on the driver, called on executors.

    Attributes:
        search: What is looked for.
        packs: Files, by the task that searches them.
    """

    search: _Search
    packs: tuple[tuple[BaseFile, ...], ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """See `_Search.find`."""
        for batch in batches:
            for file in (file for number in batch.column(0).to_pylist() for file in self.packs[number]):
                yield from self.search.find(file)


def search_files(
    search: KeySearch, rows: DataFrame, files: Sequence[BaseFile], *, keys: pa.Table | None = None
) -> FoundKeys:
    """The keys of some rows that are in base files. Collects the keys when it is called.

    Args:
        search: How they are looked for.
        rows: With record keys and partition paths; at most `MOST_KEYS`, and persisted, since they are read once more.
        files: At least one.
        keys: Record keys and partition paths of all rows, where the driver has them.
    """
    asked = _collect_keys(rows) if keys is None else keys
    if len(asked) <= FEW_KEYS and _are_few(files):
        return FoundKeys(rows.sparkSession, search.file_id, asked, search.of(asked).find_in_all(files))
    tasks = _search_in_tasks(rows.sparkSession, search.of(asked), files)
    return FoundKeys(rows.sparkSession, search.file_id, tasks=tasks)


def _collect_keys(rows: DataFrame) -> pa.Table:
    told = text_columns(RECORD_KEY, PARTITION_PATH)
    return collect_columns(rows.select(*told.names)).cast(told)


def _are_few(files: Sequence[BaseFile]) -> bool:
    return len(files) <= _FEW_FILES and sum(file.size for file in files) <= _FEW_BYTES


def _search_in_tasks(spark: SparkSession, search: _Search, files: Sequence[BaseFile]) -> DataFrame:
    tasks = min(len(files), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    packs = tuple(tuple(files[number::tasks]) for number in range(tasks))
    columns = ", ".join(f"{name} string" for name in search.columns.names)
    return run_in_workers(spark.range(0, tasks, 1, tasks), _SearchTask(search, packs), columns)
