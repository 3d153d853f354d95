"""Refusals that driver and executors share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from hudi_locks.errors import BadInput

__all__ = ["refuse_null_keys"]


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
