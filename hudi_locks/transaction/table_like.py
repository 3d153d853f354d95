"""What transactions need of a table, so that tests may have one without its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from hudi_locks.storage import Storage
from hudi_locks.timeline import TimelineLayout

__all__ = ["TransactionTable", "TransactionTableConfig"]


class TransactionTableConfig(Protocol):
    """What transactions need of a table's settings."""

    @property
    def table_type(self) -> str:
        """COPY_ON_WRITE or MERGE_ON_READ."""

    @property
    def extra(self) -> Mapping[str, str]:
        """Its properties of no other use."""


class TransactionTable(Protocol):
    """What transactions need of a table; `hudi_locks.table.Table` is one."""

    @property
    def storage(self) -> Storage:
        """Its files."""

    @property
    def layout(self) -> TimelineLayout:
        """Of its timeline."""

    @property
    def config(self) -> TransactionTableConfig:
        """Its lasting settings."""
