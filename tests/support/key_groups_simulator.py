"""A simulator of writers that bring partitions at once to a table with a record index by partition.

A write that brings a partition begins its file groups of the index, and their number says where each key is. The index
is of real files: what it says in the end is read as every reader reads it.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from golden_metadata import read_golden
from transaction_harness import write_file
from transaction_simulator import Simulator
from transaction_store import SteppedStorage

from hudi_locks.config import table_keys
from hudi_locks.errors import StorageError, WriteError
from hudi_locks.format import (
    METADATA_FOLDER,
    BaseFileName,
    CommitMetadata,
    LogFileName,
    MetadataPartition,
    WriteStat,
    encode_properties,
    format_time,
)
from hudi_locks.format.key_groups import KeyGroups, name_key_group
from hudi_locks.format.metadata_keys import KEY_CHANGES
from hudi_locks.metadata_table import MetadataTable, StagedLog, encode_record_log, find_keys
from hudi_locks.table import PROPERTIES_PATH, TableConfig
from hudi_locks.timeline import LAYOUT_2, Timeline
from hudi_locks.transaction import Outcome, Transaction, Transactions

_VERSION = 9
_PART = MetadataPartition.RECORD_INDEX
_FOLDER = f"{METADATA_FOLDER}/{_PART.value}"
_LATER_MS = 100_000_000_000
"""The golden files are of 2026, and the clock of a simulator begins earlier."""
_CONFIG = TableConfig("t", ("id",), ("part",), version=_VERSION)


class KeyGroupsSimulator(Simulator):
    """Each writer brings a row, whose key is its name, to each of some partitions; told to begin anew, it does."""

    max_steps = 30_000

    def __init__(self, rng: random.Random, **how: Any) -> None:
        super().__init__(rng, **how)
        self.places: dict[str, Collection[str]] = {}
        self.reasons: list[str] = []
        golden = read_golden("1.2.0")
        for path, data in golden.items():
            if path.startswith("cow/"):
                self.files.replace(f"{METADATA_FOLDER}/{path.removeprefix('cow/')}", data)
        defined = {"indexDefinitions": {_PART.value: {"indexOptions": {"isPartitioned": "true"}}}}
        self.files.replace(".hoodie/.index_defs/index.json", json.dumps(defined).encode())
        named = {table_keys.METADATA_PARTITIONS.name: f"files,{_PART.value}"}
        self.files.replace(PROPERTIES_PATH, encode_properties({**_CONFIG.to_properties(), **named}))

    def now_ms(self) -> int:
        return super().now_ms() + _LATER_MS

    def transactions(self, name: str, *, least: int = 1, **how: Any) -> Transactions:
        """Processes that know of the metadata table since they loaded the table."""
        made = super().transactions(name, **how)
        settings = replace(made.coordinator.settings, fresh_key_groups=least)
        made.coordinator.__dict__.update(keeps_metadata=True, settings=settings)
        return made

    # ---- what processes do ----
    def bring(self, name: str, partitions: Collection[str], *, least: int, attempts: int = 3) -> None:
        """A writer that gives a new partition so many file groups of the index."""
        writer = self.transactions(name, least=least, skew_ms=self.rng.choice((0, 0, -40, 40)))
        for number in range(attempts):
            with contextlib.suppress(StorageError):
                try:
                    if self._bring_once(writer, f"{name}.{number}", partitions) is not Outcome.ABORTED:
                        return
                except WriteError:
                    continue

    def _bring_once(self, writer: Transactions, key: str, partitions: Collection[str]) -> Outcome:
        tx = writer.begin(self.action, "INSERT")
        self.begun[key], self.places[key] = tx.instant, partitions
        stats = [self._write_row(tx, key, partition) for partition in partitions]
        logs = [self._write_key(tx, key, partition) for partition in partitions]
        result = tx.publish(CommitMetadata.of(stats, "INSERT", schema=None), key_logs=logs)
        self.reasons.append(result.reason)
        outcome = self._resolve(writer, tx.instant) if result.outcome is Outcome.UNKNOWN else result.outcome
        self.outcomes[key] = outcome
        return outcome

    def _write_row(self, tx: Transaction, key: str, partition: str) -> WriteStat:
        name, data = str(BaseFileName(f"{key}-0", tx.instant)), json.dumps([key]).encode()
        ticket = write_file(tx.files, partition, name, data)
        path, size = f"{partition}/{name}", len(data)
        return WriteStat(partition, f"{key}-0", path, num_writes=1, file_size_bytes=size, ticket=ticket)

    def _write_key(self, tx: Transaction, key: str, partition: str) -> StagedLog:
        """As a task does: it knows of the index what the driver told it when the write began."""
        indexed = tx.files.key_groups
        [(group, _)] = indexed.spread(pa.array([key]), partition)
        told = pa.table([[key], [partition], [f"{key}-0"], [False]], schema=KEY_CHANGES)
        data, records = encode_record_log(tx.instant, told, _VERSION)
        staged = tx.files.storage.stage(f"{_FOLDER}/{LogFileName(group, tx.instant)}", instant=tx.instant)
        with staged.open() as file:
            file.write(data)
        return StagedLog(group, len(data), records, staged.seal())

    def leave_logs(self, partition: str, count: int) -> None:
        """A JVM writer makes the first logs of a partition, and fails before its delta commit."""
        storage, requested = SteppedStorage(self), format_time(self.now_ms())
        for number in range(count):
            storage.create_if_absent(f"{_FOLDER}/.{name_key_group(number, partition)}_{requested}.log.1_0-0-0", b"")

    # ---- what must hold in the end ----
    def content(self, requested: str) -> tuple[str, list[str]] | None:
        for key, instant in self.begun.items():
            if instant == requested:
                paths = [f"{path}/{BaseFileName(f'{key}-0', requested)}" for path in self.places[key]]
                return None if not all(map(self.files.exists, paths)) else (f"{key}-0", [key])
        return None

    def wrong(self) -> str:
        return super().wrong() or self._wrong_index() or self._wrong_end()

    def count_groups(self) -> Mapping[str, int]:
        """How many file groups each partition has."""
        return KeyGroups.of(self._list_slices()).counts

    def _list_slices(self) -> dict[str, Any]:
        metadata = MetadataTable(self.files, frozenset({"files", _PART.value}), _VERSION, _VERSION)
        view = metadata.view(Timeline.load(self.files, LAYOUT_2))
        return {piece.file_id: piece for piece in view.list_slices(_PART)}

    def _wrong_index(self) -> str:
        """A key that readers do not find where the number of file groups of its partition says, or a strange one."""
        slices, done = self._list_slices(), set(self.done())
        groups = KeyGroups.of(slices)
        for key, requested in self.begun.items():
            for partition in self.places[key]:
                found = self._look_up(key, slices, groups.spread(pa.array([key]), partition))
                if (requested in done) is not (found == [(partition, f"{key}-0")]):
                    return f"{key} of {partition}, completed: {requested in done}, is found by readers at {found}"
        return ""

    def _wrong_end(self) -> str:
        """Who comes once everybody is gone has nobody to give way to."""
        is_in = self.outcomes.get("last.0") is Outcome.COMMITTED
        return "" if is_in else f"the last writer is refused: {self.reasons[-1:]}"

    def _look_up(self, key: str, slices: Mapping[str, Any], asked: Iterable[tuple[str, pa.Array]]) -> list[Any]:
        there = [slices[group] for group, _ in asked if group in slices]
        tables = [find_keys(self.files, piece, pa.array([key])) for piece in there]
        return [(row["path"], row["file_id"]) for table in tables for row in table.to_pylist()]


def play_new_partitions(seed: int, *, rng: random.Random | None = None) -> KeyGroupsSimulator:
    """Three or four writers of one or two partitions, a failing JVM, one that takes the living for dead; no lock."""
    simulator = KeyGroupsSimulator(
        rng or random.Random(seed), crash=(0.0, 0.002, 0.004)[seed % 3], lost=(0.0, 0.1)[seed % 2]
    )
    least = (2, 3) if seed % 4 else (2,)
    for number in range(3 + seed % 2):
        partitions = simulator.rng.choice((("n",), ("m",), ("m", "n")))
        bring = partial(simulator.bring, f"w{number}", partitions, least=simulator.rng.choice(least))
        simulator.spawn(f"w{number}", bring, may_crash=number == 0)
    if seed % 2 == 0:
        simulator.spawn("jvm", partial(simulator.leave_logs, "n", simulator.rng.choice((1, 3, 4))), may_crash=True)
    if seed % 5 == 3:
        simulator.spawn("undertaker", simulator.cleaner)
    simulator.run()
    simulator.recover()
    simulator.bring("last", ("m", "n"), least=4)
    return simulator
