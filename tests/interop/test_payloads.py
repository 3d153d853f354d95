"""Tables whose payload class says how rows of one key are merged: JVM Hudi and we make the same of the same rows."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from other_readers import COLUMNS, OURS, SCHEMA, Jvm

from hudi_locks.spark import HoodieTable, write

pytestmark = pytest.mark.interop

PAYLOADS = "org.apache.hudi.common.model."
Row = tuple[Any, ...]
KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
NAMES = ["PartialUpdateAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload", "EventTimeAvroPayload"]
FIRST: list[Row] = [(f"k{number}", "eu", 2, float(number), f"v{number}") for number in range(4)]


class Merged:
    """A table with a payload class, as writers of both kinds reach it."""

    def __init__(self, jvm: Jvm, spark: Any, path: str, kind: str, payload: str) -> None:
        self.jvm, self.spark, self.path = jvm, spark, path
        self.shape = {
            "hoodie.datasource.write.payload.class": PAYLOADS + payload,
            "hoodie.datasource.write.table.type": kind,
        }

    def copy(self, path: str) -> Merged:
        shutil.copytree(self.path, path)
        twin = Merged(self.jvm, self.spark, path, "", "")
        twin.shape = self.shape
        return twin

    def theirs(self, rows: list[Row], operation: str = "upsert") -> None:
        options = {**self.shape, "hoodie.metadata.enable": "false"}
        self.jvm.put(self.path, rows, SCHEMA, options=options, operation=operation)

    def ours(self, rows: list[Row]) -> None:
        with HoodieTable.load(self.spark, self.path, options={**OURS, **self.shape}) as table:
            table.upsert(self.spark.createDataFrame(rows, SCHEMA).coalesce(1))

    def read(self) -> list[Row]:
        """The rows, after both readers agreed on them."""
        with HoodieTable.load(self.spark, self.path, options=OURS) as table:
            found = sorted((tuple(row) for row in table.read().select(*COLUMNS).collect()), key=repr)
        assert self.jvm.read_path(self.path) == found
        return found


def make_rows(dice: random.Random) -> list[Row]:
    """Newer rows, older ones and some as old, whose columns are sometimes null; a key once or several times."""
    return [
        (
            f"k{dice.randrange(6)}",
            "eu",
            dice.randrange(4),
            dice.choice([None, float(dice.randrange(100))]),
            dice.choice([None, f"v{dice.randrange(100)}"]),
        )
        for _ in range(6)
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("payload", NAMES)
def test_both_make_the_same_of_the_same_rows(jvm: Jvm, spark: Any, tmp_path: Path, payload: str, kind: str) -> None:
    table = Merged(jvm, spark, str(tmp_path / "theirs"), kind, payload)
    table.theirs(FIRST, "insert")
    ours = table.copy(str(tmp_path / "ours"))
    dice = random.Random(7)
    for _ in range(3):
        rows = make_rows(dice)
        table.theirs(rows)
        ours.ours(rows)
        assert ours.read() == table.read(), rows
    rows = make_rows(dice)
    table.ours(rows)  # each goes on from what the other wrote
    ours.theirs(rows)
    assert ours.read() == table.read(), rows


def test_the_jvm_goes_on_with_such_a_table_of_ours(jvm: Jvm, spark: Any, tmp_path: Path) -> None:
    table = Merged(jvm, spark, str(tmp_path / "made"), KINDS[1], NAMES[0])
    options = {
        **OURS, **table.shape,
        "hoodie.table.name": "t",
        "hoodie.write.table.version": str(jvm.table_version),
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.datasource.write.precombine.field": "ts",
    }  # fmt: skip
    write(spark.createDataFrame(FIRST, SCHEMA).coalesce(1), table.path, options)
    table.theirs([("k0", "eu", 3, None, "theirs"), ("k1", "eu", 1, 8.0, None)])
    table.ours([("k2", "eu", 1, 9.0, "older"), ("k3", "eu", 2, None, "ours")])
    expected = [("k0", "eu", 3, 0.0, "theirs"), ("k1", "eu", 2, 1.0, "v1")]
    assert table.read() == [*expected, ("k2", "eu", 2, 2.0, "v2"), ("k3", "eu", 2, 3.0, "ours")]
