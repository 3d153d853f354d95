"""Types of columns, between Spark and Arrow: Spark's own rules, with what their versions take for granted spelt out."""

from __future__ import annotations

import inspect
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

__all__ = ["to_arrow", "to_spark"]

_ZONE: Final = "timezone"
_NEEDED: Final[dict[str, Any]] = {_ZONE: "UTC"} if _ZONE in inspect.signature(to_arrow_schema).parameters else {}
"""From 4.2 on PySpark must be told the zone that earlier ones name by themselves."""


def to_arrow(columns: T.StructType) -> pa.Schema:
    """The same columns for Arrow; timestamps with a zone are in UTC. Runs on the driver."""
    return to_arrow_schema(columns, **_NEEDED)


def to_spark(columns: pa.Schema) -> T.StructType:
    """The same columns for Spark; timestamps without a zone stay without one. Runs on the driver."""
    return from_arrow_schema(columns, prefer_timestamp_ntz=True)
