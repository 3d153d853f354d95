"""Change data: what two moments differ in, row by row, with what was there before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from small_tables import KEEP, archive_now, archived

from hudi_locks import spark as hudi_spark
from hudi_locks.errors import BadInput, ConfigError, TableError
from hudi_locks.services import Cleaner, CleanSettings
from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
Change = tuple[str, Any, Any]
MERGED = {
    "table_type": "MERGE_ON_READ",
    "options": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 2},
}


def changes_of(frame: Any) -> list[Change]:
    """`op`, id and price before, id and price after, in order."""
    rows = [(row.op, row.before, row.after) for row in frame.collect()]
    return sorted((op, *(part and (part.id, part.ts) for part in parts)) for op, *parts in rows)


@pytest.mark.parametrize("how", [{}, MERGED], ids=["copy-on-write", "merge-on-read"])
def test_each_span_tells_what_became_of_its_rows(create: Create, frame: Frame, how: Any) -> None:
    table = create(**how)
    first = table.upsert(frame([("a", "1", 1, 1.0), ("b", "1", 1, 1.0), ("c", "2", 1, 1.0)]))
    second = table.upsert(frame([("b", "1", 2, 2.0), ("d", "2", 2, 2.0), ("c", "2", 0, 0.0)]))
    third = table.delete(frame([("c", "2", 5, 1.0)]))
    fourth = table.upsert(frame([("c", "2", 6, 3.0), ("a", "1", 7, 7.0)]))
    if how:
        table.compaction.run()
    times = [result.completion_time for result in (first, second, third, fourth)]
    spans: dict[tuple[str, Any], list[Change]] = {
        ("0", times[0]): [("i", None, (key, 1)) for key in "abc"],
        (times[0], times[1]): [("i", None, ("d", 2)), ("u", ("b", 1), ("b", 2))],
        (times[1], times[2]): [("d", ("c", 1), None)],
        (times[2], None): [("i", None, ("c", 6)), ("u", ("a", 1), ("a", 7))],
        (times[0], None): [
            ("i", None, ("d", 2)),
            ("u", ("a", 1), ("a", 7)),
            ("u", ("b", 1), ("b", 2)),
            ("u", ("c", 1), ("c", 6)),
        ],
        (times[3], None): [],
    }
    for (begin, end), expected in spans.items():
        assert changes_of(table.change_data(begin, end)) == expected, (begin, end)


@pytest.mark.parametrize("how", [{}, MERGED], ids=["copy-on-write", "merge-on-read"])
def test_a_cdc_query_tells_what_each_commit_made_of_each_row(
    spark: Any, create: Create, frame: Frame, path: str, how: Any
) -> None:
    table = create(**how)
    first = table.upsert(frame([("a", "1", 1, 1.0), ("b", "1", 1, None)]))
    second = table.upsert(frame([("b", "1", 2, 2.0)]))
    if how:
        table.compaction.run()
    third = table.delete(frame([("a", "1", 5, 1.0)]))
    asked = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": "0",
    }
    found = [
        tuple(row) for row in hudi_spark.read(spark, path, asked).select("ts_ms", "op", "before", "after").collect()
    ]
    row = '{{"id":"{}","month":"1","ts":{},"value":{}}}'.format
    assert sorted(found, key=str) == [
        (first.instant, "i", None, row("a", 1, 1.0)),
        (first.instant, "i", None, row("b", 1, "null")),
        (second.instant, "u", row("b", 1, "null"), row("b", 2, 2.0)),
        (third.instant, "d", row("a", 1, 1.0), None),
    ]
    assert table.change_log(first.completion_time, second.completion_time, columns="id").collect() == [
        ("u", second.instant, '{"id":"b"}', '{"id":"b"}')
    ]
    assert table.change_log(third.completion_time).collect() == []
    with pytest.raises(ConfigError, match=r"incremental\.format has no meaning with .*query\.type=snapshot"):
        hudi_spark.read(spark, path, {"hoodie.datasource.query.incremental.format": "cdc"})


@pytest.mark.parametrize("how", [{}, MERGED], ids=["copy-on-write", "merge-on-read"])
def test_a_commit_that_was_archived_tells_its_own_changes(create: Create, frame: Frame, how: Any) -> None:
    table = create(**{**how, "options": {**how.get("options", {}), **KEEP}})
    written = [table.upsert(frame([(str(day), str(day), 1, 1.0)])) for day in range(6)]
    archive_now(table)
    gone = {requested for requested, _, _ in archived(table)}
    assert written[1].instant in gone
    assert written[5].instant not in gone
    found = table.change_log(str(written[0].completion_time), columns="id").select("op", "ts_ms", "after").collect()
    assert sorted(map(tuple, found)) == [("i", one.instant, f'{{"id":"{day}"}}') for day, one in enumerate(written)][1:]


def test_columns_and_partitions_are_chosen_as_for_other_reads(create: Create, frame: Frame) -> None:
    table = create()
    first = table.upsert(frame([("a", "1", 1, 1.0), ("c", "2", 1, 1.0)]))
    table.upsert(frame([("a", "1", 2, 2.0), ("c", "2", 2, 2.0)]))
    since = str(first.completion_time)
    found = table.change_data(since, partitions=["2"], columns=["id"], meta_columns=False)
    assert [field.name for field in found.schema["after"].dataType.fields] == ["id"]
    assert [(row.op, tuple(row.before), tuple(row.after)) for row in found.collect()] == [("u", ("c",), ("c",))]
    assert "_hoodie_commit_time" in table.change_data(since).schema["before"].dataType.names
    with pytest.raises(BadInput, match="yesterday"):
        table.change_data("yesterday")


def test_a_replaced_or_clustered_partition_tells_the_rows_that_differ(create: Create, frame: Frame) -> None:
    table = create()
    table.bulk_insert(frame([("a", "1", 1, 1.0), ("c", "2", 1, 1.0)]))
    first = table.bulk_insert(frame([("b", "1", 1, 1.0)]))
    assert table.clustering.run() is not None
    assert changes_of(table.change_data(str(first.completion_time))) == []
    table.insert_overwrite(frame([("a", "1", 1, 1.0), ("x", "1", 1, 1.0)]))
    found = changes_of(table.change_data(str(first.completion_time)))
    assert found == [("d", ("b", 1), None), ("i", None, ("x", 1)), ("u", ("a", 1), ("a", 1))]


def test_what_was_cleaned_is_refused_and_not_left_out(create: Create, frame: Frame) -> None:
    table = create()
    results = [table.upsert(frame([("a", "1", number, 1.0)])) for number in range(5)]
    settings = replace(CleanSettings.of({}), commits=2)
    assert Cleaner(table._open().transactions.coordinator, settings).run().deleted == 2
    times = [str(result.completion_time) for result in results]
    assert changes_of(table.change_data(times[3])) == [("u", ("a", 3), ("a", 4))]
    assert changes_of(table.change_data("0")) == [("i", None, ("a", 4))]
    for read in (table.change_data, table.as_of):
        with pytest.raises(TableError, match=f"as of {times[0]} is not whole any more"):
            read(times[0])
