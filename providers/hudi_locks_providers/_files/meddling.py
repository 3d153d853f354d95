"""A lock folder and an operating system whose calls pass through somebody else first, for the conformance kit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from hudi_locks_providers._files.lock_file import Found, LockFile, LockFolder

__all__ = ["Meddle", "MeddledFolder", "MeddledSystem"]

Meddle = Callable[[str, Callable[[], Any]], Any]
"""Gets the name of a call and what makes it; returns the answer."""
_CALLS: Final = frozenset({"link", "listdir", "open", "pread", "rename", "stat", "unlink", "utime", "write"})
"""Calls of the operating system that can fail for reasons of the file system."""


class _MeddledFile(LockFile):
    def __init__(self, inner: LockFile, meddle: Meddle) -> None:
        self.path = inner.path
        self._inner = inner
        self._meddle = meddle
        self._let_go: set[int] = set()

    def create(self, data: bytes, modified_ms: int | None) -> Any | None:
        return self._meddle("create", lambda: self._inner.create(data, modified_ms))

    def is_ours(self, grip: Any) -> bool | None:
        answer: bool | None = self._meddle("is_ours", lambda: self._inner.is_ours(grip))
        return answer

    def touch(self, grip: Any, modified_ms: int) -> None:
        self._meddle("touch", lambda: self._inner.touch(grip, modified_ms))

    def remove_own(self, grip: Any, *, contended: bool) -> None:
        def remove() -> None:
            if id(grip) not in self._let_go:
                self._inner.remove_own(grip, contended=contended)
                self._let_go.add(id(grip))

        self._meddle("remove_own", remove)

    def find(self) -> Found | None:
        answer: Found | None = self._meddle("find", self._inner.find)
        return answer

    def remove_found(self, found: Found, still: Callable[[Found], bool]) -> bool:
        return bool(self._meddle("remove_found", lambda: self._inner.remove_found(found, still)))


class MeddledFolder(LockFolder):
    """See `LockFolder`.

    Attributes:
        inner: The folder in truth.
    """

    def __init__(self, inner: LockFolder, meddle: Meddle) -> None:
        self.inner = inner
        self._meddle = meddle

    def lock_file(self, name: str) -> LockFile:
        """See `LockFolder.lock_file`."""
        return _MeddledFile(self.inner.lock_file(name), self._meddle)

    def is_there(self) -> bool:
        """See `LockFolder.is_there`."""
        return bool(self._meddle("find", self.inner.is_there))

    def make(self) -> None:
        """See `LockFolder.make`."""
        self._meddle("create", self.inner.make)

    def list_names(self, folder: str) -> list[str]:
        """See `LockFolder.list_names`."""
        names: list[str] = self._meddle("list", lambda: self.inner.list_names(folder))
        return names

    def next_token(self, floor: int) -> int:
        """See `LockFolder.next_token`."""
        return int(self._meddle("next_token", lambda: self.inner.next_token(floor)))


class MeddledSystem:
    """Stands in for the module `os`."""

    def __init__(self, system: Any, meddle: Meddle) -> None:
        self._system = system
        self._meddle = meddle

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._system, name)
        return partial(self._call, name, found) if name in _CALLS else found

    def _call(self, name: str, found: Callable[..., Any], *given: Any, **named: Any) -> Any:
        return self._meddle(name, lambda: found(*given, **named))
