"""Keys of tables that JVM Hudi made, in each form that its releases give them: no row is there twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from other_readers import OURS, SCHEMA, THEIRS, Jvm

from hudi_locks.errors import UnsupportedTable
from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.interop

PACKAGE = "org.apache.hudi.keygen."
GENERATORS = {"complex": "ComplexKeyGenerator", "simple": "SimpleKeyGenerator", "none": "NonpartitionedKeyGenerator"}
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


def rows_of(count: int, ts: int, label: str) -> list[tuple[Any, ...]]:
    return [(f"k{number:03}", "eu" if number % 2 else "us", ts, float(ts), label) for number in range(count)]


@pytest.fixture
def make_theirs(jvm: Jvm, spark: Any, path: str) -> Callable[..., HoodieTable]:
    """A table that the JVM made and filled, opened by us."""

    def make(generator: str, rows: list[tuple[Any, ...]], **extra: str) -> HoodieTable:
        options = {
            **THEIRS,
            "hoodie.table.name": "t",
            "hoodie.write.table.version": str(jvm.table_version),
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "" if generator == "none" else "region",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.keygenerator.class": PACKAGE + GENERATORS[generator],
            "hoodie.datasource.write.operation": "upsert",
            **{key.replace("__", "."): value for key, value in extra.items()},
        }
        listed = [list(row) for row in rows]
        jvm.ask("write", path=path, rows=listed, schema=SCHEMA, options=options, gate="").result(300)
        return HoodieTable.load(spark, path, options=OURS)

    return make


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_key_of_the_jvm_is_found_and_ours_is_found_by_it(
    make_theirs: Any, jvm: Jvm, frame: Any, all_read: Any, generator: str
) -> None:
    theirs = rows_of(4, 1, "theirs")
    table = make_theirs(generator, theirs)
    table.upsert(frame(rows_of(5, 2, "ours")[2:]))
    assert all_read(table) == [*theirs[:2], *rows_of(5, 2, "ours")[2:]]
    more = {"hoodie__datasource__write__keygenerator__class": PACKAGE + GENERATORS[generator]}
    jvm.write(table, rows_of(6, 3, "again"), **more)
    assert all_read(table) == rows_of(6, 3, "again")
    table.delete(frame(rows_of(2, 3, "again")))
    assert all_read(table) == rows_of(6, 3, "again")[2:]


@pytest.mark.parametrize("value_only", ["true", "false"])
def test_one_key_column_of_a_complex_generator_is_written_as_the_rows_have_it(
    make_theirs: Any, jvm: Jvm, frame: Any, all_read: Any, value_only: str
) -> None:
    if jvm.version == "1.0.2" and value_only == "false":
        value_only = "true"  # it knows no other form
    extra = {
        "hoodie__write__table__version": "8",
        "hoodie__write__complex__keygen__new__encoding": value_only,
        "hoodie__write__complex__keygen__validation__enable": "false",
    }
    table = make_theirs("complex", rows_of(4, 1, "theirs"), **extra)
    keys = {row[0] for row in table.read(meta_columns=True).select("_hoodie_record_key").collect()}
    assert keys == {("" if value_only == "true" else "id:") + row[0] for row in rows_of(4, 1, "")}
    table.upsert(frame(rows_of(5, 2, "ours")))
    assert all_read(table) == rows_of(5, 2, "ours")


def test_buckets_of_prefixed_keys_are_the_same_to_both(make_theirs: Any, jvm: Jvm, frame: Any, all_read: Any) -> None:
    extra = {key.replace(".", "__"): value for key, value in BUCKETS.items()}
    table = make_theirs("complex", rows_of(8, 1, "theirs"), **extra)
    writer = HoodieTable.load(table.spark, table.path, options={**OURS, **BUCKETS})
    writer.upsert(frame(rows_of(9, 2, "ours")))
    assert all_read(writer) == rows_of(9, 2, "ours")


def test_a_table_without_rows_that_does_not_tell_is_refused(make_theirs: Any, jvm: Jvm, frame: Any) -> None:
    extra = {
        "hoodie__write__table__version": "8",
        "hoodie__datasource__write__operation": "upsert",
        "hoodie__write__complex__keygen__validation__enable": "false",
    }
    table = make_theirs("complex", [], **extra)
    with pytest.raises(UnsupportedTable, match=r"hoodie\.write\.complex\.keygen\.new\.encoding"):
        table.upsert(frame(rows_of(1, 1, "ours")))


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
def test_times_in_keys_are_texts_for_both_where_the_owner_says_so(
    jvm: Jvm, spark: Any, path: str, operation: str
) -> None:
    """With the option; without it a bulk insert of the JVM writes them as text, and its upsert does not."""
    own = {"hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": "true"}
    own |= {"hoodie.datasource.write.recordkey.field": "at", "hoodie.datasource.write.precombine.field": "ts"}
    own |= {"hoodie.datasource.write.partitionpath.field": "day", "hoodie.table.name": "t"}
    own |= {"hoodie.datasource.write.partitionpath.urlencode": "true"}
    told = "select timestamp'{0}' at, timestamp'2026-07-01 00:00:00' day, {1}L ts, '{2}' label"
    times = ("2026-07-01 10:00:00", "1999-12-31 23:59:59.123456", "2026-02-03 04:05:06.1")

    def query(*rows: tuple[str, int, str]) -> str:
        return " union all ".join(told.format(*row) for row in rows)

    def read_keys() -> list[tuple[Any, ...]]:
        columns = ["_hoodie_record_key", "_hoodie_partition_path", "label"]
        theirs = jvm.ask("read", path=path, options={}, columns=columns).result(300)
        ours = [list(row) for row in HoodieTable.load(spark, path).read().select(*columns).collect()]
        assert sorted(theirs) == sorted(ours)
        return sorted(map(tuple, theirs))

    theirs = {**THEIRS, **own, "hoodie.datasource.write.operation": operation}
    theirs["hoodie.write.table.version"] = str(jvm.table_version)
    first = query(*((time, 1, "theirs") for time in times[:2]))
    jvm.ask("write_query", path=path, query=first, options=theirs).result(300)
    ours = HoodieTable.load(spark, path, options={**OURS, **own})
    ours.upsert(spark.sql(query((times[0], 2, "ours"), (times[2], 2, "ours"))))
    folder = "2026-07-01 00%3A00%3A00.0"
    keys = ("1999-12-31 23:59:59.123", "2026-02-03 04:05:06.1", "2026-07-01 10:00:00.0")
    assert read_keys() == [(key, folder, label) for key, label in zip(keys, ("theirs", "ours", "ours"), strict=True)]
    again = {**theirs, "hoodie.datasource.write.operation": "upsert"}
    last = query(*((time, 3, "again") for time in times))
    jvm.ask("write_query", path=path, query=last, options=again).result(300)
    assert read_keys() == [(key, folder, "again") for key in keys]
