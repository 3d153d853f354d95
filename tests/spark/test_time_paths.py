"""Folders named by formatted times against those of JVM Hudi, in every session that a user may have."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.config import Options
from hudi_locks.spark.writing.time_paths import render_time_path
from hudi_locks.table import NOT_A_TIME, TableConfig, TimePartition

pytestmark = pytest.mark.spark

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "jvm_time_paths.json").read_text(encoding="utf-8"))
TABLE = TableConfig("t", ("id",), ("k",), url_encode=True, extra={"hoodie.table.keygenerator.type": "TIMESTAMP"})


def typed_rows(session: Any, number: int) -> Any:
    """A case's values with their folders."""
    from pyspark.sql import functions as F  # noqa: N812

    case = GOLDEN[number]
    times = TimePartition.of(Options(case["options"]), TABLE)
    assert times
    rows = session.createDataFrame(list(enumerate(case["values"])), "place int, text string")
    typed = rows.select("place", F.col("text").cast(case["type"]).alias("k"))
    path = render_time_path("k", typed.schema["k"].dataType, times, machine_zone="UTC")
    return typed.selectExpr(f"{number} number", "place", f"{path} path")


@pytest.mark.parametrize(
    "session",
    [("America/New_York", "true"), pytest.param(("UTC", "false"), marks=pytest.mark.nightly)],
    indirect=True,
    ids="-".join,
)
def test_folders_are_those_of_the_jvm(session: Any) -> None:
    found = reduce(lambda left, right: left.union(right), (typed_rows(session, n) for n in range(len(GOLDEN))))
    paths = {(row["number"], row["place"]): row["path"] for row in found.collect()}
    different = [
        (case["options"], value, path, paths[number, place])
        for number, case in enumerate(GOLDEN)
        for place, (value, path) in enumerate(zip(case["values"], case["paths"], strict=True))
        if path != (None if NOT_A_TIME in paths[number, place] else paths[number, place])
    ]
    assert different == []
    assert len(paths) > 1000
    assert sum(NOT_A_TIME in path for path in paths.values()) > 50
