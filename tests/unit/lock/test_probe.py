"""What a provider may find out about its lock service."""

from __future__ import annotations

from hudi_locks import Finding, LockManager


def test_a_provider_without_a_probe_finds_nothing() -> None:
    with LockManager("noop", {}) as manager:
        assert manager.provider.probe() == ()


def test_a_good_finding_needs_no_advice() -> None:
    assert Finding("put-if-absent", True, "8 contenders, 1 winner").advice == ""
