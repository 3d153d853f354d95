"""Conditions of Spark on rows, as far as ranges of values tell of them. Runs on the driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, SparkSession

from hudi_locks.errors import BadInput
from hudi_locks.format.column_range import ColumnRange, ValueKind
from hudi_locks.spark._compat import list_filters
from hudi_locks.spark.writing.rows import to_spark
from hudi_locks.table import AllOf, AnyOf, Comparison, Condition, NullCheck, PartitionValues, Unknown
from hudi_locks.table.value_ranges import find_kind

__all__ = ["COMPARED", "FIRST_SECOND", "OPPOSITE", "RowCondition", "find_partition_ranges", "read_condition"]

COMPARED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "EqualTo": "=",
        "EqualNullSafe": "=",
        "LessThan": "<",
        "LessThanOrEqual": "<=",
        "GreaterThan": ">",
        "GreaterThanOrEqual": ">=",
    }
)
"""Comparisons by the names of Spark's filters, in its connectors and in Python."""
OPPOSITE: Final[Mapping[str, str]] = MappingProxyType({"<": ">=", "<=": ">", ">": "<=", ">=": "<"})
_EPOCH: Final = date(1970, 1, 1)
FIRST_SECOND: Final = int((date(1900, 1, 1) - _EPOCH).total_seconds())
"""Java's older types for times have other calendars and zones before."""
_MICROS: Final = 1_000_000
_DAY_SECONDS: Final = 86_400


@dataclass(frozen=True)
class RowCondition:
    """A condition, and what it is about.

    Attributes:
        kinds: Its columns, and what their values are; those of other types are left out.
        columns: All of its columns.
        condition: What ranges are asked.
    """

    kinds: Mapping[str, ValueKind]
    columns: frozenset[str]
    condition: Condition


def read_condition(spark: SparkSession, schema: pa.Schema, where: str | Column) -> RowCondition:
    """What ranges can tell of a condition on rows of these columns.

    Raises:
        BadInput: It is no condition on them.
    """
    try:
        columns, filters = list_filters(spark.createDataFrame([], to_spark(schema)), where)
    except AnalysisException as error:
        message = f"where={where!r} is no condition on the columns of the table: {str(error).splitlines()[0]}"
        raise BadInput(message, where=str(where)) from error
    kinds = {name: find_kind(schema.field(name).type) for name in columns if name in schema.names}
    known = {name: kind for name, kind in kinds.items() if kind is not None}
    return RowCondition(known, frozenset(columns), AllOf(tuple(map(_translate, filters))))


def _translate(found: Any, *, negated: bool = False) -> Condition:
    """A filter of Spark's data source API (org.apache.spark.sql.sources)."""
    name = found.getClass().getSimpleName()
    if name == "Not":
        return _translate(found.child(), negated=not negated)
    if name in ("And", "Or"):
        parts = (_translate(found.left(), negated=negated), _translate(found.right(), negated=negated))
        return AllOf(parts) if (name == "And") is not negated else AnyOf(parts)
    if name in ("IsNull", "IsNotNull"):
        return NullCheck(found.attribute(), is_null=(name == "IsNull") is not negated)
    if name == "In" and not negated:
        return AnyOf(tuple(_compare(found.attribute(), "=", value) for value in found.values()))
    if name in COMPARED:
        operator = OPPOSITE.get(COMPARED[name], "") if negated else COMPARED[name]
        return _compare(found.attribute(), operator, found.value()) if operator else Unknown()
    return Unknown()


def _compare(column: str, operator: str, value: Any) -> Condition:
    plain = _read_value(value)
    return Unknown() if plain is None else Comparison(column, operator, plain)


def _read_value(value: Any) -> Any:
    """In the form of `Comparison`; None if ranges tell nothing of it."""
    if isinstance(value, bool | int | str | Decimal):
        return value
    read = _JAVA_TIMES.get(value.getClass().getName()) if hasattr(value, "getClass") else None
    return None if read is None else read(value)


def _read_day(value: Any) -> int | None:
    days = int(value.toEpochDay())
    return days if days * _DAY_SECONDS >= FIRST_SECOND else None


def _read_instant(value: Any) -> int | None:
    seconds = int(value.getEpochSecond())
    return seconds * _MICROS + int(value.getNano()) // 1_000 if seconds >= FIRST_SECOND else None


def _read_local(value: Any) -> int | None:
    days = _read_day(value.toLocalDate())
    return None if days is None else days * _DAY_SECONDS * _MICROS + int(value.toLocalTime().toNanoOfDay()) // 1_000


_JAVA_TIMES: Final[Mapping[str, Callable[[Any], int | None]]] = MappingProxyType(
    {
        "java.sql.Date": lambda value: _read_day(value.toLocalDate()),
        "java.time.LocalDate": _read_day,
        "java.sql.Timestamp": lambda value: _read_instant(value.toInstant()),
        "java.time.Instant": _read_instant,
        "java.time.LocalDateTime": _read_local,
    }
)


def find_partition_ranges(values: PartitionValues, partition: str) -> dict[str, ColumnRange]:
    """The range of each partition column whose value a partition path tells: that value alone."""
    texts = values.read(partition)
    if texts is None:
        return {}
    found = {}
    for field, text in zip(values.columns, texts, strict=True):
        if (kind := find_kind(field.type)) is None:
            continue
        value = None if text is None else pa.scalar(text).cast(field.type)
        if value is None:
            found[field.name] = ColumnRange(kind, None, None, 1, 1)
        else:
            plain = value.as_py() if kind.name != "date" else (value.as_py() - _EPOCH).days
            found[field.name] = ColumnRange(kind, plain, plain, 1, 0)
    return found
