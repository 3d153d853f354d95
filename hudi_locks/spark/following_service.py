"""A table service that follows commits: when one makes it due, or on a thread beside the writes. On the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar

from hudi_locks.spark.async_service import SERVICE_ERRORS, AsyncService
from hudi_locks.spark.result import WriteResult

__all__ = ["FollowingService"]


class FollowingService(ABC):
    """Runs a service when enough commits came since the last time. Thread-safe.

    Args:
        inline_commits: How many make it due after a commit; 0 if it never is.
        async_commits: The same of the thread.
    """

    name: ClassVar[str]

    def __init__(self, *, inline_commits: int, async_commits: int) -> None:
        self._inline_commits = inline_commits
        self._async_commits = async_commits
        self._beside = AsyncService(self.name, lambda: self._run_if_due(async_commits))

    @abstractmethod
    def _run_if_due(self, commits: int) -> WriteResult | None:
        """Run it if so many commits came since the last time, else what waits from before; None for nothing."""

    def follow(self, result: WriteResult) -> WriteResult:
        """Do what is due after a commit, here or beside; the commit stands whatever comes of it."""
        if self._async_commits:
            self._beside.ask()
        if not self._inline_commits:
            return result
        try:
            self._run_if_due(self._inline_commits)
        except SERVICE_ERRORS as error:
            return replace(result, warnings=(*result.warnings, f"inline {self.name} failed: {error}"))
        return result

    def wait(self) -> tuple[WriteResult, ...]:
        """Wait for the thread; what it has done so far."""
        self._beside.wait()
        return tuple(self._beside.results)
