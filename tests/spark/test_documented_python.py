"""The Python of the pages about the pipeline, run statement by statement as it stands there."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

import hudi_locks
from hudi_locks.config import Options, check_options
from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/pipeline.md", "docs/early-conflict.md", "docs/command-line.md")
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = ("class SqliteLockProvider", "write_deltalake")
"""Blocks that are run by other tests, of the example and of other formats."""
NEEDS_SPARK_4 = 'format("hudi_locks")'
COLUMNS = "id string, city string, month string, ts long, value double, count int"
ROWS = [("a", "x", "2026-10", 1, 1.0, 1), ("b", "y", "2026-11", 1, 2.0, 2)]
OTHERS = [("c", "x", "2026-10", 2, 3.0, 3), ("a", "x", "2026-10", 2, 3.0, 3)]
NAMES = {"name": "trips", "record_key": "id", "ordering": "ts"}
SMALL = {"hoodie.parquet.small.file.limit": "0"}
SHORT = {**SMALL, "hoodie.log.compaction.blocks.threshold": "2"}
KINDS: dict[str, dict[str, Any]] = {
    "table.log_compaction": {"table_type": "MERGE_ON_READ", "options": SHORT},
    "table.compaction": {"table_type": "MERGE_ON_READ"},
    "table.clustering": {"partition_by": "city", "options": SMALL},
}
"""What a block is about says which table it needs."""


def list_blocks() -> Iterator[Any]:
    for page in PAGES:
        for match in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8")):
            if not any(word in match[2] for word in ELSEWHERE):
                yield pytest.param(match[2], id=f"{page}: {match[2].splitlines()[0][:40]}")


BLOCKS = list(list_blocks())


@pytest.fixture
def names(spark: Any, frame: Any, tmp_path: Path) -> dict[str, Any]:
    """What a reader of the pages has by then."""
    rows = frame(ROWS, COLUMNS)
    shared = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    found = {"frame": rows, "df": rows, "begin": "0", "end": "99991231235959999", "rows": stream(spark, tmp_path)}
    job = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "ts"}
    shared |= {"hoodie.write.lock.provider": "filesystem"}
    return {**found, "events": found["rows"], "spark": spark, "HoodieTable": HoodieTable, "hudi_locks": hudi_locks} | {
        "options": job,
        "shared": shared,
    }


def stream(spark: Any, folder: Path) -> Any:
    """A stream of files that are there."""
    source = str(folder / "source")
    spark.createDataFrame(OTHERS, COLUMNS).write.parquet(source)
    return spark.readStream.schema(COLUMNS).parquet(source)


def make_table(names: dict[str, Any], block: str, path: str) -> Callable[[], object]:
    """The table that the block speaks of, with two files in a partition; what gives its services work."""
    kind = next((given for word, given in KINDS.items() if word in block), {})
    table = HoodieTable.create(names["spark"], path, **{**NAMES, **kind})
    table.bulk_insert(names["frame"])
    again = names["spark"].createDataFrame(OTHERS, COLUMNS)
    names |= {"table": table, "path": path, "result": table.upsert(again)}
    return lambda: (table.bulk_insert(again.where("id = 'c'")), table.upsert(again))


def run(block: str, names: dict[str, Any], stir: Callable[[], object]) -> dict[str, Any]:
    """The values of its expressions; before each that runs or plans a service there is work for it."""
    values = {}
    for statement in ast.parse(block).body:
        source = ast.unparse(statement)
        if re.search(r"\.(run|schedule)\(", source):
            stir()
        if isinstance(statement, ast.Expr):
            values[source] = eval(source, names)
        else:
            exec(source, names)
    return values


@pytest.mark.parametrize("block", BLOCKS)
def test_it_runs(block: str, names: dict[str, Any], tmp_path: Path) -> None:
    if NEEDS_SPARK_4 in block and pyspark.__version__.startswith("3."):
        pytest.skip("unsupported: PySpark 3.5 has no Python data sources")
    block = block.replace('"/', f'"{tmp_path}/')
    stir = make_table(names, block, str(tmp_path / ("t" if ".create(" in block else "data/trips")))
    values = run(block, names, stir)
    for query in (value for value in values.values() if hasattr(value, "processAllAvailable")):
        query.processAllAvailable()
        query.stop()
    idle = [source for source, value in values.items() if value is None and re.search(r"\.(run|execute)\(", source)]
    assert idle == []
    check_options(Options(names["options"]) | names["shared"])
    assert HoodieTable.load(names["spark"], names["table"].path).read().count() > 0 or ".create(" in block


def test_there_are_blocks() -> None:
    assert len(BLOCKS) > 18
