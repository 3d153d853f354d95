"""Audit files appear where somebody asked for them, and never get in the way."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from hudi_locks import LockScope, ManualClock, Owner

Make = Callable[..., Any]
SWITCH = "t/.hoodie/.locks/audit_enabled.json"


def audit_files(stub: Any) -> dict[str, list[dict[str, Any]]]:
    return {
        key.rpartition("/")[2]: [json.loads(line) for line in data.splitlines()]
        for key, data in stub.objects.items()
        if "/.locks/audit/" in key
    }


def test_one_file_tells_the_life_of_a_hold(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, clock: ManualClock
) -> None:
    stub.objects[SWITCH] = b'{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED": true}'
    provider, start_ms = make_storage(), clock.wall_ms()
    lease = provider.try_acquire(table, ada, 0)
    hold = provider.holder(table).token
    clock.advance(30)
    provider.renew(lease)
    clock.advance(30)
    provider.release(lease)
    ((name, lines),) = audit_files(stub).items()
    assert name == f"{start_ms}_{hold}.jsonl"
    assert [line["state"] for line in lines] == ["START", "RENEW", "END"]
    assert [line["timestamp"] - start_ms for line in lines] == [0, 30_000, 60_000]
    assert [line["lockHeld"] for line in lines] == [True, True, False]
    assert all(line["lockExpiration"] == line["timestamp"] + 300_000 for line in lines)
    assert all((line["ownerId"], line["transactionStartTime"]) == (hold, start_ms) for line in lines)


@pytest.mark.parametrize("switch", [None, b"", b"{", b"[]", b'{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED": "yes"}'])
def test_without_a_clear_yes_nothing_is_written(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, switch: bytes | None
) -> None:
    if switch is not None:
        stub.objects[SWITCH] = switch
    provider = make_storage()
    provider.release(provider.try_acquire(table, ada, 0))
    assert audit_files(stub) == {}


def test_the_switch_is_looked_at_again_after_five_minutes(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, clock: ManualClock
) -> None:
    provider = make_storage()
    for passed_s, files in ((0, 0), (299, 0), (1, 1)):
        clock.advance(passed_s)
        provider.release(provider.try_acquire(table, ada, 0))
        assert len(audit_files(stub)) == files
        stub.objects[SWITCH] = b'{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED": true}'


def test_what_fails_is_logged_and_the_lock_is_held(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, caplog: Any
) -> None:
    stub.objects[SWITCH] = b'{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED": true}'
    stub.always(403, part="/audit/")
    provider = make_storage()
    with caplog.at_level(logging.WARNING):
        lease = provider.try_acquire(table, ada, 0)
    provider.renew(lease)
    provider.release(lease)
    assert "was not written" in caplog.text
    stub.always(503, "GET", part="audit_enabled")
    assert make_storage().try_acquire(table, ada, 0)


def test_file_groups_are_not_audited(make_storage: Make, stub: Any, ada: Owner) -> None:
    stub.objects[SWITCH] = b'{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED": true}'
    make_storage().try_acquire(LockScope.file_group("p", "f"), ada, 0)
    assert audit_files(stub) == {}
