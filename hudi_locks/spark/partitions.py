"""The partitions of a table that somebody names: by their paths, by a condition, or by the rows in them.

Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.config import Options, datasource_keys
from hudi_locks.errors import BadInput
from hudi_locks.spark.writing.keys import partition_path
from hudi_locks.spark.writing.rows import column_named, to_spark
from hudi_locks.table import PARTITION_PATH, PartitionValues, Table, TimePartition, list_partitions

__all__ = ["check_partitions", "choose_deleted_partitions", "choose_matching_partitions", "list_paths"]

_PATH = "_hudi_locks_path"
_SHOWN = 5


def choose_deleted_partitions(table: Table, options: Options, rows: DataFrame) -> list[str]:
    """What `delete_partition` of a datasource job deletes: as its option says, else the partitions of the rows.

    Raises:
        BadInput: A partition column is missing.
    """
    given = options.find(datasource_keys.PARTITIONS_TO_DELETE)
    if given is not None:
        return [path.strip() for path in given.split(",") if path.strip()]
    return list_paths(table, options, rows)


def list_paths(table: Table, options: Options, rows: DataFrame) -> list[str]:
    """The partition paths of rows, each once.

    Raises:
        BadInput: A partition column is missing.
    """
    as_text = options.get_value(datasource_keys.CONSISTENT_LOGICAL_TIMESTAMP)
    path = partition_path(rows, table.config, TimePartition.of(options, table.config), as_text=as_text)
    return [row[0] for row in rows.select(path.alias(PARTITION_PATH)).distinct().collect()]


def check_partitions(table: Table, partitions: Iterable[str]) -> list[str]:
    """The partitions, each once, if the table has every one of them.

    Raises:
        BadInput: The table is not partitioned, nothing is named, or a path is none of its partitions.
    """
    base = table.storage.base
    if not table.config.partition_fields:
        message = f"the table at {base} is not partitioned: delete its rows, or empty it by insert_overwrite_table"
        raise BadInput(message, path=base)
    named = sorted(set(partitions))
    if not named:
        raise BadInput(f"no partition of the table at {base} is named; name those to delete", path=base)
    present = list_partitions(table.storage)
    unknown = [path for path in named if path not in present]
    if unknown:
        raise BadInput(_describe_unknown(unknown, present), unknown=unknown, path=base)
    return named


def _describe_unknown(unknown: list[str], present: tuple[str, ...]) -> str:
    shown = ", ".join(present[:_SHOWN]) + (", …" if len(present) > _SHOWN else "")
    advice = "name each one, patterns are not read" if any("*" in path for path in unknown) else "look at the spelling"
    return f"{', '.join(map(repr, unknown))} is no partition of the table, which has {shown or 'none'}; {advice}"


def choose_matching_partitions(
    spark: SparkSession, partitions: Iterable[str], values: PartitionValues, where: str | Column
) -> tuple[str, ...] | None:
    """Those that may hold rows for which `where` is true; of which the path does not tell, all.

    Returns:
        None if it is not a condition on the partition columns alone, or paths of this table do not tell their values.
    """
    if not values.columns.names:
        return None
    told = {partition: values.read(partition) for partition in partitions}
    known = [(partition, *found) for partition, found in told.items() if found is not None]
    try:
        left = {row[0] for row in _frame(spark, known, values).where(where).select(_PATH).collect()}
    except (AnalysisException, ParseException):
        return None
    return tuple(partition for partition, found in told.items() if found is None or partition in left)


def _frame(spark: SparkSession, known: list[tuple[str | None, ...]], values: PartitionValues) -> DataFrame:
    fields = to_spark(values.columns).fields
    text = ", ".join(f"`{name}` string" for name in (_PATH, *values.columns.names))
    casts = [column_named(field.name).cast(field.dataType).alias(field.name) for field in fields]
    return spark.createDataFrame(known, text).select(F.col(_PATH), *casts)
