"""The lock name that Hudi's implicit providers make of a table's base path, so that no key need be agreed on."""

from __future__ import annotations

from typing import Final

import xxhash

from hudi_locks.config import table_keys
from hudi_locks.errors import ConfigError

__all__ = ["implicit_key"]

_SEED: Final = 0xFFFF_FFFF_DABA_DABA
"""Java's int 0xDABADABA, widened with its sign."""
_S3A: Final = "s3a://"


def implicit_key(base_path: str, *, normalise: bool) -> str:
    """XXH64 of the base path as 16 upper-case hex digits, as Hudi's implicit ZooKeeper and DynamoDB providers use it.

    `s3a://` becomes `s3://` in any case. Paths without blanks around them and without a slash at their end give the
    same key with and without normalisation, and so in every release of Hudi since 1.0.

    Args:
        base_path: The table's base path, as `hoodie.base.path` has it.
        normalise: Strip blanks around the path and slashes at its end, as Hudi does after 1.2; else take it verbatim,
            as Hudi 1.0 to 1.2 do.

    Raises:
        ConfigError: Nothing but a scheme or slashes is left of the path.
    """
    path = _strip(base_path) if normalise else base_path
    if path[: len(_S3A)].lower() == _S3A:
        path = f"s3://{path[len(_S3A) :]}"
    return _hash(path.encode())


def _strip(base_path: str) -> str:
    path = base_path.rstrip("/ \t\r\n").strip()
    if not path or path.endswith(":"):
        key = table_keys.BASE_PATH.name
        raise ConfigError(f"{key}={base_path!r} names no table: a lock cannot be derived from it", key=key)
    return path


def _hash(data: bytes) -> str:
    return xxhash.xxh64_hexdigest(data, seed=_SEED).upper()
