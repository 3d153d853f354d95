"""Tables whose metadata table keeps bloom filters: JVM Hudi goes by them, and finds our keys."""

from __future__ import annotations

from typing import Any, Final

import pytest
from metadata_turns import BY_KEY, Shared, serve

from hudi_locks.format import MetadataPartition
from hudi_locks.format.metadata_keys import bloom_filter_key
from hudi_locks.metadata_table import MetadataTable
from hudi_locks.table import list_data_files

pytestmark = pytest.mark.interop

BY_FILTERS: Final = {
    "hoodie__metadata__index__bloom__filter__enable": "true",
    "hoodie__index__type": "BLOOM",
    "hoodie__bloom__index__use__metadata": "true",
}


def list_filters(table: Shared) -> tuple[set[str], set[str]]:
    """The keys of all filters, and those that the base files ask for."""
    opened = table.open().table
    kept = MetadataTable.of(opened.storage, opened.config)
    assert kept is not None
    found = kept.view(opened.timeline()).read(MetadataPartition.BLOOM_FILTERS)
    told = {key for key, record in found.items() if record.other is not None and not record.other["isDeleted"]}
    files = list_data_files(opened.storage).bases
    return told, {bloom_filter_key(file.partition, file.path.rpartition("/")[2]) for file in files}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", BY_KEY], ids=["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_jvm_writers_that_go_by_the_filters_find_our_keys(spark: Any, jvm: Any, path: str, kind: str) -> None:
    table = Shared(jvm, spark, path, kind)
    table.theirs(("a", "eu", 1, 1.0, "theirs"), ("c", "us", 1, None, "theirs"), **BY_FILTERS)
    told, wanted = list_filters(table)
    assert told == wanted
    table.ours(("a", "eu", 2, 2.0, "ours"), ("k", "new", 2, -7.5, "ours"), ("m", "us", 2, None, None))
    told, wanted = list_filters(table)
    assert told == wanted
    table.theirs(("k", "new", 3, 3.0, "theirs"), ("m", "us", 3, 3.0, "theirs"), ("z", "us", 3, 3.0, None), **BY_FILTERS)
    table.ours(("k", "new", 4, 4.0, "ours"), ("z", "us", 4, 4.0, "ours"))
    serve(table)
    table.theirs(("a", "eu", 5, 5.0, "theirs"), **BY_FILTERS)
    table.open(hoodie__clean__commits__retained="1").services.clean()
    table.check()
    table.theirs(("k", "new", 6, 6.0, "theirs"), ("y", "new", 6, 6.0, None), **BY_FILTERS)
    told, wanted = list_filters(table)
    assert told == wanted
