"""The lock object is the JVM's, byte for byte."""

from __future__ import annotations

import pytest
from hudi_locks_providers._wire.storage_lock import (
    StorageRecord,
    decode_named,
    decode_record,
    encode_named,
    encode_record,
)

from hudi_locks import Owner

UNTIL_MS = 1795229529550
JVM_OWNER = "00000000-0000-4000-8000-000000000001"
HELD = b'{"expired":false,"validUntil":1795229529550,"owner":"00000000-0000-4000-8000-000000000001"}'
RELEASED = b'{"expired":true,"validUntil":1795229529550,"owner":"00000000-0000-4000-8000-000000000001"}'
"""What the serialiser of Hudi 1.2.0 (StorageLockFile) makes of these values."""


@pytest.mark.parametrize(("expired", "golden"), [(False, HELD), (True, RELEASED)])
def test_bytes_are_those_of_the_jvm(expired: bool, golden: bytes) -> None:
    record = StorageRecord(expired, UNTIL_MS, JVM_OWNER)
    assert encode_record(record) == golden
    assert decode_record(golden) == record


def test_unknown_fields_and_blanks_are_ignored() -> None:
    data = b'{ "owner": "x", "added": [1], "validUntil": 5, "expired": false }'
    assert decode_record(data) == StorageRecord(False, 5, "x")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\x00",
        b"null",
        b"[]",
        b'{"expired":false,"owner":"x"}',
        b'{"expired":null,"validUntil":5,"owner":"x"}',
        b'{"expired":false,"validUntil":true,"owner":"x"}',
        b'{"expired":false,"validUntil":"5","owner":"x"}',
        b'{"expired":"no","validUntil":5,"owner":"x"}',
    ],
)
def test_what_lacks_a_field_is_no_record(data: bytes) -> None:
    assert decode_record(data) is None


def test_the_owner_begins_with_the_hold_and_names_its_holder() -> None:
    owner = Owner("ada&=?", "höst", 11, "main", "etl 7")
    text = encode_named(JVM_OWNER, owner, 1234)
    assert text.startswith(JVM_OWNER + "?")
    named = decode_named(text)
    assert (named.hold, named.owner, named.since_ms) == (JVM_OWNER, owner, 1234)


def test_of_the_jvm_the_owner_is_the_id() -> None:
    named = decode_named(JVM_OWNER)
    assert (named.hold, named.owner, named.since_ms) == (JVM_OWNER, Owner(JVM_OWNER), None)


def test_long_names_are_cut() -> None:
    assert len(encode_named(JVM_OWNER, Owner("i" * 5000, thread="t" * 5000), 0)) < 600
