"""Files outside of a table, as the sources of a bootstrapped one: which of them its storage reaches."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_locks.errors import UnsupportedTable
from hudi_locks.storage import open_beside, open_storage

KEYS = {"hoodie.aws.access.key": "key", "hoodie.aws.secret.key": "secret"}
AZURE = "abfss://box@account.dfs.core.windows.net/table"


@pytest.mark.parametrize(
    ("table", "folder", "found"),
    [
        ("s3://bucket/table", "s3a://bucket/data/day=1", ("bucket", "data/day=1")),
        ("s3a://bucket/table", "s3a://other/data", ("other", "data")),
        ("s3a://bucket/table", "s3a://other/region=a%3Ab", ("other", "region=a%3Ab")),
        ("gs://bucket/table", "gs://other/data/a b", ("other", "data/a b")),
        (AZURE, "abfss://other@account.dfs.core.windows.net/data", ("other", "data")),
    ],
)
def test_folders_of_one_kind_of_store_are_reached_by_the_same_options(
    table: str, folder: str, found: tuple[str, str]
) -> None:
    storage = open_storage(table, KEYS)
    beside: Any = open_beside(storage, folder)
    location = beside.place[1]
    assert (location.bucket, location.prefix) == found
    assert type(beside) is type(storage)
    assert beside.options == storage.options  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("table", "folder"),
    [
        ("s3a://bucket/table", "gs://bucket/data"),
        ("s3a://bucket/table", "file:/data"),
        ("/table", "s3a://bucket/data"),
        ("gs://bucket/table", "hdfs://node/data"),
        (AZURE, "abfss://other@another.dfs.core.windows.net/data"),
        ("hdfs://node:8020/table", "hdfs://node:8020/data"),
    ],
)
def test_others_are_refused_by_name(table: str, folder: str) -> None:
    with pytest.raises(UnsupportedTable, match="those outside of a table are read here") as refused:
        open_beside(open_storage(table, KEYS), folder)
    assert (refused.value.path, refused.value.table) == (folder, table)
