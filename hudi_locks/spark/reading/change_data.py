"""Two states of a table, compared row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.spark.writing.rows import column_named
from hudi_locks.table import COMMIT_SEQNO, COMMIT_TIME, PARTITION_PATH, RECORD_KEY

__all__ = ["AFTER", "BEFORE", "CHANGE_LOG_SCHEMA", "OP", "as_change_log", "compare"]

OP: Final = "op"
BEFORE: Final = "before"
AFTER: Final = "after"
CHANGE_LOG_SCHEMA: Final = "op string, ts_ms string, before string, after string"
"""Columns of a CDC query of JVM Hudi."""
_WHOLE: Final = {"ignoreNullFields": "false"}
_OLD: Final = "_hudi_locks_old"
_NEW: Final = "_hudi_locks_new"
_KEY: Final = (PARTITION_PATH, RECORD_KEY)
_VERSION: Final = (COMMIT_TIME, COMMIT_SEQNO)


def compare(old: DataFrame, new: DataFrame, *, columns: Sequence[str]) -> DataFrame:
    """What became of each row, as `op` (i, u or d), `before` and `after`, structs of which one is null unless op is u.

    Args:
        old: Rows of what changed, as they were, with Hudi's meta columns.
        new: The same as they are.
        columns: Of the structs.
    """
    joined = _wrap(old, columns, _OLD, BEFORE).join(_wrap(new, columns, _NEW, AFTER), list(_KEY), "full_outer")
    changed = joined.where(~F.col(_OLD).eqNullSafe(F.col(_NEW)))
    return changed.select(_find_op().alias(OP), BEFORE, AFTER)


def as_change_log(changed: DataFrame, *, instant: str) -> DataFrame:
    """What `compare` found, as a CDC query of JVM Hudi shows it: `op`, `ts_ms`, and `before` and `after` as JSON.

    Args:
        changed: What one commit made of rows.
        instant: Its requested time, which is `ts_ms`.
    """
    before, after = (F.to_json(name, _WHOLE).alias(name) for name in (BEFORE, AFTER))
    return changed.select(OP, F.lit(instant).alias("ts_ms"), before, after)


def _wrap(rows: DataFrame, columns: Sequence[str], version: str, name: str) -> DataFrame:
    kept = F.struct(*map(column_named, columns)).alias(name)
    return rows.select(*_KEY, F.struct(*_VERSION).alias(version), kept)


def _find_op() -> Column:
    return F.when(F.col(BEFORE).isNull(), "i").when(F.col(AFTER).isNull(), "d").otherwise("u")
