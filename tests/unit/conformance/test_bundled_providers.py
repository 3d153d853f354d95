"""The providers that come along, and the sample, judged by the kit through its pytest class."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_locks_conformance import Harness, Level
from hudi_locks_conformance.sample import SampleLockProvider
from hudi_locks_conformance.suite import LockProviderSuite
from hudi_locks_providers.filesystem import FileSystemLockProvider
from hudi_locks_providers.in_process import InProcessLockProvider


class TestFileSystem(LockProviderSuite):
    level = Level.EXTRA
    claims = FileSystemLockProvider.capabilities

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Harness:
        return Harness("filesystem", {"hoodie.write.lock.filesystem.path": str(tmp_path)}, seed=1)


class TestFileSystemWithExpiry(LockProviderSuite):
    only = ("C", "D11", "E", "H")
    claims = FileSystemLockProvider.capabilities

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Harness:
        options = {"hoodie.base.path": tmp_path, "hoodie.write.lock.filesystem.expire": 2}
        return Harness("org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider", options, seed=2)


class TestInProcess(LockProviderSuite):
    level = Level.EXTRA
    claims = InProcessLockProvider.capabilities

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Harness:
        return Harness("in_process", {"hoodie.base.path": str(tmp_path)}, seed=3)


class TestSample(LockProviderSuite):
    only = ("A", "B1", "B2", "C", "D", "E", "H", "K1", "K7", "K9", "L1", "L3", "L4", "L6")
    claims = SampleLockProvider.capabilities

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Harness:
        name = "hudi_locks_conformance.sample:SampleLockProvider"
        return Harness(name, {"hoodie.sample.folder": str(tmp_path)}, seed=4)
