"""The lock file: who may take it, and who may not delete it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_providers._files import local

from hudi_locks import (
    AlreadyHeld,
    BackendRefused,
    ConfigError,
    LockLost,
    LockManager,
    LockScope,
    LossReason,
    ManualClock,
    Owner,
    ProviderClosed,
)

Make = Callable[..., Any]
JVM_RECORD = b"""{
  "lockCreateTime" : "2026-01-02 03:04:05.678",
  "lockThreadName" : "Driver",
  "lockStacksInfo" : [ "java.lang.Thread.getStackTrace (Thread.java:1564)" ]
}"""


def age(path: Path, clock: ManualClock, seconds: float) -> None:
    os.utime(path, ns=(round((clock.wall_ms() / 1000 - seconds) * 1e9),) * 2)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def put(path: Path, data: bytes, clock: ManualClock) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    age(path, clock, 0)


def test_the_file_appears_whole(make: Make, lock_file: Path, table: Any, ada: Owner, monkeypatch: Any) -> None:
    seen: list[bool] = []
    write = os.write

    def slow_write(fd: int, data: bytes) -> int:
        seen.append(lock_file.exists())
        return write(fd, data)

    monkeypatch.setattr(os, "write", slow_write)
    make().try_acquire(table, ada, 0)
    assert seen == [False]
    assert lock_file.stat().st_size > 0


@pytest.mark.parametrize("unnamed", [True, False], ids=["unnamed", "named"])
def test_nothing_else_is_left(
    make: Make, lock_file: Path, table: Any, ada: Owner, bob: Owner, monkeypatch: Any, unnamed: bool
) -> None:
    if not unnamed:
        monkeypatch.setattr(local, "_O_TMPFILE", 0)
    provider = make()
    lease = provider.try_acquire(table, ada, 0)
    assert make().try_acquire(table, bob, 0) is None
    assert names(lock_file.parent) == [".hudi_locks", "lock"]
    provider.release(lease)
    provider.release(lease)
    assert names(lock_file.parent) == [".hudi_locks"]
    assert len(names(lock_file.parent / ".hudi_locks/tokens")) == 1


def test_holder_is_told_also_while_it_is_a_stranger(
    make: Make, lock_file: Path, table: Any, ada: Owner, clock: ManualClock
) -> None:
    provider = make(expire=5)
    assert provider.holder(table) is None
    lease = provider.try_acquire(table, ada, 0)
    clock.advance(60)
    told = make().holder(table)
    assert (told.owner, told.key, told.since_ms) == (ada, str(lock_file), 1_700_000_000_000)
    assert (told.age_ms, told.expires_in_ms) == (60_000, 240_000)
    provider.release(lease)
    put(lock_file, JVM_RECORD, clock)
    assert provider.holder(table).owner.thread == "Driver"


@pytest.mark.parametrize(
    "content", [b"", b"\xff\x00garbage", JVM_RECORD, b"[1]", b"null"], ids=["empty", "garbage", "jvm", "list", "null"]
)
def test_whatever_a_jvm_left_is_a_lock(
    make: Make, lock_file: Path, table: Any, ada: Owner, clock: ManualClock, content: bytes
) -> None:
    put(lock_file, content, clock)
    provider = make()
    clock.advance(10_000_000)
    assert provider.try_acquire(table, ada, 0) is None
    assert lock_file.read_bytes() == content
    assert provider.holder(table).raw == content.decode("utf-8", "replace")


def test_expiry_is_judged_as_the_jvm_does(make: Make, lock_file: Path, table: Any, ada: Owner, clock: Any) -> None:
    put(lock_file, JVM_RECORD, clock)
    provider = make(expire=1)
    clock.advance(60)
    assert provider.try_acquire(table, ada, 0) is None
    clock.advance(0.002)
    assert provider.try_acquire(table, ada, 0) is not None


def test_a_holder_of_ours_is_judged_by_its_own_setting(
    make: Make, lock_file: Path, table: Any, ada: Owner, bob: Owner, clock: ManualClock
) -> None:
    make().try_acquire(table, ada, 0)
    clock.advance(3600)
    assert make(expire=1).try_acquire(table, bob, 0) is None
    lock_file.unlink()
    make(expire=1).try_acquire(table, ada, 0)
    clock.advance(61)
    assert make().try_acquire(table, bob, 0) is not None


def test_a_renewed_lease_outlasts_its_time(make: Make, table: Any, ada: Owner, bob: Owner, clock: ManualClock) -> None:
    provider, other = make(expire=1), make(expire=1)
    lease = provider.try_acquire(table, ada, 0)
    for _ in range(12):
        clock.advance(40)
        lease = provider.renew(lease)
        assert other.try_acquire(table, bob, 0) is None
    clock.advance(60)
    with pytest.raises(LockLost) as caught:
        provider.renew(lease)
    assert caught.value.reason is LossReason.EXPIRED


@pytest.mark.parametrize("expire", [0, 1])
def test_a_jvm_peer_that_deletes_or_replaces_is_noticed(
    make: Make, lock_file: Path, table: Any, ada: Owner, clock: ManualClock, expire: int
) -> None:
    provider = make(expire=expire)
    lease = provider.try_acquire(table, ada, 0)
    lock_file.unlink()
    with pytest.raises(LockLost) as caught:
        provider.renew(lease)
    assert caught.value.reason is LossReason.DELETED
    put(lock_file, b"", clock)
    with pytest.raises(LockLost) as caught:
        provider.renew(lease)
    assert caught.value.reason is LossReason.STOLEN
    provider.release(lease)
    assert lock_file.read_bytes() == b""
    provider.close()
    assert lock_file.exists()


def test_release_and_close_spare_the_successor(make: Make, table: Any, ada: Owner, bob: Owner, clock: Any) -> None:
    provider, other = make(expire=1), make(expire=1)
    old = provider.try_acquire(table, ada, 0)
    clock.advance(61)
    new = other.try_acquire(table, bob, 0)
    assert new.token > old.token
    provider.release(old)
    provider.close()
    assert other.renew(new).token == new.token


def test_a_provider_that_never_got_it_leaves_it(make: Make, lock_file: Path, table: Any, ada: Owner, bob: Any) -> None:
    make().try_acquire(table, ada, 0)
    loser = make()
    assert loser.try_acquire(table, bob, 0) is None
    loser.close()
    assert lock_file.exists()


def test_the_second_of_two_who_saw_it_expired_takes_nothing(
    make: Make, lock_file: Path, table: Any, ada: Owner, bob: Owner, clock: ManualClock
) -> None:
    put(lock_file, b"", clock)
    clock.advance(61)
    first, second = make(expire=1), make(expire=1)
    seen_by_second = local.LocalLockFile(str(lock_file)).find()
    assert seen_by_second is not None
    won = first.try_acquire(table, ada, 0)
    assert not local.LocalLockFile(str(lock_file)).remove_found(seen_by_second, lambda found: True)
    first.renew(won)
    assert second.try_acquire(table, bob, 0) is None


def test_a_fresh_file_that_was_moved_by_mistake_goes_back(
    lock_file: Path, clock: ManualClock, monkeypatch: Any
) -> None:
    put(lock_file, b"old", clock)
    file = local.LocalLockFile(str(lock_file))
    found = file.find()
    assert found is not None
    rename = os.rename

    def replaced_just_before(source: str, target: str) -> None:
        lock_file.unlink()
        lock_file.write_bytes(b"fresh")
        rename(source, target)

    monkeypatch.setattr(os, "rename", replaced_just_before)
    assert not file.remove_found(found, lambda seen: True)
    assert lock_file.read_bytes() == b"fresh"
    assert names(lock_file.parent) == ["lock"]


def test_a_renewal_just_before_the_move_saves_the_holder(
    make: Make, lock_file: Path, table: Any, ada: Owner, bob: Owner, clock: ManualClock, monkeypatch: Any
) -> None:
    holder, contender = make(expire=1), make(expire=1)
    lease = holder.try_acquire(table, ada, 0)
    age(lock_file, clock, 100)
    rename = os.rename

    def renewed_just_before(source: str, target: str) -> None:
        monkeypatch.setattr(os, "rename", rename)
        holder.renew(lease)
        rename(source, target)

    monkeypatch.setattr(os, "rename", renewed_just_before)
    assert contender.try_acquire(table, bob, 0) is None
    holder.renew(lease)


def test_an_expired_holder_lets_go_of_its_own_file_only(
    make: Make, lock_file: Path, table: Any, ada: Any, clock: Any
) -> None:
    provider = make(expire=1)
    lease = provider.try_acquire(table, ada, 0)
    clock.advance(100)
    provider.release(lease)
    assert not lock_file.exists()


def test_break_removes_what_was_shown_and_nothing_newer(
    make: Make, lock_file: Path, table: Any, ada: Owner, bob: Owner, clock: ManualClock
) -> None:
    provider = make()
    lease = provider.try_acquire(table, ada, 0)
    shown = make().holder(table).token
    provider.release(lease)
    assert make().break_if(table, shown) is False
    provider.try_acquire(table, bob, 0)
    assert make().break_if(table, shown) is False
    assert make().break_if(table, make().holder(table).token) is True
    assert not lock_file.exists()
    put(lock_file, b"", clock)
    assert make().break_if(table, make().holder(table).token) is True


@pytest.mark.parametrize(("renewals", "is_removed"), [(1, True), (3, True), (1_000, False)])
def test_a_hold_that_is_renewed_while_it_is_broken_is_tried_again(
    make: Make, table: Any, ada: Owner, monkeypatch: pytest.MonkeyPatch, renewals: int, is_removed: bool
) -> None:
    provider = make()
    lease = provider.try_acquire(table, ada, 0)
    remove, left = local.LocalLockFile.remove_found, [None] * renewals

    def renew_first(self: Any, found: Any, still: Any) -> bool:
        if left:
            left.pop()
            provider.clock.advance(0.001)
            provider.renew(lease)
        return bool(remove(self, found, still))

    monkeypatch.setattr(local.LocalLockFile, "remove_found", renew_first)
    other = make()
    assert other.break_if(table, other.holder(table).token) is is_removed
    assert (other.holder(table) is None) is is_removed


def test_the_owner_asking_again_is_refused_but_not_after_a_loss(
    make: Make, lock_file: Path, table: Any, ada: Owner
) -> None:
    provider = make()
    first = provider.try_acquire(table, ada, 0)
    with pytest.raises(AlreadyHeld):
        provider.try_acquire(table, ada, 0)
    lock_file.unlink()
    second = provider.try_acquire(table, ada, 0)
    assert second.token > first.token
    provider.release(first)
    provider.renew(second)


def test_the_checksum_that_hadoop_left_goes_with_its_file(
    make: Make, lock_file: Path, table: Any, ada: Owner, clock: ManualClock
) -> None:
    put(lock_file, JVM_RECORD, clock)
    checksum = lock_file.with_name(".lock.crc")
    checksum.write_bytes(b"crc")
    clock.advance(61)
    assert make(expire=1).try_acquire(table, ada, 0) is not None
    assert not checksum.exists()


def test_file_groups_have_files_of_their_own(make: Make, table: Any, ada: Owner) -> None:
    provider = make()
    scopes = [
        table,
        LockScope.file_group("", "a"),
        LockScope.file_group("a", "b/c"),
        LockScope.file_group("a/b", "c"),
        LockScope.file_group("größe=1 m", "x" * 1000),
        LockScope.file_group("..", ".."),
    ]
    leases = [provider.try_acquire(scope, ada, 0) for scope in scopes]
    assert None not in leases
    assert len({provider.holder(scope).key for scope in scopes}) == len(scopes)


def test_tokens_grow_whatever_happens(make: Make, lock_file: Path, table: Any, ada: Owner, clock: Any) -> None:
    tokens = []
    for number in range(20):
        provider = make()
        lease = provider.try_acquire(table, ada, 0)
        tokens.append(lease.token)
        if number % 3:
            lock_file.unlink()
        if number == 10:
            next((lock_file.parent / ".hudi_locks/tokens").iterdir()).unlink()
        provider.close()
    assert tokens == sorted(set(tokens))
    assert tokens[:3] == [1, 2, 3]


def test_a_closed_provider_refuses(make: Make, table: Any, ada: Owner) -> None:
    provider = make()
    provider.close()
    provider.close()
    with pytest.raises(ProviderClosed):
        provider.try_acquire(table, ada, 0)


def test_a_folder_in_the_way_or_no_folder_possible_is_final(
    make: Make, lock_file: Path, tmp_path: Path, table: Any, ada: Owner
) -> None:
    lock_file.mkdir(parents=True)
    with pytest.raises(BackendRefused, match="lock: Is a directory"):
        make().try_acquire(table, ada, 0)
    (tmp_path / "file").write_text("")
    with pytest.raises(BackendRefused, match="Not a directory"):
        make(path=str(tmp_path / "file/locks")).try_acquire(table, ada, 0)


def test_a_path_or_a_base_path_is_needed() -> None:
    with pytest.raises(ConfigError, match=r"needs hoodie.write.lock.filesystem.path or hoodie.base.path"):
        LockManager("filesystem", {})


def test_negative_expiry_is_refused(make: Make) -> None:
    with pytest.raises(ConfigError, match="expire=-1 is below"):
        make(expire=-1)
