"""Opens tables in buckets: on S3, Google Cloud Storage and Azure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hudi_locks.config import Options
from hudi_locks.storage import Storage
from hudi_locks_providers._storage.location import parse_location
from hudi_locks_providers._storage.stores import check_settings
from hudi_locks_providers.azure_storage import AzureStorage
from hudi_locks_providers.gcs_storage import GcsStorage
from hudi_locks_providers.s3_storage import S3Storage

__all__ = ["open_object_storage"]

_KEYS: Final = ("hudi_locks.storage.", "hoodie.aws.", "hoodie.write.lock.azure.")
"""How the keys begin that executors are given, secrets among them."""
_KINDS: Final[Mapping[str, Callable[[str, Options], Storage]]] = {
    "s3": S3Storage,
    "gcs": GcsStorage,
    "azure": AzureStorage,
    "memory": GcsStorage,
}


def open_object_storage(path: str, options: Mapping[str, object]) -> Storage:
    """The storage of a table in a bucket; sends nothing.

    Args:
        path: `s3://`, `s3a://`, `gs://`, `abfs(s)://container@account.…/` or `wasb(s)://`.
        options: Keys `hudi_locks.storage.*`, `hoodie.aws.*` and those of Azure; the cloud's default chain goes on where
            they say nothing.

    Raises:
        ConfigError: The path names no bucket, an endpoint is without TLS that nobody allowed, or credentials are not
            whole.
    """
    found = Options({name: options[name] for name in options if name.startswith(_KEYS)})
    location = parse_location(path)
    check_settings(found, location)
    return _KINDS[location.service](path.rstrip("/"), found)
