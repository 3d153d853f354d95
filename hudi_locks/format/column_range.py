"""What is known of the values of a column, in one file or in several (Hudi's HoodieColumnRangeMetadata).

A filter passes over a file whose range cannot hold what it looks for. So a range that is too narrow hides rows, and
where the range is not known there must be no statistics at all.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any, Final

from hudi_locks.format.metadata_record import order_value

__all__ = [
    "BOOLEAN",
    "BYTES",
    "DATE",
    "DOUBLE",
    "FLOAT",
    "INT",
    "LOCAL_TIMESTAMP",
    "LONG",
    "STRING",
    "TIMESTAMP",
    "ColumnRange",
    "ValueKind",
    "decimal_kind",
    "decode_ranges",
    "encode_ranges",
    "unite_ranges",
]


@dataclass(frozen=True)
class ValueKind:
    """What the values of a column are.

    Attributes:
        name: One of those below.
        ordinal: The number that version 9 has for it.
        wrapper: Record in which version 8 wraps a bound.
        precision: Digits of a decimal; else 0.
        scale: How many of them are behind its point.
    """

    name: str
    ordinal: int
    wrapper: str
    precision: int = 0
    scale: int = 0

    @property
    def detail(self) -> str | None:
        """What version 9 says of it besides."""
        return f"{self.precision},{self.scale}" if self.name == "decimal" else None


BOOLEAN: Final = ValueKind("boolean", 2, "BooleanWrapper")
INT: Final = ValueKind("int", 3, "IntWrapper")
LONG: Final = ValueKind("long", 4, "LongWrapper")
FLOAT: Final = ValueKind("float", 5, "FloatWrapper")
DOUBLE: Final = ValueKind("double", 6, "DoubleWrapper")
STRING: Final = ValueKind("string", 7, "StringWrapper")
BYTES: Final = ValueKind("bytes", 8, "BytesWrapper")
DATE: Final = ValueKind("date", 12, "DateWrapper")
TIMESTAMP: Final = ValueKind("timestamp", 16, "LongWrapper")
LOCAL_TIMESTAMP: Final = ValueKind("local timestamp", 19, "LongWrapper")


def decimal_kind(precision: int, scale: int) -> ValueKind:
    """Decimals of so many digits, and so many of them behind the point."""
    return ValueKind("decimal", 10, "DecimalWrapper", precision, scale)


@dataclass(frozen=True)
class ColumnRange:
    """What is known of the values of a column in one file or several.

    Attributes:
        kind: What they are.
        low: No value is less, in Python's form: int, float, bool, str, bytes; of a decimal the unscaled int, of a date
            days, of a timestamp microseconds. None where every value is null. NaN is greater than every number.
        high: No value is greater.
        values: How many there are, nulls among them.
        nulls: How many of them are null.
        size: Bytes on disk.
        plain_size: The same before they were packed.
    """

    kind: ValueKind
    low: Any
    high: Any
    values: int
    nulls: int
    size: int = 0
    plain_size: int = 0


def unite_ranges(one: ColumnRange, other: ColumnRange) -> ColumnRange | None:
    """What is known of the values of both together; None if they cannot be compared."""
    if one.kind != other.kind:
        return None
    return ColumnRange(
        one.kind,
        _choose(one.low, other.low, partial(min, key=order_value)),
        _choose(one.high, other.high, partial(max, key=order_value)),
        one.values + other.values,
        one.nulls + other.nulls,
        one.size + other.size,
        one.plain_size + other.plain_size,
    )


def _choose(one: Any, other: Any, choose: Callable[[Any, Any], Any]) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return choose(one, other)


def encode_ranges(ranges: Mapping[str, ColumnRange]) -> str:
    """Ranges by column as text, exactly; for what a task reports to the driver."""
    told = {
        column: [*astuple(found.kind), _pack(found.low), _pack(found.high), *astuple(found)[3:]]
        for column, found in ranges.items()
    }
    return json.dumps(told, separators=(",", ":"))


def decode_ranges(text: str) -> dict[str, ColumnRange]:
    """The ranges of a text that `encode_ranges` made."""
    return {
        column: ColumnRange(ValueKind(*told[:5]), _unpack(told[5]), _unpack(told[6]), *told[7:])
        for column, told in json.loads(text).items()
    }


def _pack(value: Any) -> Any:
    """Bytes have no place in JSON."""
    return {"bytes": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _unpack(value: Any) -> Any:
    return base64.b64decode(value["bytes"]) if isinstance(value, dict) else value
