"""Tables that a job of PySpark 4 writes and reads by Spark's own format, before JVM Hudi and hudi-rs."""

from __future__ import annotations

from typing import Any

import pytest
from other_readers import OURS, Jvm, read_rust
from table_lives import TYPES, make_rows, merge

from hudi_locks.spark import HoodieTable
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("table_type", TYPES)
def test_the_jvm_reads_and_writes_what_the_format_wrote_and_the_format_what_the_jvm_wrote(
    spark: Any, data_source_job: Any, jvm: Jvm, path: str, table_type: str
) -> None:
    kind = {"hoodie.datasource.write.table.type": table_type, "hoodie.write.table.version": str(jvm.table_version)}
    options = {**OURS, **TYPES[table_type], **kind}
    first, second = make_rows(range(40), 1, "first"), make_rows(range(20, 60), 2, "second")
    assert data_source_job(path, options, first) == first == jvm.read_path(path)
    assert data_source_job(path, options, second) == merge(first, second) == jvm.read_path(path)
    table = HoodieTable.load(spark, path)
    third = make_rows(range(50, 70), 3, "jvm")
    jvm.write(table, third, **{key.replace(".", "__"): value for key, value in TYPES[table_type].items()})
    expected = merge(first, second, third)
    assert data_source_job(path, options) == jvm.read_path(path) == read_rust(path) == expected
    deleted = {**options, "hoodie.datasource.write.operation": "delete"}
    assert data_source_job(path, deleted, third[:5]) == [row for row in expected if row not in third[:5]]
    assert jvm.read_path(path) == read_rust(path) == [row for row in expected if row not in third[:5]]
    assert verify_table(table.table.storage).damages == ()
