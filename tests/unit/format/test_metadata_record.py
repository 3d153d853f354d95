"""Records of the metadata table: those of JVM Hudi are read and made again; merged statistics hide no row."""

from __future__ import annotations

import json
from typing import Any

import pytest
from golden_metadata import BUNDLES, list_expected, list_hfiles
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.format.metadata_keys import column_stats_key, group_number, partition_key, partition_stats_key
from hudi_locks.format.metadata_record import (
    Bound,
    ColumnStatistics,
    FileEntry,
    MetadataRecord,
    RecordKind,
    decode_metadata_record,
    encode_metadata_record,
    merge_metadata_records,
)
from hudi_locks.format.metadata_schema import SCHEMA_TEXTS

GROUPS = {"files": 1, "column_stats": 2, "partition_stats": 1}
NUMBERS = st.integers(-100, 100)


def read_all(bundle: str) -> list[tuple[str, str, bytes, MetadataRecord]]:
    return [
        (path, key.decode(), value, decode_metadata_record(value, schema, path))
        for path, file, schema in list_hfiles(bundle)
        for key, value in file.entries()
    ]


def strip_docs(schema: Any) -> Any:
    if isinstance(schema, list):
        return [strip_docs(one) for one in schema]
    return {k: strip_docs(v) for k, v in schema.items() if k != "doc"} if isinstance(schema, dict) else schema


@pytest.mark.parametrize("bundle", BUNDLES)
def test_the_schema_is_that_of_the_jvm_without_its_explanations(bundle: str) -> None:
    found = {json.dumps(strip_docs(json.loads(schema))) for _, _, schema in list_hfiles(bundle)}
    assert found == {json.dumps(json.loads(SCHEMA_TEXTS[BUNDLES[bundle]]))}


@pytest.mark.parametrize("bundle", BUNDLES)
def test_records_of_the_jvm_say_what_another_decoder_read(bundle: str) -> None:
    names = dict.fromkeys(RecordKind, 0)
    read = {(path, key): record for path, key, _, record in read_all(bundle)}
    for path, records in list_expected(bundle):
        for told in (one for one in records if one["record"] is not None):
            found = read[path, told["key"]]
            names[found.kind] += 1
            assert found.kind == told["record"]["type"]
            files = told["record"].get("filesystemMetadata") or {}
            assert {name: (e.size, e.is_deleted) for name, e in found.files.items()} == {
                name: (e["size"], e["isDeleted"]) for name, e in ((n, _unname(v)) for n, v in files.items())
            }
            if found.statistics is not None:
                stats = _unname(told["record"]["ColumnStatsMetadata"])
                assert (found.statistics.name, found.statistics.column) == (stats["fileName"], stats["columnName"])
                assert found.statistics.values == stats["valueCount"]
                bounds = [_bound(stats[name]) for name in ("minValue", "maxValue")]
                assert [found.statistics.low, found.statistics.high] == bounds
    assert [names[kind] > 0 for kind in RecordKind] == [True, True, True, False, False, True, False]


def _bound(told: Any) -> Bound | None:
    [(wrapper, record)] = told.items() if told else [("", {"value": None})]
    return Bound(wrapper, record["value"]) if told else None


def _unname(told: Any) -> Any:
    [(name, value)] = told.items() if len(told) == 1 else [("", told)]
    return value if name.startswith("Hoodie") else told


@pytest.mark.parametrize("bundle", BUNDLES)
def test_records_in_logs_of_the_jvm_are_made_byte_for_byte(bundle: str) -> None:
    logged = [(v, record) for path, _, v, record in read_all(bundle) if ".log." in path]
    same = [value == encode_metadata_record(record, BUNDLES[bundle]) for value, record in logged if record.kind != 1]
    assert len(same) > 150
    assert all(same)
    listed = [(v, record) for v, record in logged if record.kind == 1]  # in the order of Java's hashes
    for _, record in listed:
        again = encode_metadata_record(record, BUNDLES[bundle])
        assert decode_metadata_record(again, SCHEMA_TEXTS[BUNDLES[bundle]], "") == record


@pytest.mark.parametrize("bundle", BUNDLES)
def test_every_key_of_the_jvm_is_made_and_lies_in_its_file_group(bundle: str) -> None:
    for path, key, _, record in read_all(bundle):
        partition, name = path.split("/")[1:]
        number = int(name.removeprefix(".").split("_")[0].rsplit("-", 2)[1])
        assert group_number(key, GROUPS[partition]) == number
        found = record.statistics
        if found is not None and record.kind is RecordKind.PARTITION_STATS:
            assert key == partition_stats_key(found.column, found.name.removeprefix("."))
        elif found is not None:
            regions = ("", "us", "eu", "asia")
            assert key in {column_stats_key(found.column, region, found.name) for region in regions}


def test_a_table_without_partitions_has_one_by_the_name_of_a_point() -> None:
    assert (partition_key(""), partition_key("a/b")) == (".", "a/b")
    assert partition_stats_key("name", "") == partition_stats_key("name", ".")


@pytest.mark.parametrize(("key", "number"), [("", 0), ("polygenelubricants", 2), ("ä\U0001f600", 1)])
def test_the_greatest_hash_of_java_and_characters_beyond_ascii_have_a_place(key: str, number: int) -> None:
    assert group_number(key, 3) == number


def files(**entries: FileEntry) -> MetadataRecord:
    return MetadataRecord(RecordKind.FILES, entries)


def test_names_are_added_the_greater_size_counts_and_a_deletion_takes_a_name_out() -> None:
    older = files(a=FileEntry(5), b=FileEntry(9), d=FileEntry(0, is_deleted=True))
    newer = files(a=FileEntry(7), b=FileEntry(0, is_deleted=True), c=FileEntry(0, is_deleted=True), d=FileEntry(3))
    merged = merge_metadata_records(older, newer)
    assert merged == files(a=FileEntry(7), c=FileEntry(0, is_deleted=True), d=FileEntry(3))
    assert merge_metadata_records(None, newer) == newer


def stats(low: int | None, high: int | None, **changes: Any) -> MetadataRecord:
    least, most = (None if value is None else Bound("IntWrapper", value) for value in (low, high))
    return MetadataRecord(RecordKind.PARTITION_STATS, statistics=ColumnStatistics("p", "c", least, most, **changes))


RANGES = st.tuples(NUMBERS, NUMBERS).map(lambda pair: (min(pair), max(pair))) | st.just((None, None))


@given(ranges=st.lists(RANGES, min_size=1, max_size=6), tight=st.none() | st.integers(0, 5))
def test_merged_ranges_hold_every_range_since_the_last_tight_one(
    ranges: list[tuple[int | None, int | None]], tight: int | None
) -> None:
    merged: MetadataRecord | None = None
    for number, (low, high) in enumerate(ranges):
        merged = merge_metadata_records(merged, stats(low, high, is_tight=number == tight, values=1))
    since = ranges[tight if tight is not None and tight < len(ranges) else 0 :]
    found = merged.statistics if merged is not None else None
    assert found is not None
    assert found.values == len(since)
    for low, high in since:
        assert low is None or (found.low is not None and found.low.value <= low)
        assert high is None or (found.high is not None and found.high.value >= high)


def test_statistics_of_a_widened_column_are_of_the_wider_type() -> None:
    older = stats(1, 5)
    wide = ColumnStatistics("p", "c", Bound("LongWrapper", 3), Bound("LongWrapper", 4))
    merged = merge_metadata_records(older, MetadataRecord(RecordKind.PARTITION_STATS, statistics=wide)).statistics
    assert merged is not None
    assert (merged.low, merged.high) == (Bound("LongWrapper", 1), Bound("LongWrapper", 5))


def test_of_values_that_cannot_be_compared_nothing_is_known_any_more() -> None:
    text = ColumnStatistics("p", "c", Bound("StringWrapper", "a"), Bound("StringWrapper", "b"))
    merged = merge_metadata_records(stats(1, 5), MetadataRecord(RecordKind.PARTITION_STATS, statistics=text)).statistics
    assert merged is not None
    assert (merged.low, merged.high, merged.is_deleted) == (None, None, True)


def test_a_tombstone_and_a_tight_record_replace_what_was_there() -> None:
    for newer in (stats(None, None, is_deleted=True), stats(2, 3, is_tight=True)):
        assert merge_metadata_records(stats(1, 5), newer) == newer
    assert merge_metadata_records(stats(None, None, is_deleted=True), stats(2, 3)) == stats(2, 3)
