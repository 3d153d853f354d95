"""Filters that Spark hands to its own format, as conditions on ranges of values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from hudi_locks.spark.reading.conditions import COMPARED, FIRST_SECOND, OPPOSITE, RowCondition
from hudi_locks.table import AllOf, AnyOf, Comparison, Condition, NullCheck, Unknown
from hudi_locks.table.value_ranges import find_kind

__all__ = ["hands_filters", "read_filters"]

_PUSHING: Final = "pyspark.sql.worker.data_source_pushdown_filters"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRST_DAY: Final = date(1900, 1, 1)
_MICROS: Final = 1_000_000


def hands_filters() -> bool:
    """Whether Spark hands filters over in this process.

    A reader that takes them fails wherever `spark.sql.python.filterPushdown.enabled` is false, which no option of the
    read tells. Where it is true, PySpark plans in processes of another kind.
    """
    return _PUSHING in sys.modules


def read_filters(filters: Iterable[Any], schema: pa.Schema) -> RowCondition:
    """What ranges can tell of filters of `pyspark.sql.datasource` that a row must all pass."""
    given = tuple(filters)
    columns = frozenset(map(_name_column, given)).intersection(schema.names)
    kinds = {name: find_kind(schema.field(name).type) for name in columns}
    known = {name: kind for name, kind in kinds.items() if kind is not None}
    return RowCondition(known, columns, AllOf(tuple(map(_translate, given))))


def _name_column(found: Any) -> str:
    return _name_column(found.child) if hasattr(found, "child") else str(found.attribute[0])


def _translate(found: Any, *, negated: bool = False) -> Condition:
    name = type(found).__name__
    if name == "Not":
        return _translate(found.child, negated=not negated)
    if len(found.attribute) != 1:  # a field of a nested column
        return Unknown()
    [column] = found.attribute
    if name in ("IsNull", "IsNotNull"):
        return NullCheck(column, is_null=(name == "IsNull") is not negated)
    if name == "In" and not negated:
        return AnyOf(tuple(_compare(column, "=", value) for value in found.value))
    operator = COMPARED.get(name, "")
    if negated:
        operator = OPPOSITE.get(operator, "")
    return _compare(column, operator, found.value) if operator else Unknown()


def _compare(column: str, operator: str, value: Any) -> Condition:
    plain = _read_value(value)
    return Unknown() if plain is None else Comparison(column, operator, plain)


def _read_value(value: Any) -> Any:
    """In the form of `Comparison`; None if ranges tell nothing of it."""
    return next((read(value) for kind, read in _READ if isinstance(value, kind)), None)


def _read_time(value: datetime) -> int | None:
    moment = value if value.tzinfo is not None else value.replace(tzinfo=timezone.utc)
    passed = moment - _EPOCH
    micros = (passed.days * 86_400 + passed.seconds) * _MICROS + passed.microseconds
    return micros if micros >= FIRST_SECOND * _MICROS else None


def _read_day(value: date) -> int | None:
    return (value - _EPOCH.date()).days if value >= _FIRST_DAY else None


_READ: Final[tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...]] = (
    ((bool, int, str, Decimal), lambda value: value),
    (datetime, _read_time),
    (date, _read_day),
)
