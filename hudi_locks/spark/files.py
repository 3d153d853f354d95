"""Base files as a DataFrame of Spark's own Parquet reader."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

__all__ = ["read_files"]

_PATTERN_MARKS: Final = re.compile(r"[\\{}\[\]*?]")


def read_files(spark: SparkSession, paths: Sequence[str], schema: T.StructType | str) -> DataFrame:
    """The rows of these files and no others; columns that a file lacks are null.

    Spark takes every path for a pattern, so that the marks of patterns in a partition's name must be escaped.
    """
    return spark.read.schema(schema).parquet(*[_PATTERN_MARKS.sub(r"\\\g<0>", path) for path in paths])
