"""A storage lock in a bucket for a table that lies elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from hudi_locks_providers.storage import StorageLockProvider

from hudi_locks import Clock
from hudi_locks.lock import LossCallback

__all__ = ["BUCKET", "BucketLockProvider"]

BUCKET: Final = "_soak.bucket"
"""The option that names the folder of all locks, as `s3a://bucket/folder`."""
_BASE_PATH: Final = "hoodie.base.path"


class BucketLockProvider(StorageLockProvider):
    """The storage provider, with the lock of a local table at a place of its own in the bucket."""

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        name = hashlib.sha256(str(options[_BASE_PATH]).encode()).hexdigest()
        place = {_BASE_PATH: f"{options[BUCKET]}/{name}"}
        super().__init__({**options, **place}, clock=clock, on_lost=on_lost)
