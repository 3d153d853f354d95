"""A metadata table that this package made of a table's files, read and kept up to date by JVM Hudi."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from metadata_turns import FILTERS, KINDS, LOCKS, OPTIONS, Shared, serve

from hudi_locks.metadata_table import METADATA_LAYOUT
from hudi_locks.spark import HoodieTable
from hudi_locks.timeline import Timeline

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("kind", KINDS)
def test_the_jvm_goes_by_one_that_we_made_and_keeps_it(spark: Any, jvm: Any, path: str, kind: str) -> None:
    table = create(Shared(jvm, spark, path, kind))
    table.ours(("a", "eu", 1, 1.0, "ours"), ("b", "eu", 1, 2.0, None), ("c", "us", 1, None, "ours"))
    table.ours(("a", "eu", 2, 5000.0, "ours"), ("k", "new", 2, -7.5, "ours"), ("m", "us", 2, None, None))
    made = table.open().services.make_metadata_table()
    assert made is not None
    assert made.parts == ("files", "column_stats", "partition_stats")
    assert made.columns[3:] == ("id", "region", "ts", "value", "label")
    for _ in FILTERS:
        table.check()
    table.theirs(("b", "eu", 3, 6000.0, "theirs"), ("n", "new", 3, -1.0, "theirs"))
    assert "00000000000000000" in {one.requested for one in list_delta_commits(table)}, "the JVM made none of its own"
    table.ours(("a", "eu", 4, -1.0, None), ("z", "last", 4, 4000.5, "ours"))
    serve(table)
    table.theirs(("z", "last", 5, 1.0, "theirs"))
    damage(table)
    assert table.open().services.make_metadata_table(anew=True) is not None
    table.check()
    table.theirs(("q", "us", 6, 9000.0, "theirs"), hoodie__clean__automatic="true")
    table.ours(("q", "us", 7, 3.0, "ours"))


def create(table: Shared) -> Shared:
    """As this package makes it, without a metadata table."""
    names: dict[str, Any] = {"name": "t", "record_key": "id", "ordering": "ts"}
    names["partition_by"] = table.partitioned_by or ()
    options = {**OPTIONS[table.kind], **LOCKS[table.kind], "hoodie.write.table.version": str(table.jvm.table_version)}
    options |= {"hoodie.datasource.write.hive_style_partitioning": "true"}
    HoodieTable.create(table.spark, table.path, table_type=table.kind, options=options, **names)
    return table


def test_the_option_makes_one_for_a_table_without_partitions_and_the_jvm_goes_on(
    spark: Any, jvm: Any, path: str
) -> None:
    table = create(Shared(jvm, spark, path, "COPY_ON_WRITE", partitioned_by=""))
    table.expected = [("a", "eu", 1, 1.0, "ours"), ("b", "us", 1, None, None)]
    table.open(hoodie__metadata__enable="true").insert(table.frame(*table.expected))
    assert list_delta_commits(table)
    table.check()
    table.theirs(("b", "us", 2, 5000.0, "theirs"), ("k", "new", 2, -3.0, "theirs"))
    table.ours(("a", "eu", 3, 4001.0, "ours"))
    assert not table.open().table.storage.list_names(".hoodie/metadata/partition_stats")


def list_delta_commits(table: Shared) -> tuple[Any, ...]:
    return Timeline.load(table.open().table.storage, METADATA_LAYOUT).completed(("deltacommit",))


def damage(table: Shared) -> None:
    for file in Path(table.path, ".hoodie", "metadata", "files").iterdir():
        file.write_bytes(b"no metadata" * 50)
