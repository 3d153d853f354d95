"""Conditions on rows, and whether a range of values leaves room for a row that meets them.

A file that cannot hold such a row need not be opened. Where anything is not known, it may hold one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from types import MappingProxyType
from typing import Any, Final, Protocol

from hudi_locks.format.column_range import ColumnRange

__all__ = ["AllOf", "AnyOf", "Comparison", "Condition", "NullCheck", "Unknown"]

_EXACT: Final = Context(prec=120)
_FORMS: Final[Mapping[str, type]] = MappingProxyType(
    {
        "boolean": bool,
        "int": int,
        "long": int,
        "date": int,
        "timestamp": int,
        "local timestamp": int,
        "decimal": Decimal,
        "string": str,
    }
)
"""Of what Python type a value is that is compared with values of a kind; floats are not among them.

JVM Hudi makes ranges of floats too narrow where a row group holds NaN.
"""
_ROOM: Final[Mapping[str, Callable[[Any, Any, Any], bool]]] = MappingProxyType(
    {
        "=": lambda low, high, value: low <= value <= high,
        "<": lambda low, _, value: low < value,
        "<=": lambda low, _, value: low <= value,
        ">": lambda _, high, value: high > value,
        ">=": lambda _, high, value: high >= value,
    }
)


class Condition(Protocol):
    """What a row must meet to be shown."""

    def may_hold(self, ranges: Mapping[str, ColumnRange]) -> bool:
        """Whether a row may meet it whose values lie in these ranges, by column; any value where there is none."""

    def list_values(self, column: str) -> frozenset[Any] | None:
        """The values of a column of which a row must have one to meet it; None if it may have any."""


@dataclass(frozen=True)
class Comparison:
    """A column beside a value; never true of null.

    Attributes:
        column: Its name.
        operator: One of =, <, <=, >, >=.
        value: In the form of `ColumnRange`, but of a decimal the decimal itself.
    """

    column: str
    operator: str
    value: Any

    def may_hold(self, ranges: Mapping[str, ColumnRange]) -> bool:
        """See `Condition`."""
        found = ranges.get(self.column)
        if found is None or found.values <= 0 or type(self.value) is not _FORMS.get(found.kind.name):
            return True
        if found.nulls == found.values:
            return False
        if found.low is None or found.high is None:
            return True
        value = self.value
        if isinstance(value, Decimal):
            value = _EXACT.scaleb(value, found.kind.scale)
        return _ROOM[self.operator](found.low, found.high, value)

    def list_values(self, column: str) -> frozenset[Any] | None:
        """See `Condition`."""
        return frozenset({self.value}) if (self.column, self.operator) == (column, "=") else None


@dataclass(frozen=True)
class NullCheck:
    """Whether a column is null, or is not.

    Attributes:
        column: Its name.
        is_null: Which of both.
    """

    column: str
    is_null: bool

    def may_hold(self, ranges: Mapping[str, ColumnRange]) -> bool:
        """See `Condition`."""
        found = ranges.get(self.column)
        if found is None or found.values <= 0:
            return True
        return found.nulls > 0 if self.is_null else found.nulls < found.values

    def list_values(self, column: str) -> frozenset[Any] | None:  # noqa: ARG002  # of any
        """See `Condition`."""
        return None


@dataclass(frozen=True)
class AllOf:
    """All of these; true if there is none."""

    parts: tuple[Condition, ...]

    def may_hold(self, ranges: Mapping[str, ColumnRange]) -> bool:
        """See `Condition`."""
        return all(part.may_hold(ranges) for part in self.parts)

    def list_values(self, column: str) -> frozenset[Any] | None:
        """See `Condition`."""
        told = [values for part in self.parts if (values := part.list_values(column)) is not None]
        return frozenset.intersection(*told) if told else None


@dataclass(frozen=True)
class AnyOf:
    """One of these; false if there is none."""

    parts: tuple[Condition, ...]

    def may_hold(self, ranges: Mapping[str, ColumnRange]) -> bool:
        """See `Condition`."""
        return any(part.may_hold(ranges) for part in self.parts)

    def list_values(self, column: str) -> frozenset[Any] | None:
        """See `Condition`."""
        told = [values for part in self.parts if (values := part.list_values(column)) is not None]
        return frozenset().union(*told) if len(told) == len(self.parts) else None


@dataclass(frozen=True)
class Unknown:
    """One of which ranges tell nothing."""

    def may_hold(self, ranges: Mapping[str, ColumnRange]) -> bool:  # noqa: ARG002  # any range has room
        """See `Condition`."""
        return True

    def list_values(self, column: str) -> frozenset[Any] | None:  # noqa: ARG002  # of any
        """See `Condition`."""
        return None
