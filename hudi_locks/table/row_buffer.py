"""Incoming rows of several file groups, held in memory up to a budget and on local disk beyond it."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Generic, TypeVar

import pyarrow as pa

__all__ = ["RowBuffers"]

K = TypeVar("K", bound=Hashable)


class RowBuffers(Generic[K]):
    """One growing table for each key. When all of them exceed the budget, the largest goes to a file.

    What went to disk is mapped into memory by `take`, so that the system keeps in memory what is in use. Context
    manager: the files go with it. Runs on executors; not thread-safe.

    Args:
        schema: Of all rows.
        budget_bytes: How much may stay in memory.
    """

    def __init__(self, schema: pa.Schema, budget_bytes: int) -> None:
        self._schema = schema
        self._budget_bytes = budget_bytes
        self._folder = tempfile.TemporaryDirectory(prefix="hudi-locks-")
        self._memory: dict[K, list[pa.RecordBatch]] = {}
        self._sizes: dict[K, int] = {}
        self._spills: dict[K, _Spill] = {}

    def add(self, key: K, batch: pa.RecordBatch) -> None:
        """Append rows to the table of `key`."""
        self._memory.setdefault(key, []).append(batch)
        self._sizes[key] = self._sizes.get(key, 0) + batch.nbytes
        if sum(self._sizes.values()) > self._budget_bytes:
            self._spill(max(self._sizes, key=self._sizes.__getitem__))

    def keys(self) -> Iterator[K]:
        """The keys seen, in the order of their first rows."""
        return iter(self._memory)

    def take(self, key: K) -> pa.Table:
        """The whole table of `key`, which is forgotten here."""
        rows = pa.Table.from_batches(self._memory.pop(key), self._schema)
        self._sizes.pop(key, None)
        spill = self._spills.pop(key, None)
        return pa.concat_tables([spill.map(), rows]) if spill else rows

    def _spill(self, key: K) -> None:
        spill = self._spills.get(key)
        if spill is None:
            path = Path(self._folder.name) / f"{len(self._spills)}-{abs(hash(key))}.arrow"
            spill = self._spills[key] = _Spill(path, self._schema)
        for batch in self._memory[key]:
            spill.write(batch)
        self._memory[key], self._sizes[key] = [], 0

    def __enter__(self) -> RowBuffers[K]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for spill in self._spills.values():
            spill.close()
        self._folder.cleanup()


class _Spill:
    """An Arrow file that is written once and then mapped."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._writer = pa.ipc.new_file(str(path), schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()

    def map(self) -> pa.Table:
        self.close()
        return pa.ipc.open_file(pa.memory_map(str(self._path))).read_all()
