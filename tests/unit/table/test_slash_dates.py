"""Dates that are three folders: which tables have them, and which may be written."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_locks.errors import ConfigError, UnsupportedTable
from hudi_locks.table import TableConfig, check_creatable, check_writable

KEY = "hoodie.datasource.write.slash.separated.date.partitioning"
EXTRACTOR = "hoodie.table.partition_extractor_class"
SLASHED = {EXTRACTOR: "org.apache.hudi.hive.SlashEncodedDayPartitionValueExtractor"}
KIND = "hoodie.table.keygenerator.type"


def table_of(extra: dict[str, str], *fields: str, **changes: Any) -> TableConfig:
    return TableConfig("t", ("id",), fields or ("day",), extra=extra, **changes)


@pytest.mark.parametrize(
    ("extra", "splits"),
    [
        ({}, False),
        ({KEY: "true"}, True),
        ({KEY: "false"}, False),
        (SLASHED, True),
        ({EXTRACTOR: "org.apache.hudi.hive.MultiPartKeysValueExtractor"}, False),
        ({**SLASHED, KIND: "TIMESTAMP"}, False),
    ],
)
def test_the_properties_tell(extra: dict[str, str], splits: bool) -> None:
    assert table_of(extra).splits_dates is splits


@pytest.mark.parametrize(
    "table",
    [
        table_of({KEY: "true"}, "day", "region"),
        table_of({KEY: "true"}, hive_style=True),
        table_of({KEY: "true", KIND: "CUSTOM"}, partition_kinds=("SIMPLE",)),
    ],
)
def test_tables_whose_writers_disagree_are_refused_by_name(table: TableConfig) -> None:
    with pytest.raises(UnsupportedTable, match=f"{KEY}=true: dates are three folders only of one partition column"):
        check_writable(table)
    with pytest.raises(ConfigError, match=KEY):
        check_creatable(table)


@pytest.mark.parametrize("extra", [{KEY: "true"}, SLASHED])
def test_one_partition_column_is_no_fault(extra: dict[str, str]) -> None:
    check_writable(table_of(extra))
    check_creatable(table_of(extra))
