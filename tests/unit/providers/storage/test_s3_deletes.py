"""Deleting from S3 what another process deletes at the same moment."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest
from hudi_locks_providers._s3 import client as s3_client
from hudi_locks_providers._s3.bucket import Bucket, NothingThere
from hudi_locks_providers.s3_storage import S3Storage

from hudi_locks.errors import StorageError
from hudi_locks.storage import Storage, open_storage

KEYS = {"hoodie.aws.access.key": "a", "hoodie.aws.secret.key": "s"}


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Storage:
    """One that sees every file, of a service that says of each that it is gone."""

    def answer(*_: object, **__: object) -> NoReturn:
        raise NothingThere

    monkeypatch.setattr(s3_client, "_OPEN", {})
    monkeypatch.setattr(S3Storage, "exists", lambda *_: True)
    monkeypatch.setattr(Bucket, "ask", answer)
    return open_storage("s3://bucket/t", KEYS)


def test_a_file_that_another_removed_meanwhile_was_not_there(storage: Storage) -> None:
    assert storage.delete("a") is False


def test_of_many_those_that_are_gone_are_no_failure(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.delete_all(["a"])
    told: list[dict[str, Any]] = [{"Key": "t/a", "Code": "NoSuchKey"}]
    monkeypatch.setattr(Bucket, "repeat", lambda *_: {"Errors": told})
    storage.delete_all(["a", "b"])
    told.append({"Key": "t/b", "Code": "AccessDenied"})
    with pytest.raises(StorageError, match=r"t/b and 0 others were not removed \(AccessDenied\)"):
        storage.delete_all(["a", "b"])
