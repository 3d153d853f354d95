"""How the keys of rows are looked up in base files, if the rows are not too many: each file is searched for them.

The keys come to the driver, and from there to the tasks that read the files. Footers spare what cannot have them: row
groups by the ranges of their keys, and under a bloom index whole files by their filters. Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from hudi_locks.spark._compat import collect_columns, run_in_workers
from hudi_locks.spark.reading.files import text_columns
from hudi_locks.storage import Storage
from hudi_locks.table import PARTITION_PATH, RECORD_KEY, BaseFile, search_base_file

__all__ = ["MOST_KEYS", "search_files"]

MOST_KEYS: Final = 500_000
"""Keys of more rows are not sent to every task; Spark joins them with all keys of the files."""
_TASKS_PER_CORE: Final = 2
_COLLECTED: Final = text_columns(PARTITION_PATH, RECORD_KEY)


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
    def collect(cls, rows: DataFrame, *, by_partition: bool) -> _WantedKeys:
        """Ask Spark for them."""
        if not by_partition:
            keys = collect_columns(rows.select(RECORD_KEY)).column(RECORD_KEY).cast(pa.string()).unique()
            return cls(pa.ListArray.from_arrays([0, len(keys)], keys), None)
        found = collect_columns(rows.select(PARTITION_PATH, RECORD_KEY)).cast(_COLLECTED)
        grouped = found.group_by(PARTITION_PATH).aggregate([(RECORD_KEY, "distinct")])
        lists = grouped.column(f"{RECORD_KEY}_distinct").combine_chunks()
        places = {path: place for place, path in enumerate(grouped.column(PARTITION_PATH).to_pylist())}
        return cls(lists, places)

    def of(self, partition: str) -> pa.Array:
        """Those that may be in files of this partition."""
        place = 0 if self.places is None else self.places.get(partition)
        found = self.lists.values[:0] if place is None else self.lists[place].values
        return found.drop_null()


@dataclass(frozen=True)
class _SearchTask:
    """Searches the packs of files whose numbers it is given. Picklable; made on the driver, called on executors.

    Attributes:
        storage: Of the table.
        packs: Files, by the task that searches them.
        wanted: The keys.
        by_filter: See `search_base_file`.
        file_id: Name of the column with the ids of file groups.
    """

    storage: Storage
    packs: tuple[tuple[BaseFile, ...], ...]
    wanted: _WantedKeys
    by_filter: bool
    file_id: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The keys that are in these files, with their partition paths and the ids of their file groups."""
        for batch in batches:
            for file in (file for number in batch.column(0).to_pylist() for file in self.packs[number]):
                for keys in self._search(file):
                    place = [pa.repeat(pa.scalar(text), len(keys)) for text in (file.partition, file.file_id)]
                    yield pa.RecordBatch.from_arrays([keys, *place], [RECORD_KEY, PARTITION_PATH, self.file_id])

    def _search(self, file: BaseFile) -> Iterator[pa.Array]:
        keys = self.wanted.of(file.partition)
        for found in search_base_file(self.storage, file.path, keys, by_filter=self.by_filter):
            yield from found.chunks


def search_files(
    rows: DataFrame, storage: Storage, files: Sequence[BaseFile], *, by_partition: bool, by_filter: bool, file_id: str
) -> DataFrame:
    """The keys of some rows that are in base files, as often as they are there. Collects the keys when it is called.

    Spark is not told to broadcast them: it would give a search up that takes longer than `spark.sql.broadcastTimeout`.

    Args:
        rows: With record keys and partition paths; at most `MOST_KEYS`, and persisted, since they are read once more.
        storage: Of the table.
        files: At least one.
        by_partition: Whether a key is looked for in the files of its row's partition alone.
        by_filter: See `search_base_file`.
        file_id: Name of the column with the id of the file group, beside record key and partition path of the file.
    """
    wanted, spark = _WantedKeys.collect(rows, by_partition=by_partition), rows.sparkSession
    tasks = min(len(files), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    packs = tuple(tuple(files[number::tasks]) for number in range(tasks))
    task = _SearchTask(storage, packs, wanted, by_filter, file_id)
    columns = f"{RECORD_KEY} string, {PARTITION_PATH} string, {file_id} string"
    return run_in_workers(spark.range(0, tasks, 1, tasks), task, columns)
