"""The partitions that a condition on partition columns leaves."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.errors import BadInput
from hudi_locks.spark.column_types import to_spark
from hudi_locks.spark.writing.rows import column_named
from hudi_locks.table import PartitionValues

__all__ = ["choose_partitions"]

_PATH = "_hudi_locks_path"


def choose_partitions(
    spark: SparkSession, partitions: Iterable[str], values: PartitionValues, where: str | Column
) -> tuple[str, ...]:
    """Those that may hold rows for which `where` is true; of which the path does not tell, all.

    Raises:
        BadInput: It is no condition on the partition columns, or paths of this table do not tell their values.
    """
    if not values.columns.names:
        message = f"where={where!r} cannot choose partitions, since their paths do not tell values of columns"
        raise BadInput(f"{message}; filter the rows instead: read().where(...)", where=str(where))
    told = {partition: values.read(partition) for partition in partitions}
    known = [(partition, *found) for partition, found in told.items() if found is not None]
    try:
        left = {row[0] for row in _frame(spark, known, values).where(where).select(_PATH).collect()}
    except (AnalysisException, ParseException) as error:
        columns = ", ".join(values.columns.names)
        message = f"where={where!r} is no condition on the partition columns, {columns}: {_first_line(error)}"
        raise BadInput(f"{message}; filter other columns by read().where(...)", where=str(where)) from error
    return tuple(partition for partition, found in told.items() if found is None or partition in left)


def _frame(spark: SparkSession, known: list[tuple[str | None, ...]], values: PartitionValues) -> DataFrame:
    fields = to_spark(values.columns).fields
    text = ", ".join(f"`{name}` string" for name in (_PATH, *values.columns.names))
    casts = [column_named(field.name).cast(field.dataType).alias(field.name) for field in fields]
    return spark.createDataFrame(known, text).select(F.col(_PATH), *casts)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
