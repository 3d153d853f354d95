"""Counters of fencing tokens: greater each time, whoever asks, and whatever became of the lock files."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path

__all__ = ["LocalTokens"]


class LocalTokens:
    """A folder with one empty file, whose name is the number: renaming it to the next one is the step.

    Only one of several renames of one file succeeds, so that no number is given twice, even to a holder who has lost
    its lock without knowing. The folder itself appears whole, by a rename.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._last: int | None = None

    def advance(self, floor: int) -> int:
        """The next number; `floor` is where to begin in a folder that was emptied by hand."""
        while True:
            last = self._find(floor) if self._last is None else self._last
            try:
                os.rename(self._path(last), self._path(last + 1))  # noqa: PTH104
            except FileNotFoundError:
                self._last = None
            else:
                self._last = last + 1
                return last + 1

    def _find(self, floor: int) -> int:
        try:
            names = os.listdir(self._folder)  # noqa: PTH208
        except FileNotFoundError:
            self._begin()
            return 0
        if not names:
            Path(self._path(floor)).touch()
            return floor
        return max((int(name) for name in names if name.isdigit()), default=floor)

    def _begin(self) -> None:
        fresh = f"{self._folder}.{uuid.uuid4().hex}"
        Path(fresh).mkdir(parents=True)
        Path(fresh, f"{0:020d}").touch()
        try:
            Path(fresh).rename(self._folder)
        except OSError:
            shutil.rmtree(fresh)
            if not Path(self._folder).is_dir():
                raise

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number:020d}"
