"""The rows of a write: what a DataFrame must be before any of it is written, its keys, partition paths and types.

Runs on the driver.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from hudi_locks.errors import BadInput, UnsupportedTable
from hudi_locks.format import META_COLUMNS, canonical_schema
from hudi_locks.spark._compat import collect_columns, list_java_fields
from hudi_locks.spark.writing.keys import KeyColumns, field_type
from hudi_locks.spark.writing.placement import GROUP, RESERVED
from hudi_locks.spark.writing.task import refuse_null_keys
from hudi_locks.table import (
    PARTITION_PATH,
    RECORD_KEY,
    TableConfig,
    check_partition_path,
)

__all__ = [
    "CountedRows",
    "KeyedRows",
    "add_missing_columns",
    "check_ordering",
    "column_named",
    "convert",
    "count_rows",
    "keep_persisted",
    "list_compared",
    "literal_map",
    "quote_name",
    "refuse_unreadable_types",
    "select_user_columns",
    "spread_rows",
    "spread_unkeyed",
    "to_arrow",
    "to_spark",
    "user_schema",
    "widen",
]

_ZONE: Final = "timezone"
_NEEDED: Final[dict[str, Any]] = {_ZONE: "UTC"} if _ZONE in inspect.signature(to_arrow_schema).parameters else {}
"""From 4.2 on PySpark must be told the zone that earlier ones name by themselves."""
_PLACE: Final = r"^([0-9]{1,18})\.([0-9]{1,18})"
"""Of a row in the log of a database: the number of a file, and a position in it."""
_KEYS: Final = pa.schema([pa.field(RECORD_KEY, pa.string()), pa.field(PARTITION_PATH, pa.string())])


@dataclass(frozen=True)
class KeyedRows:
    """The input with keys.

    Attributes:
        frame: The rows; of a bucket index with their buckets, those of one file group in one task.
        schema: Of the user's columns.
        columns: How the keys are made, to make them again; None where the user's columns are left out.
        counts: How many rows each partition gets; empty before they were counted.
        keys: Record keys and partition paths, in any order; None where they are too many for the driver, or are not
            asked for.
    """

    frame: DataFrame
    schema: pa.Schema
    columns: KeyColumns | None
    counts: Mapping[str, int] = field(default_factory=dict)
    keys: pa.Table | None = None


@dataclass(frozen=True)
class CountedRows:
    """What a pass over the input finds.

    Attributes:
        counts: See `KeyedRows`.
        keys: See `KeyedRows`.
    """

    counts: Mapping[str, int]
    keys: pa.Table | None = None


def select_user_columns(rows: DataFrame, *, kept: Sequence[str] = ()) -> DataFrame:
    """The user's columns; meta columns of an earlier read are left out.

    Args:
        rows: As the user gives them.
        kept: Columns of this package that stay.

    Raises:
        BadInput: A column is there twice, or its name is taken by Hudi or this package.
    """
    refuse_unreadable_types(rows)
    _refuse_repeated_columns(rows.columns)
    _refuse_reserved_columns([name for name in rows.columns if name not in kept])
    return rows.select([column_named(name) for name in rows.columns if name not in META_COLUMNS])


def add_missing_columns(user: DataFrame, schema: pa.Schema) -> DataFrame:
    """The rows with the columns of a table that they lack, as nulls (`hoodie.datasource.write.reconcile.schema`)."""
    lacking = pa.schema([field for field in schema if field.name not in user.columns])
    nulls = {field.name: F.lit(None).cast(field.dataType) for field in to_spark(lacking).fields}
    return user.withColumns(nulls) if nulls else user


def check_ordering(keyed: DataFrame, config: TableConfig) -> None:
    """Whether the rows have the columns that decide between rows of one key.

    Raises:
        BadInput: One is missing, or has no order.
    """
    for name in config.ordering_fields:
        kind = field_type(keyed.schema, name)
        if isinstance(kind, (T.ArrayType, T.MapType, T.StructType)):
            message = f"ordering column {name!r} of type {kind.simpleString()} has no order; name a simple column"
            raise BadInput(message, column=name)


def count_rows(keyed: DataFrame, config: TableConfig, *, most_keys: int = 0) -> CountedRows:
    """Count the rows of each partition path, in one pass over the input, before anything is written.

    A second pass is needed where rows are counted that are more than `most_keys`, so they should be persisted.

    Args:
        keyed: With record keys and partition paths.
        config: Of the table.
        most_keys: The keys of so many rows may come to the driver.

    Raises:
        BadInput: A row has no record key; it says how many, and shows the partition of one. Or its partition value
            gives no folder inside the table.
    """
    keys = _collect_few(keyed, most_keys) if most_keys else None
    found = _count_by_spark(keyed) if keys is None else _count_keys(keys)
    lacking = [row for row in found if row["keys"] != row["rows"]]
    if lacking:
        count = sum(row["rows"] - row["keys"] for row in lacking)
        refuse_null_keys(count, lacking[0][PARTITION_PATH], fields=config.record_key_fields)
    for row in found if config.partition_fields else ():
        check_partition_path(row[PARTITION_PATH])
    return CountedRows({row[PARTITION_PATH]: row["rows"] for row in found}, keys)


def _collect_few(keyed: DataFrame, most: int) -> pa.Table | None:
    """The keys of all rows; None if they are more."""
    keys = collect_columns(keyed.select(RECORD_KEY, PARTITION_PATH).limit(most + 1)).cast(_KEYS)
    return keys if len(keys) <= most else None


def _count_keys(keys: pa.Table) -> list[dict[str, Any]]:
    counted = keys.group_by(PARTITION_PATH).aggregate([([], "count_all"), (RECORD_KEY, "count")])
    found: list[dict[str, Any]] = counted.rename_columns([PARTITION_PATH, "rows", "keys"]).to_pylist()
    return found


def _count_by_spark(keyed: DataFrame) -> list[dict[str, Any]]:
    counted = keyed.groupBy(PARTITION_PATH).agg(F.count("*").alias("rows"), F.count(RECORD_KEY).alias("keys"))
    return [row.asDict() for row in counted.collect()]


def spread_rows(rows: DataFrame, columns: KeyColumns | None, *, tasks: int) -> DataFrame:
    """Bring the rows of a file group together, with their keys."""
    spread = spread_unkeyed(rows, columns, tasks=tasks)
    return spread if columns is None else columns.add_to(spread)


def spread_unkeyed(rows: DataFrame, columns: KeyColumns | None, *, tasks: int) -> DataFrame:
    """Without key and path where they can be made again, which is cheaper than to carry them along."""
    if columns is None:
        return rows.repartition(tasks, PARTITION_PATH, GROUP)
    return rows.drop(RECORD_KEY, PARTITION_PATH).repartition(tasks, columns.path, GROUP)


@contextmanager
def keep_persisted(rows: DataFrame) -> Iterator[DataFrame]:
    """The rows, computed once for the length of the block."""
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield kept
    finally:
        kept.unpersist()


def user_schema(keyed: DataFrame) -> pa.Schema:
    """The user's columns of keyed rows, with the types that the table stores.

    Raises:
        BadInput: A name or type has no place in a Hudi table.
    """
    fields = [field for field in keyed.schema.fields if field.name not in META_COLUMNS]
    return canonical_schema(pa.schema([_arrow_field(field) for field in fields]))


def _arrow_field(field: T.StructField) -> pa.Field:
    try:
        return to_arrow(T.StructType([field])).field(0)
    except PySparkException as error:
        kind = field.dataType.simpleString()
        message = f"column {field.name!r} of type {kind} cannot be stored in a Hudi table; cast it, or leave it out"
        raise BadInput(message, column=field.name, type=kind) from error


def column_named(name: str) -> Column:
    """A column by its whole name, dots and all."""
    return F.col(quote_name(name))


def list_compared(columns: Iterable[Column], *, by_place: bool) -> list[Column]:
    """What is compared of ordering columns, one after the other; see `MergeRule.by_place`."""
    if not by_place:
        return list(columns)
    parts = (F.regexp_extract(column, _PLACE, part) for column in columns for part in (1, 2))
    return [F.when(part != "", part.cast("long")) for part in parts]


def literal_map(values: Mapping[str, Any], kind: str) -> Column:
    """A map that the driver has, as a constant of a query; by one call, while a literal of Spark's takes one for each.

    Args:
        values: As JSON has them; no name is longer than 50,000 characters, which Spark would not read.
        kind: Of a value, as SQL writes it.
    """
    return F.from_json(F.lit(json.dumps(values)), f"map<string,{kind}>", {"mode": "FAILFAST"})  # else it were null


def quote_name(name: str) -> str:
    """The name of a column as an expression of Spark has it, dots and all."""
    return "`" + name.replace("`", "``") + "`"


def refuse_unreadable_types(rows: DataFrame) -> None:
    """Refuse columns of types that PySpark cannot name, such as `interval`.

    Raises:
        BadInput: There is one.
    """
    try:
        _ = rows.schema
    except PySparkException as error:
        kinds = {field.name(): field.dataType().simpleString() for field in list_java_fields(rows)}
        odd = next((name for name, kind in kinds.items() if "interval" in kind), None)
        what = f"column {odd!r} of type {kinds[odd]}" if odd else str(error)
        message = f"{what} cannot be stored in a Hudi table; cast it, or leave it out"
        raise BadInput(message, column=odd) from error


def _refuse_repeated_columns(names: Sequence[str]) -> None:
    """Spark and Hive take names that differ in case alone for one."""
    lower = [name.lower() for name in names]
    repeated = sorted({name for name in names if lower.count(name.lower()) > 1})
    if repeated:
        raise BadInput(f"columns {repeated} occur twice; rename one of each", columns=repeated)


def _refuse_reserved_columns(names: Sequence[str]) -> None:
    meta = frozenset(META_COLUMNS)
    reserved = sorted(
        name for name in names if name not in meta and (name.lower() in meta or name.lower().startswith(RESERVED))
    )
    if reserved:
        raise BadInput(f"columns {reserved} have names that are taken; rename them", columns=reserved)


def to_arrow(columns: T.StructType) -> pa.Schema:
    """The same columns for Arrow; timestamps with a zone are in UTC. Runs on the driver."""
    return to_arrow_schema(columns, **_NEEDED)


def to_spark(columns: pa.Schema) -> T.StructType:
    """The same columns for Spark; timestamps without a zone stay without one. Runs on the driver.

    Raises:
        UnsupportedTable: A column is of a type that Spark does not have.
    """
    return T.StructType([_to_spark(field) for field in widen(columns)])


def _to_spark(field: pa.Field) -> T.StructField:
    try:
        return from_arrow_schema(pa.schema([field]), prefer_timestamp_ntz=True).fields[0]
    except PySparkException as error:
        message = f"column {field.name!r} is of type {field.type}, which this release of Spark does not have"
        advice = "read the others, by columns=[...]"
        raise UnsupportedTable(f"{message}; {advice}", column=field.name, type=str(field.type)) from error


def widen(columns: pa.Schema) -> pa.Schema:
    """The same columns as Spark takes them from Arrow: times in microseconds, bytes of any length."""
    return pa.schema([_widen_field(field) for field in columns])


def _widen_field(field: pa.Field) -> pa.Field:
    return field.with_type(_widen(field.type))


def _widen(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_widen_field(field) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_widen_field(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _widen_field(kind.item_field))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else kind


def convert(column: Column, old: pa.DataType, new: pa.DataType) -> Column:
    """Values of a column that became wider, as JVM readers have them: a float keeps its digits as a double."""
    [field] = to_spark(pa.schema([pa.field("column", new)])).fields
    is_doubled = pa.types.is_float32(old) and pa.types.is_float64(new)
    return (column.cast("string") if is_doubled else column).cast(field.dataType)
