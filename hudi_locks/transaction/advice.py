"""What is told to whoever met a conflict: the next step."""

from __future__ import annotations

from typing import Final

from hudi_locks.config import lock_keys, write_keys
from hudi_locks.format import ALTER_SCHEMA
from hudi_locks.transaction.conflicts import ConcurrentOperation

__all__ = ["ADVICE_ON_COLUMNS", "ADVICE_ON_KEYS", "advise"]

_RETRIES: Final = write_keys.NUM_RETRIES_ON_CONFLICT_FAILURES.name
_STRATEGY: Final = lock_keys.CONFLICT_RESOLUTION_STRATEGY.name
_AGAIN: Final = f"Begin a new write from a fresh snapshot, or set {_RETRIES}"
ADVICE_ON_KEYS: Final = f"{_AGAIN}: it finds the keys and updates their rows."
ADVICE_ON_COLUMNS: Final = "Write the columns as the table has them now, or give them other names."
_PLAN_ANEW: Final = "Plan the table service anew, since what it read has changed."
_RUN_LATER: Final = "Run the table service again once the other has ended."


def advise(this: ConcurrentOperation, other: ConcurrentOperation, *, is_foreign: bool) -> str:
    """The next step for whoever wanted to publish `this` and met `other`.

    Args:
        this: What was to be published.
        other: What it met.
        is_foreign: Whether `other`, if it is a plan, was made by a JVM writer.
    """
    if other.operation == ALTER_SCHEMA:
        return f"The columns of the table changed. {ADVICE_ON_COLUMNS}"
    if other.covers_table:
        return "The table has gone back in time: look what it holds now, and begin a new write from it."
    if this.is_service:
        return _PLAN_ANEW if other.is_completed else _RUN_LATER
    if this.find_unseen(other):
        return f"{_AGAIN}: what the other wrote there is then replaced too, so look at it first if it must stay."
    if other.is_completed:
        return f"{_AGAIN}."
    return (
        f"Let that {other.action} end, or {_name_undo(other, is_foreign=is_foreign)}, before a new write is begun; with"
        f" {_STRATEGY}=prefer_writer writes do not give way to what is only planned."
    )


def _name_undo(other: ConcurrentOperation, *, is_foreign: bool) -> str:
    """What else ends it; a plan of a JVM writer cannot be taken back here."""
    if other.action != "clustering":
        return "roll it back"
    if is_foreign:
        return (
            "let a JVM writer run it or roll it back (a JVM writer planned it; what splits or merges buckets of"
            f" consistent hashing can be run here: hudi-locks cluster PATH --run {other.requested})"
        )
    return f"take it back (hudi-locks cluster PATH --abort {other.requested})"
