"""JVM Hudi goes by bloom filters, of footers and of the metadata table, and finds our keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from metadata_turns import BY_KEY, Shared, serve
from table_lives import merge

from hudi_locks.format import MetadataPartition
from hudi_locks.format.key_filter import EVERY_KEY, KeyFilter
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


FOOTER: Final = (b"hoodie_bloom_filter_type_code", b"org.apache.hudi.bloomfilter")
BY_BLOOM: Final = {"hoodie__index__type": "BLOOM"}
BY_FOOTERS: Final = {**BY_BLOOM, "hoodie__index__bloom__fpp": "0.1"}
OTHERS: Final = [f"other {number}" for number in range(2000)]
KEYS: Final = ("a", "bc", "def", "ghij", "zürich", "€uro", "東京", "k" * 40)


def write_by_footers(table: Shared, *rows: Any) -> None:
    table.open(**BY_FOOTERS).upsert(table.frame(*rows))
    table.expected = merge(table.expected, rows)
    table.check()


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", BY_KEY], ids=["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_jvm_writers_find_our_keys_by_the_filters_of_our_footers(spark: Any, jvm: Any, path: str, kind: str) -> None:
    table = Shared(jvm, spark, path, kind)
    table.theirs(("a", "eu", 1, 1.0, "theirs"), ("c", "us", 1, None, "theirs"), **BY_BLOOM)
    write_by_footers(table, *((key, "eu", 2, 2.0, "ours") for key in KEYS), ("m", "new", 2, None, None))
    table.theirs(
        *((key, "eu", 3, 3.0, "theirs") for key in KEYS), ("m", "new", 3, 3.0, None), hoodie__index__type="BLOOM"
    )
    write_by_footers(table, ("n", "new", 4, 4.0, "ours"), ("zürich", "eu", 4, 4.0, None))
    serve(table)
    table.theirs(("n", "new", 5, 5.0, "theirs"), ("b", "eu", 5, 5.0, None), **BY_BLOOM)


def test_the_metadata_table_has_the_filters_of_our_footers(spark: Any, jvm: Any, path: str) -> None:
    """The JVM looks keys up by them, and opens no footer."""
    table = Shared(jvm, spark, path, "COPY_ON_WRITE")
    table.theirs(("a", "eu", 1, 1.0, "theirs"), ("c", "us", 1, None, "theirs"), **BY_FILTERS)
    write_by_footers(table, *((key, "eu", 2, 2.0, "ours") for key in KEYS), ("m", "new", 2, None, None))
    opened = table.open().table
    kept = MetadataTable.of(opened.storage, opened.config)
    assert kept is not None
    found = kept.view(opened.timeline()).read(MetadataPartition.BLOOM_FILTERS)
    for file in list_data_files(opened.storage).bases:
        record = found[bloom_filter_key(file.partition, file.path.rpartition("/")[2])].other
        assert record is not None
        told = pq.read_metadata(Path(path, file.path)).metadata
        assert (record["type"].encode(), record["bloomFilter"]) == tuple(told[name] for name in FOOTER)
        assert record["bloomFilter"] != EVERY_KEY.encode()
    table.theirs(*((key, "eu", 3, 3.0, "theirs") for key in KEYS), ("n", "new", 3, 3.0, None), **BY_FILTERS)


def test_both_say_the_same_of_a_filter_of_either(spark: Any, jvm: Any, path: str) -> None:
    table = Shared(jvm, spark, path, "COPY_ON_WRITE")
    table.theirs(*((key, "eu", 1, 1.0, "theirs") for key in KEYS), hoodie__index__bloom__num_entries="5", **BY_FOOTERS)
    write_by_footers(table, *((f"{key}2", "us", 2, 2.0, "ours") for key in KEYS))
    wrong = []
    for file in list_data_files(table.open().table.storage).bases:
        told = pq.read_metadata(Path(path, file.path)).metadata
        kind, text = (told[name].decode() for name in FOOTER)
        ours = KeyFilter.decode(kind, text)
        assert ours is not None
        keys = [key if file.partition.endswith("eu") else f"{key}2" for key in KEYS]
        found = ours.may_hold(pa.chunked_array([[*keys, *OTHERS]])).tolist()
        assert found == jvm.ask("may_hold", kind=kind, text=text, keys=[*keys, *OTHERS]).result(600)
        assert all(found[: len(KEYS)])
        wrong.append(sum(found) - len(KEYS))
    assert all(0 < number < len(OTHERS) / 2 for number in wrong)
    assert len(wrong) == 2
