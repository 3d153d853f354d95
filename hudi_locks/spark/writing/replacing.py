"""Overwriting and deleting whole partitions: which file groups end, and which partitions are meant. On the driver."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame

from hudi_locks.config import Options, datasource_keys
from hudi_locks.errors import BadInput
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.rows import partition_path
from hudi_locks.table import PARTITION_PATH, Table, list_partitions

__all__ = ["check_partitions", "choose_partitions", "find_replaced"]

_SHOWN = 5


def find_replaced(snapshot: Snapshot, operation: Operation, partitions: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Ids of the file groups that end, for each partition that is overwritten; empty for one that has none yet.

    Args:
        snapshot: What the write builds on.
        operation: An insert_overwrite_table ends those of every partition.
        partitions: Those that the rows or the caller name.
    """
    if not operation.replaces:
        return {}
    named = sorted(set(partitions))
    is_whole = operation is Operation.INSERT_OVERWRITE_TABLE
    replaced: dict[str, tuple[str, ...]] = dict.fromkeys(named, ())
    for file in snapshot.base_files(None if is_whole else named):
        replaced[file.partition] = (*replaced.get(file.partition, ()), file.file_id)
    return replaced


def choose_partitions(table: Table, options: Options, rows: DataFrame) -> list[str]:
    """What `delete_partition` of a datasource job deletes: as its option says, else the partitions of the rows.

    Raises:
        BadInput: A partition column is missing.
    """
    given = options.find(datasource_keys.PARTITIONS_TO_DELETE)
    if given is not None:
        return [path.strip() for path in given.split(",") if path.strip()]
    config = table.config
    form = {"hive_style": config.hive_style, "url_encode": config.url_encode}
    path = partition_path(rows.schema, config.partition_fields, **form)
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
