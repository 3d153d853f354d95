"""The providers that come along, and the sample, judged by the kit through its pytest class."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_locks_conformance import Harness, Level
from hudi_locks_conformance.sample import SampleLockProvider
from hudi_locks_conformance.suite import LockProviderSuite
from hudi_locks_providers.chain import ChainLockProvider
from hudi_locks_providers.filesystem import FileSystemLockProvider
from hudi_locks_providers.in_process import InProcessLockProvider
from hudi_locks_providers.storage import StorageLockProvider


@pytest.mark.verdicts
class TestFileSystem(LockProviderSuite):
    level = Level.EXTRA
    claims = FileSystemLockProvider.capabilities

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Harness:
        return Harness("filesystem", {"hoodie.write.lock.filesystem.path": str(tmp_path)}, seed=1)


class TestFileSystemWithExpiry(LockProviderSuite):
    only = ("B13", "C", "D11", "E", "H", "I")
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


@pytest.mark.verdicts
class TestStorageInMemory(LockProviderSuite):
    """On obstore's own store in memory, which no other process sees; tests/servers has real services."""

    only = (
        "A",
        "B1",
        "B2",
        "B3",
        "B8",
        "B10",
        "B11",
        "B13",
        "C",
        "D",
        "E",
        "G",
        "I",
        "N",
        "H1",
        "H2",
        "H3",
        "H4",
        "H6",
        "H7",
        "H8",
        "H9",
        "H10",
        "H13",
        "H14",
        "J5",
        "J6",
        "J9",
        "K",
        "L",
    )
    claims = StorageLockProvider.capabilities

    @pytest.fixture
    def harness(self) -> Harness:
        return Harness("storage", {"hoodie.base.path": "memory://conformance/table"}, seed=5)


@pytest.mark.verdicts
class TestChain(LockProviderSuite):
    """Two lock files, each in a folder of its own."""

    level = max(Level)
    claims = ChainLockProvider.capabilities

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Harness:
        options = {
            "hudi_locks.chain.providers": "filesystem,filesystem",
            "hudi_locks.chain.first.hoodie.write.lock.filesystem.path": str(tmp_path / "old"),
            "hudi_locks.chain.second.hoodie.write.lock.filesystem.path": str(tmp_path / "new"),
        }
        return Harness("chain", options, seed=6, virtual_time=True)


@pytest.mark.verdicts
class TestSample(LockProviderSuite):
    only = ("A", "B1", "B2", "B13", "C", "D", "E", "H", "I", "K1", "K7", "K9", "L1", "L3", "L4", "L6")
    claims = SampleLockProvider.capabilities

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Harness:
        name = "hudi_locks_conformance.sample:SampleLockProvider"
        return Harness(name, {"hoodie.sample.folder": str(tmp_path)}, seed=4)
