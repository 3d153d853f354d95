"""One lock of the metastore, which may cover several scopes."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field

from hudi_locks.lock import LockScope, Owner
from hudi_locks_providers._hive.metastore import Metastore

__all__ = ["HiveHold"]


@dataclass(eq=False)
class HiveHold:
    """The state of the leases that one lock request gave.

    Attributes:
        lock_id: The lock's.
        owner: Who holds it.
        metastore: Through which it was acquired.
        scopes: What it covers and was not released yet; the metastore frees all of them at once.
        proven_s: When the request was sent that last proved it to be ours, on the monotonic clock.
        pid: Of the process that holds it.
        lock: Held while a request changes it.
    """

    lock_id: int
    owner: Owner
    metastore: Metastore
    scopes: set[LockScope]
    proven_s: float
    pid: int = field(default_factory=os.getpid)
    lock: threading.Lock = field(default_factory=threading.Lock)
