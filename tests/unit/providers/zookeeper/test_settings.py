"""Hudi's keys of the ZooKeeper providers, and the nodes that they lead to."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hudi_locks_providers._zookeeper.settings import Settings
from hudi_locks_providers.zookeeper import ZooKeeperImplicitLockProvider, ZooKeeperLockProvider

from hudi_locks import ConfigError, LockScope, ManualClock
from hudi_locks.config import Options

ZOOKEEPER = "hoodie.write.lock.zookeeper"


def settings(url: str, **more: object) -> Settings:
    return Settings.from_options(Options({f"{ZOOKEEPER}.url": url, **{f"{ZOOKEEPER}.{k}": v for k, v in more.items()}}))


def provider(kind: type[ZooKeeperLockProvider] = ZooKeeperLockProvider, **options: object) -> ZooKeeperLockProvider:
    keys: dict[str, Any] = {f"{ZOOKEEPER}.url": "h:1"}
    keys |= {(k if "." in k else f"{ZOOKEEPER}.{k}"): v for k, v in options.items()}
    return kind(keys, clock=ManualClock(), on_lost=lambda *_: None)


def test_the_option_block_of_hudis_documentation_works_word_for_word() -> None:
    options = {
        "hoodie.cleaner.policy.failed.writes": "LAZY",
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.write.lock.zookeeper.url": "zookeeper",
        "hoodie.write.lock.zookeeper.port": "2181",
        "hoodie.write.lock.zookeeper.base_path": "/test",
        "hoodie.table.name": "trips",
    }
    found = Settings.from_options(Options(options))
    assert found == Settings("zookeeper:2181", "", 60.0, 15.0)
    made = ZooKeeperLockProvider(options, clock=ManualClock(), on_lost=lambda *_: None)
    assert made.find_folder(LockScope.table()) == "/test/trips"


@pytest.mark.parametrize(
    ("url", "port", "hosts", "chroot"),
    [
        ("a", None, "a:2181", ""),
        ("a,b:7, c", "99", "a:99,b:7,c:99", ""),
        ("a:1,b:2/root/deep", None, "a:1,b:2", "/root/deep"),
        ("a/root/", "5", "a:5", "/root"),
        ("[::1]:7,[fe80::1]", "9", "[::1]:7,[fe80::1]:9", ""),
    ],
)
def test_port_completes_every_host_that_has_none(url: str, port: str | None, hosts: str, chroot: str) -> None:
    found = settings(url, port=port)
    assert (found.hosts, found.chroot) == (hosts, chroot)


@pytest.mark.parametrize("url", ["", ",", "a,,b", "zk://a:1", "a:b", "a:0", "a:70000", "u@h:1", "a/x//y", "a/../b"])
def test_a_url_that_is_none_is_refused_by_its_key(url: str) -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.url"):
        settings(url)


@pytest.mark.parametrize("port", ["x", "0", "65536", "-1", ""])
def test_a_port_that_is_none_is_refused_by_its_key(port: str) -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.port"):
        settings("a", port=port)


def test_time_outs_are_hudis() -> None:
    found = settings("a", session_timeout_ms=5000, connection_timeout_ms="700")
    assert (found.session_timeout_s, found.connection_timeout_s) == (5.0, 0.7)


def test_places_are_the_jvms() -> None:
    made = provider(url="h:1/root", base_path="/hudi/locks", lock_key="db/t")
    assert made.find_folder(LockScope.table()) == "/root/hudi/locks/db/t"
    assert made.find_folder(LockScope.file_group("city=x/day=1", "f-0")) == "/root/hudi/locks/city=x/day=1/f-0"
    assert made.find_folder(LockScope.file_group("", "f-0")) == "/root/hudi/locks/f-0"


@pytest.mark.parametrize("base_path", ["hudi", "/hudi/", "/", "/a//b", "/a/./b"])
def test_what_curator_refuses_is_refused(base_path: str) -> None:
    with pytest.raises(ConfigError, match="path"):
        provider(base_path=base_path, lock_key="t")


@pytest.mark.parametrize(
    "scope",
    [LockScope.file_group("", "t"), LockScope.file_group("p", "a/b"), LockScope.file_group("..", "f")],
)
def test_a_file_group_that_would_be_another_lock_is_refused(scope: LockScope) -> None:
    with pytest.raises(ConfigError):
        provider(base_path="/b", lock_key="t").find_folder(scope)


def test_keys_that_are_missing_are_named() -> None:
    with pytest.raises(ConfigError, match=r"lock_key or hoodie\.table\.name"):
        provider(base_path="/b")
    with pytest.raises(ConfigError, match="base_path"):
        provider(lock_key="t")
    with pytest.raises(ConfigError, match=r"hoodie\.base\.path"):
        provider(ZooKeeperImplicitLockProvider)


def test_the_implicit_place_is_hudis() -> None:
    made = provider(ZooKeeperImplicitLockProvider, **{"hoodie.base.path": "s3a://my-bucket/my_lake/my_table"})
    assert made.find_folder(LockScope.table()) == "/tmp/C0E15D0CE1AD11CC/lock_key"


def test_a_slash_at_the_end_is_ignored_with_a_warning_or_counts(caplog: pytest.LogCaptureFixture) -> None:
    path = {"hoodie.base.path": "s3://my-bucket/my_lake/my_table/"}
    with caplog.at_level(logging.WARNING):
        made = provider(ZooKeeperImplicitLockProvider, **path)
    assert made.find_folder(LockScope.table()) == "/tmp/C0E15D0CE1AD11CC/lock_key"
    assert "68C5C8DB07B268FD" in caplog.text
    verbatim = provider(ZooKeeperImplicitLockProvider, **path, **{"hudi_locks.implicit_key.normalise": "false"})
    assert verbatim.find_folder(LockScope.table()) == "/tmp/68C5C8DB07B268FD/lock_key"
