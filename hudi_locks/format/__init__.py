"""Names and bytes of Hudi's files: pure values, no I/O."""

from hudi_locks.format.instant import (
    ACTIONS,
    WRITE_ACTIONS,
    Instant,
    State,
    add_ms,
    comparable_action,
    epoch_ms,
    format_time,
    is_time,
    parse_instant_name,
)

__all__ = [
    "ACTIONS",
    "WRITE_ACTIONS",
    "Instant",
    "State",
    "add_ms",
    "comparable_action",
    "epoch_ms",
    "format_time",
    "is_time",
    "parse_instant_name",
]
