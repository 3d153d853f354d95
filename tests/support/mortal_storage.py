"""A storage whose process dies before any one of the changes that it makes."""

from __future__ import annotations

from typing import Any

from transaction_harness import Killed

from hudi_locks.storage import MemoryStorage


class MortalStorage(MemoryStorage):
    """Shares the files of another storage; its process dies before change number `life`, heartbeats included."""

    def __init__(self, files: MemoryStorage, life: int) -> None:
        super().__init__(files._clock, base=files.base)
        self._files = files._files
        self.life = life

    def _live(self, *_: Any) -> None:
        if self.life <= 0:
            raise Killed
        self.life -= 1

    def create_if_absent(self, path: str, data: bytes) -> bool:
        self._live()
        return super().create_if_absent(path, data)

    def replace(self, path: str, data: bytes) -> None:
        if path not in self._files:
            super().replace(path, data)  # the second half of a create
            return
        self._live()
        super().replace(path, data)

    def touch(self, path: str) -> bool:
        return self.life > 0 and super().touch(path)

    def delete(self, path: str) -> bool:
        self._live()
        return super().delete(path)

    def delete_folder(self, folder: str) -> None:
        self._live()
        super().delete_folder(folder)
