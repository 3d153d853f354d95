"""The acts of the demonstration: load, let the writers loose, read back with a program that is not ours."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_locks.cli.demo.flights import KEY, Correction, apply_corrections, read_flights
from hudi_locks.cli.demo.session import start_session
from hudi_locks.cli.demo.writer import WriterOrder
from hudi_locks.errors import WriteError
from hudi_locks.spark import HoodieTable, WriteResult
from hudi_locks.storage import LocalStorage, map_in_threads, open_storage

__all__ = ["Stage"]

_FAILURE_LINES = 15


@dataclass(frozen=True)
class Stage:
    """Where the demonstration takes place.

    Attributes:
        folder: Empty, for what the writers report, and for the table unless a store keeps it.
        table_path: Of the table.
        options: Hudi's keys for every writer.
        corrections: What each writer does.
    """

    folder: Path
    table_path: str
    options: Mapping[str, str]
    corrections: Sequence[Correction]

    @property
    def flights_path(self) -> str:
        """The flights as loaded."""
        return str(self.folder / "flights.parquet")

    def load(self) -> WriteResult:
        """Read the flights and bulk insert them into a new table, a partition for each month."""
        pq.write_table(read_flights(), self.flights_path)
        spark = start_session("load", self.folder, cores=2)
        table = HoodieTable.create(
            spark,
            self.table_path,
            name="flights",
            record_key=KEY,
            partition_by="month",
            ordering="version",
            options=self.options,
        )
        with table:
            result = table.bulk_insert(spark.read.parquet(self.flights_path))
        spark.stop()
        return result

    def run_writers(self) -> list[dict[str, Any]]:
        """Run every writer in a process of its own, all at once; what each of them reports.

        Raises:
            WriteError: A writer failed; the end of what it printed is in the message.
        """
        orders = [self._order(number, correction) for number, correction in enumerate(self.corrections, 1)]
        running = [self._start(order) for order in orders]
        failed = [(order, text) for order, (process, text) in zip(orders, map(_wait, running), strict=True) if process]
        for order, text in failed:
            last = "\n".join(text.splitlines()[-_FAILURE_LINES:])
            raise WriteError(f"writer {order.number} ({order.correction.name}) failed:\n{last}", output=text)
        return [json.loads((self.folder / f"result-{order.number}.json").read_text()) for order in orders]

    def read_with_spark(self) -> pa.Table:
        """All rows, by our DataFrame reader."""
        spark = start_session("read", self.folder, cores=2)
        path = self.folder / "read.parquet"
        table = HoodieTable.load(spark, self.table_path, options=self.options)
        table.read(meta_columns=False).write.parquet(str(path))
        spark.stop()
        return pq.read_table(path)

    def read_with_hudi_rs(self) -> pa.Table:
        """All rows, by hudi-rs; of a table in a store from a copy of its files, since it does not reach every store."""
        from hudi import HudiTableBuilder

        batches = HudiTableBuilder.from_base_uri(self._bring_here()).build().read()
        return pa.Table.from_batches([pa.record_batch(batch) for batch in batches])

    def _bring_here(self) -> str:
        storage = open_storage(self.table_path, self.options)
        if isinstance(storage, LocalStorage):
            return self.table_path
        copy = LocalStorage(str(self.folder / "copy"))
        paths = [path for path, _ in storage.walk("") if not path.endswith(".crc")]
        map_in_threads(lambda path: copy.create_if_absent(path, storage.read(path) or b""), paths)
        return copy.base

    def compute_expected(self) -> pa.Table:
        """All rows as they must be, computed from the input without any table."""
        return apply_corrections(pq.read_table(self.flights_path), self.corrections)

    def _order(self, number: int, correction: Correction) -> WriterOrder:
        return WriterOrder(
            number, len(self.corrections), self.table_path, str(self.folder), self.flights_path,
            dict(self.options), correction,
        )  # fmt: skip

    def _start(self, order: WriterOrder) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "hudi_locks.cli.demo.writer", str(order.save())]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # noqa: S603


def _wait(process: subprocess.Popen[str]) -> tuple[int, str]:
    text, _ = process.communicate()
    return process.returncode, text
