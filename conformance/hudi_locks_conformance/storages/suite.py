"""The checks of storages as a pytest class: subclass it, and give one fixture."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_locks.storage import Storage
from hudi_locks_conformance.runner import Status
from hudi_locks_conformance.storages.check import STORAGE_CHECKS, StorageCheck
from hudi_locks_conformance.storages.judging import run_storage_check

__all__ = ["StorageSuite"]


class StorageSuite:
    """One test for each check, with the check's id as its id.

    Example::

        class TestMine(StorageSuite):
            @pytest.fixture
            def storage(self) -> Storage:
                return MyStorage("mine://host/table")

    A check of what the storage does not promise is skipped with its reason.
    """

    @pytest.fixture
    def storage(self) -> Storage:
        """The storage to judge."""
        pytest.fail("override the fixture 'storage'")

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Give `test_conforms` one parameter for each check."""
        if "storage_check" in metafunc.fixturenames:
            checks = [pytest.param(check, id=check.id) for check in STORAGE_CHECKS.values()]
            metafunc.parametrize("storage_check", checks)

    def test_conforms(self, storage: Storage, storage_check: StorageCheck) -> None:
        """The storage does what the check demands."""
        outcome = run_storage_check(storage_check, storage)
        if outcome.status in (Status.UNSUPPORTED, Status.NOT_RUN):
            pytest.skip(f"{outcome.status.value}: {outcome.message}")
        if outcome.status is not Status.PASS:
            said = (
                f"{storage_check.id} {storage_check.name}: {outcome.message}",
                storage_check.demand,
                storage_check.why,
            )
            pytest.fail("\n".join(said), pytrace=False)
