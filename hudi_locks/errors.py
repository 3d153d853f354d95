"""Every error that this package raises, as one tree.

::

    HudiLocksError                     facts as attributes, survives pickling, never holds a secret
    ├── ConfigError                    (ValueError) a key is unknown, missing, malformed or contradicts another
    ├── ProviderLoadError              (ImportError) the config string names no usable provider
    ├── LockError
    │   ├── AcquireTimeout             (TimeoutError) somebody else held the lock for as long as we may wait
    │   ├── LockLost                   the right of a holder ended without its release
    │   ├── AlreadyHeld                the same owner asks again for what it holds
    │   ├── NotHeld                    an operation needs a lock that is not held
    │   ├── ProviderClosed             the provider or manager was closed
    │   ├── BackendUnavailable         (ConnectionError) the lock service does not answer: worth another attempt
    │   ├── BackendRefused             the lock service says no for good: permission, schema, missing table
    │   ├── DamagedLockRecord          the record under the key is not one that we can judge
    │   └── Unsupported                the provider does not offer what was asked
    ├── StorageError                   (OSError) a table's file system failed
    │   └── NoSuchFile                 (FileNotFoundError) a file that was to be opened or moved is not there
    ├── TableError
    │   ├── NotATable                  the path holds no Hudi table
    │   ├── TableExists                the path holds one already
    │   ├── UnsupportedTable           a table that must not be written: version, metadata table, index, bootstrap
    │   ├── SavepointRefused           a moment of the table cannot be kept, or gone back to
    │   ├── DamagedTable               a properties file or an instant that cannot be read, by name
    │   └── PossibleLostUpdate         two writers may have undone each other's work: a person must look
    ├── SessionRefused                 the Spark session cannot be used: Spark Connect, stopped, or workers without us
    ├── BadInput                       (ValueError) the rows to write are refused before anything is written
    └── WriteError
        ├── ClockRefused               this machine's clock, or the table's newest time, is far from the store's
        ├── SecondWriterRefused        a single writer met another writer that is alive
        ├── WriteConflict              another writer changed the same file groups first
        │   └── HoodieEarlyConflictDetectionException   found before the files were written, so that little work is lost
        ├── WriteAborted               the instant was rolled back or could not be finished: nothing was published
        └── OutcomeUnknown             the store did not say whether the instant was published; `resolve` finds out
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any, NoReturn

from hudi_locks import redaction
from hudi_locks.deprecation import forward_renamed as _forward_renamed

__all__ = [
    "AcquireTimeout",
    "AlreadyHeld",
    "BackendRefused",
    "BackendUnavailable",
    "BadInput",
    "ClockRefused",
    "ConfigError",
    "DamagedLockRecord",
    "DamagedTable",
    "HoodieEarlyConflictDetectionException",
    "HudiLocksError",
    "LockError",
    "LockLost",
    "NoEffectWarning",
    "NoSuchFile",
    "NotATable",
    "NotHeld",
    "OutcomeUnknown",
    "PossibleLostUpdate",
    "ProviderClosed",
    "ProviderLoadError",
    "SavepointRefused",
    "SecondWriterRefused",
    "SessionRefused",
    "StorageError",
    "TableError",
    "TableExists",
    "UnknownKeyWarning",
    "Unsupported",
    "UnsupportedTable",
    "WriteAborted",
    "WriteConflict",
    "WriteError",
    "refuse_pickling",
]


class HudiLocksError(Exception):
    """Root of all errors of this package.

    What is a secret by its form, such as a password in an address, is hidden in the message and in the facts.

    Args:
        message: What was asked, what was found, and the next step.
        **facts: The same in machine form; each becomes an attribute of that name.
    """

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(redaction.hide_secrets(message))
        facts = {name: _hide(fact) for name, fact in facts.items()}
        self.facts = facts
        for name in facts.keys() & set(dir(type(self))):
            setattr(self, name, facts[name])  # such as errno, which an OSError has already, as None

    def __getattr__(self, name: str) -> Any:
        facts = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]
        raise AttributeError(f"{type(self).__name__} carries no fact {name!r}, only {sorted(facts)}")

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), str(self.args[0]), self.facts)


def _hide(fact: Any) -> Any:
    if isinstance(fact, str):
        return redaction.hide_secrets(fact)
    if type(fact) in (tuple, list):
        return type(fact)(map(_hide, fact))
    return {name: _hide(value) for name, value in fact.items()} if type(fact) is dict else fact


def _rebuild(kind: type[HudiLocksError], message: str, facts: dict[str, Any]) -> HudiLocksError:
    return kind(message, **facts)


class ConfigError(HudiLocksError, ValueError):
    """A key is unknown, missing, malformed, or contradicts another key."""


class UnknownKeyWarning(UserWarning):
    """A hoodie.* key is not read by this package; it may be one of the JVM's, or a mistake."""


class NoEffectWarning(UserWarning):
    """A key that Hudi knows changes nothing in this package; the message says why."""


class ProviderLoadError(HudiLocksError, ImportError):
    """The config string names no provider that can be loaded."""


class LockError(HudiLocksError):
    """Anything that concerns a lock."""


class AcquireTimeout(LockError, TimeoutError):
    """Somebody else held the lock for as long as we were allowed to wait."""


class LockLost(LockError):
    """The right of a holder ended without its release."""


class AlreadyHeld(LockError):
    """The owner holds this lock already, and the provider is not reentrant."""


class NotHeld(LockError):
    """The operation needs a lock that is not held."""


class ProviderClosed(LockError):
    """The provider or the manager was closed before this call."""


class BackendUnavailable(LockError, ConnectionError):
    """The lock service did not answer. Another attempt may succeed."""


class BackendRefused(LockError):
    """The lock service refused for good: a permission, a schema, a missing table. No retry helps."""


class DamagedLockRecord(LockError):
    """The record under the key is not one that can be judged, so it is neither stolen nor taken for free."""


class Unsupported(LockError):
    """The provider does not offer what was asked of it."""


class StorageError(HudiLocksError, OSError):
    """The file system or object store under a table failed."""

    @property
    def is_disk_full(self) -> bool:
        """Whether there was no room for a file, or a quota was used up: then it certainly was not made."""
        return self.errno in (errno.ENOSPC, errno.EDQUOT)


class NoSuchFile(StorageError, FileNotFoundError):
    """A file that was to be opened or moved is not there, or the folder that was to hold it."""


class TableError(HudiLocksError):
    """Anything that concerns the table as a whole."""


class NotATable(TableError):
    """The path holds no Hudi table."""


class TableExists(TableError):
    """The path holds a table, or something else, already."""


class UnsupportedTable(TableError):
    """A table that must not be written by this package, with the way out in the message."""


class SavepointRefused(TableError):
    """What a write showed cannot be kept, or gone back to: the write is unknown, or its files are gone."""


class DamagedTable(TableError):
    """A properties file or an instant cannot be read; it is named, and never skipped."""


class PossibleLostUpdate(TableError):
    """A writer outside the claim log and one inside may have lost an update; no writes until acknowledged."""


class SessionRefused(HudiLocksError):
    """The Spark session cannot be used: it is one of Spark Connect, was stopped, or its workers lack this package."""


class BadInput(HudiLocksError, ValueError):
    """The rows to write are refused; the table is untouched."""


class WriteError(HudiLocksError):
    """Anything that keeps a write from being published."""


class ClockRefused(WriteError):
    """Times differ so much that instants could not be put into an order without dragging every writer along."""


class SecondWriterRefused(WriteError):
    """A single writer met another writer that is alive: nothing was begun."""


class WriteConflict(WriteError):
    """Another writer published changes to the same file groups first."""


class HoodieEarlyConflictDetectionException(WriteConflict):  # the name that users of Hudi know
    """An earlier write is at the same file groups, or has changed them since this one began: nothing was published.

    Facts: instant, partition, file_id, other, other_writer, other_is_pending, kind (`marker` or `commit`).
    """


class WriteAborted(WriteError):
    """The instant was rolled back or could not be finished; nothing of it is visible."""


class OutcomeUnknown(WriteError):
    """The store did not say whether the instant was published; ask `resolve` later."""


def refuse_pickling(what: object, advice: str) -> NoReturn:
    """Raise in place of a pickle of a live object.

    Raises:
        TypeError: Always, with the advice.
    """
    raise TypeError(f"a {type(what).__name__} is alive in this process and cannot be pickled: {advice}")


__getattr__: Callable[[str], Any] = _forward_renamed(
    __name__, {"UpdateEndangered": "PossibleLostUpdate"}, removed_in="0.3.0"
)
