"""Refusals that driver and executors share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import pyarrow as pa

from hudi_locks.errors import BadInput
from hudi_locks.table import PARTITION_PATH, RECORD_KEY

__all__ = ["refuse_keyless", "refuse_null_keys"]


def refuse_keyless(rows: pa.RecordBatch, fields: Sequence[str]) -> None:
    """Raise if a row has no record key.

    Raises:
        BadInput: One has none.
    """
    keys = rows.column(RECORD_KEY)
    if keys.null_count:
        partition = rows.filter(keys.is_null()).column(PARTITION_PATH)[0].as_py()
        refuse_null_keys(keys.null_count, partition, fields=fields)


def refuse_null_keys(count: int, partition: str, *, fields: Sequence[str]) -> NoReturn:
    """Raise for rows whose key fields are null or empty.

    Raises:
        BadInput: Always.
    """
    raise BadInput(
        f"{count} rows have no record key: {', '.join(fields)} is null or empty, for instance in partition"
        f" {partition!r}; give each row a key or leave those rows out",
        count=count,
        partition=partition,
        fields=list(fields),
    )
