"""Tables that Hudi's schema on read changed: only added columns are read, all else is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_locks.errors import UnsupportedTable
from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("jvm", [("1.2.0", 9)], indirect=True, ids=["1.2.0-v9"])
def test_a_changed_type_is_refused_before_the_first_row_and_an_added_column_is_not(
    spark: Any, jvm: Any, path: str
) -> None:
    jvm.sql("set hoodie.metadata.enable=false")
    jvm.sql("set hoodie.schema.on.read.enable=true")
    try:
        jvm.sql(
            f"create table altered (id string, ts bigint, x int) using hudi location '{path}' "
            "tblproperties (primaryKey = 'id', preCombineField = 'ts')"
        )
        jvm.sql("insert into altered values ('a', 1, 7)")
        jvm.sql("alter table altered add columns (later string)")
        rows = HoodieTable.load(spark, path).read(meta_columns=False).collect()
        assert [tuple(row) for row in rows] == [("a", 1, 7, None)]
        jvm.sql("alter table altered alter column x type bigint")
        with pytest.raises(UnsupportedTable, match="x was int and is long"):
            HoodieTable.load(spark, path).read()
        assert jvm.sql("select x from altered") == [[7]]
    finally:
        jvm.sql("set hoodie.schema.on.read.enable=false")
        jvm.sql("reset hoodie.metadata.enable")  # of the session, which other tests share
        jvm.sql("drop table if exists altered")
