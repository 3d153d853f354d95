"""One lock around one piece of work, for writers that know nothing of this package."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hudi_locks.config import lock_keys, table_keys
from hudi_locks.errors import ConfigError
from hudi_locks.lock.held import Held, OnLost
from hudi_locks.lock.manager import LockManager

__all__ = ["table_lock"]


@contextmanager
def table_lock(
    path: str | os.PathLike[str],
    options: Mapping[str, object] | None = None,
    *,
    provider: str = "",
    timeout_s: float | None = None,
    on_lost: OnLost | None = None,
    application: str = "",
) -> Iterator[Held]:
    """Hold the lock of a table, of any format, while a block runs.

    All who take it under the same path and provider wait for each other, JVM Hudi's writers too. Nothing else is kept
    out, and nothing of the table is read. A process that is paused for longer than its lease may go on beside the next
    holder: give `fencing_token` of the hold to a store that refuses smaller ones, or call `verify` before what cannot
    be undone. Runs in one process; a job that takes the lock again and again is quicker with one `LockManager`.

    Args:
        path: Of the table, the same text for all, as `s3://bucket/trips` or `/data/trips`; its `hoodie.base.path`.
        options: Hudi's keys, before those of this machine's `hudi-defaults.conf`.
        provider: As `hoodie.write.lock.provider`, which it stands for.
        timeout_s: Bound of the whole wait in seconds, 0 for one request; None as long as Hudi's keys say.
        on_lost: Called once, on another thread, when the lock is lost.
        application: What `hudi-locks show` says of the holder.

    Yields:
        The hold.

    Raises:
        AcquireTimeout: Somebody else held it all the time; the error names them.
        ConfigError: No provider is named, the options name another path, or cannot be used.
        LockLost: The lock was lost before the block ended, unless it raised already.
        LockError: The lock service failed, as for `LockManager.lock`.
    """
    with (
        LockManager.from_options(_gather(os.fspath(path), options or {}, provider), application=application) as manager,
        manager.lock(timeout_s=timeout_s, on_lost=on_lost) as held,
    ):
        yield held


def _gather(path: str, options: Mapping[str, object], provider: str) -> dict[str, object]:
    name = table_keys.BASE_PATH.name
    if options.get(name, path) != path:
        raise ConfigError(f"the lock of {path} is asked for, and {name} is {options[name]}: leave that out", key=name)
    return {**options, name: path, **({lock_keys.PROVIDER.name: provider} if provider else {})}
