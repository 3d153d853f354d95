"""The keys that a write did not find, looked for in what concurrent writes brought. Runs on the driver."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.spark.reading.file_index import read_files, text_columns
from hudi_locks.storage import Storage
from hudi_locks.table import COMMIT_TIME, PARTITION_PATH, RECORD_KEY

__all__ = ["MissedKeys"]

_SAMPLE: Final = 3


@dataclass(frozen=True)
class MissedKeys:
    """Keys that the index found in no file group; see `hudi_locks.transaction.AbsentKeys`.

    Attributes:
        rows: Their record keys and partition paths; asked once for each concurrent commit to the same partitions.
        storage: Of the table.
        partitions: Partitions where they were looked for.
    """

    rows: DataFrame
    storage: Storage
    partitions: frozenset[str]
    _known: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def find_among(self, paths: Collection[str], instant: str) -> tuple[str, ...]:
        """See `AbsentKeys.find_among`."""
        if instant not in self._known:
            self._known[instant] = self._look(paths, instant)
        return self._known[instant]

    def _look(self, paths: Collection[str], instant: str) -> tuple[str, ...]:
        schema = text_columns(COMMIT_TIME, RECORD_KEY, PARTITION_PATH)
        files = [self.storage.native(path) for path in sorted(paths)]
        theirs = read_files(self.rows.sparkSession, files, schema).where(F.col(COMMIT_TIME) == instant)
        both = self.rows.join(theirs, [RECORD_KEY, PARTITION_PATH], "leftsemi").limit(_SAMPLE).collect()
        return tuple(row[RECORD_KEY] for row in both)
