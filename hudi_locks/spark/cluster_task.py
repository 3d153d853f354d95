"""What an executor does with the rows that clustering brings together: write them as they come, and report.

Nothing here talks to Spark, as in `task`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from hudi_locks.markers import FinalFiles
from hudi_locks.spark.group_writer import GroupWriter, encode_stats
from hudi_locks.spark.placement import FileGroup
from hudi_locks.spark.task import split_by_group
from hudi_locks.table import BaseFileFormat

__all__ = ["ClusterTask"]


@dataclass(frozen=True)
class ClusterTask:
    """Writes the rows of one Spark partition, sorted as they are, to one new file group for each group of the plan.

    Picklable; made on the driver, called on executors. The rows keep their meta columns, so that a reader of changes
    does not see them again; only the name of their file is new.

    Attributes:
        files: Gives data files their names.
        schema: Of the base files, meta columns included.
        form: How they are encoded.
        seed: Makes the ids of the file groups, so that every attempt of a task makes the same.
    """

    files: FinalFiles
    schema: pa.Schema
    form: BaseFileFormat
    seed: uuid.UUID

    def __call__(self, batches: Iterable[pa.RecordBatch], part: int) -> Iterator[pa.RecordBatch]:
        """Take all rows of Spark partition number `part`, and yield one batch of stats."""
        writers: dict[tuple[str, int], GroupWriter] = {}
        try:
            for key, rows in split_by_group(batches):
                if key not in writers:
                    writers[key] = self._open(*key, part)
                writers[key].carry(rows)
            stats = [writer.finish() for writer in writers.values()]
        finally:
            for writer in writers.values():
                writer.__exit__()
        yield encode_stats([stat for stat in stats if stat is not None])

    def _open(self, partition: str, group: int, part: int) -> GroupWriter:
        file_id = f"{uuid.uuid5(self.seed, f'{partition}/{group}/{part}')}-0"
        return GroupWriter(self.files, self.schema, form=self.form, group=FileGroup(partition, file_id))
