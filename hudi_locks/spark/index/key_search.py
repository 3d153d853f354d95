"""How the keys of rows are looked up in base files, if the rows are not too many: each file is searched for them.

The keys come to the driver. Few keys in few files it finds by itself; more it sends to the tasks that read the files.
Footers spare what cannot have them: row groups by the ranges of their keys, and under a bloom index whole files by
their filters. Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.spark._compat import collect_columns, local_rows, run_in_workers
from hudi_locks.spark.reading.files import text_columns
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table import PARTITION_PATH, RECORD_KEY, BaseFile, search_base_file

__all__ = ["MOST_KEYS", "GroupCounts", "LookedUp", "search_files"]

MOST_KEYS: Final = 500_000
"""Keys of more rows are not sent to every task; Spark joins them with all keys of the files."""
_FEW_KEYS: Final = 10_000
_FEW_FILES: Final = 16
_FEW_BYTES: Final = 64 << 20
"""So many keys the driver has found in so many files before Spark has begun a task; more is for the executors."""
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


@dataclass(frozen=True)
class LookedUp:
    """What a lookup of the keys of some rows came to.

    Attributes:
        rows: Keys that files have, as often as they have them, or the rows themselves; with ids of file groups.
        counts: How many of the rows are of each file group, by partition path and id, None for rows of new keys; None
            if only Spark knows.
    """

    rows: DataFrame
    counts: GroupCounts | None = None


@dataclass(frozen=True)
class _Search:
    """Looks for keys in files. Picklable; made on the driver, called there and on executors.

    Attributes:
        storage: Of the table.
        wanted: The keys.
        by_filter: See `search_base_file`.
        file_id: Name of the column with the ids of file groups.
    """

    storage: Storage
    wanted: _WantedKeys
    by_filter: bool
    file_id: str

    @property
    def columns(self) -> pa.Schema:
        """Of what is found."""
        return text_columns(RECORD_KEY, PARTITION_PATH, self.file_id)

    def find(self, file: BaseFile) -> list[pa.RecordBatch]:
        """The keys that are in this file, with its partition path and the id of its file group."""
        keys = self.wanted.of(file.partition)
        found = search_base_file(self.storage, file.path, keys, by_filter=self.by_filter)
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
    rows: DataFrame, storage: Storage, files: Sequence[BaseFile], *, by_partition: bool, by_filter: bool, file_id: str
) -> LookedUp:
    """The keys of some rows that are in base files. Collects the keys when it is called.

    Spark is not told to broadcast what tasks find: it would give a search up that takes longer than
    `spark.sql.broadcastTimeout`.

    Args:
        rows: With record keys and partition paths; at most `MOST_KEYS`, and persisted, since they are read once more.
        storage: Of the table.
        files: At least one.
        by_partition: Whether a key is looked for in the files of its row's partition alone.
        by_filter: See `search_base_file`.
        file_id: Name of the column with the id of the file group, beside record key and partition path of the file.
    """
    told = text_columns(PARTITION_PATH, RECORD_KEY) if by_partition else text_columns(RECORD_KEY)
    asked = collect_columns(rows.select(*told.names)).cast(told)
    search = _Search(storage, _WantedKeys.among(asked, by_partition=by_partition), by_filter, file_id)
    if len(asked) <= _FEW_KEYS and _are_few(files):
        known = search.find_in_all(files)
        counts = _count_rows(asked, known, file_id) if by_partition else None
        columns = dict.fromkeys(known.column_names, "string")
        found = local_rows(rows.sparkSession, columns, zip(*known.to_pydict().values(), strict=True))
        return LookedUp(F.broadcast(found), counts)  # Spark could broadcast the rows, which come in another order then
    return LookedUp(_search_in_tasks(rows.sparkSession, search, files))


def _are_few(files: Sequence[BaseFile]) -> bool:
    return len(files) <= _FEW_FILES and sum(file.size for file in files) <= _FEW_BYTES


def _search_in_tasks(spark: SparkSession, search: _Search, files: Sequence[BaseFile]) -> DataFrame:
    tasks = min(len(files), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    packs = tuple(tuple(files[number::tasks]) for number in range(tasks))
    columns = ", ".join(f"{name} string" for name in search.columns.names)
    return run_in_workers(spark.range(0, tasks, 1, tasks), _SearchTask(search, packs), columns)


def _count_rows(asked: pa.Table, known: pa.Table, file_id: str) -> GroupCounts:
    """By partition path and file group, None for what is not known."""
    located = asked.join(known, [RECORD_KEY, PARTITION_PATH], join_type="left outer")
    counted = located.group_by([PARTITION_PATH, file_id]).aggregate([([], "count_all")])
    return {(row[PARTITION_PATH], row[file_id]): row["count_all"] for row in counted.to_pylist()}
