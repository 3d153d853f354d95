"""Files of a table that is made for one test on S3."""

from __future__ import annotations

from typing import Final

from hudi_locks.storage import StagedFile, Storage

__all__ = ["ENDPOINT", "INSTANT", "TARGET", "name_file", "ticket_of", "write"]

ENDPOINT: Final = "hudi_locks.storage.endpoint_url"
INSTANT: Final = "20260101000000000"


def name_file(number: object = 0, instant: str = INSTANT) -> str:
    return f"p/f-{number}_0-0-0_{instant}.parquet"


TARGET: Final = name_file()


def write(storage: Storage, data: bytes = b"rows", *, target: str = TARGET, instant: str = INSTANT) -> StagedFile:
    staged = storage.stage(target, instant=instant)
    with staged.open() as out:
        out.write(data)
    return staged


def ticket_of(storage: Storage, data: bytes = b"rows", *, target: str = TARGET, instant: str = INSTANT) -> str:
    return write(storage, data, target=target, instant=instant).seal()
