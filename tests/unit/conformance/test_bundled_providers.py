"""The providers that come along, and the sample, judged by the kit through its pytest class."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_locks_conformance import Harness, Level
from hudi_locks_conformance.suite import LockProviderSuite


class TestFileSystem(LockProviderSuite):
    level = Level.EXTRA

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Harness:
        return Harness("filesystem", {"hoodie.write.lock.filesystem.path": str(tmp_path)}, seed=1)


class TestFileSystemWithExpiry(LockProviderSuite):
    only = ("A", "C", "D", "E", "H")

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Harness:
        options = {"hoodie.base.path": tmp_path, "hoodie.write.lock.filesystem.expire": 2}
        return Harness("org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider", options, seed=2)


class TestInProcess(LockProviderSuite):
    level = Level.EXTRA

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Harness:
        return Harness("in_process", {"hoodie.base.path": str(tmp_path)}, seed=3)


class TestSample(LockProviderSuite):
    level = Level.EXTRA

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Harness:
        name = "hudi_locks_conformance.sample:SampleLockProvider"
        return Harness(name, {"hoodie.sample.folder": str(tmp_path)}, seed=4)
