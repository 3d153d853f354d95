"""Whether a file system creates and takes over lock files for one contender only: tried on scratch files."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from hudi_locks.clock import Clock
from hudi_locks.errors import BackendRefused
from hudi_locks.lock import Finding
from hudi_locks_providers._crowd import run_all, unwrap
from hudi_locks_providers._files.lock_file import LockFile, LockFolder

__all__ = ["FolderTruth"]

_CONTENDERS: Final = 8
_FILES: Final = 5
_MOST_OFFSET_MS: Final = 500
_SECOND_MS: Final = 1000
_OTHER: Final = "two writers could hold one lock: use another folder, or another lock provider"
_PROVEN: Final[set[str]] = set()
"""Folders that were proven within this process."""


class FolderTruth:
    """The truth probe of one folder.

    Args:
        folder: Where lock files lie.
        clock: To compare with the file system's.
        url: Of the folder, for a person to read.
    """

    def __init__(self, folder: LockFolder, clock: Clock, url: str) -> None:
        self._folder = folder
        self._clock = clock
        self._url = url

    def prove(self) -> None:
        """Return if the file system is proven, now or earlier in this process.

        Raises:
            BackendRefused: It is not; names what failed.
        """
        if self._url in _PROVEN:
            return
        for finding in (self._create_once(), self._race_creates()):
            if not finding.ok:
                raise BackendRefused(
                    f"{self._url}: {finding.name}: {finding.found}; {finding.advice}",
                    key=self._url,
                    finding=finding.name,
                )
        _PROVEN.add(self._url)

    def examine(self) -> tuple[Finding, ...]:
        """Everything, as findings for a person."""
        return (self._create_once(), self._race_creates(), self._race_takeovers(), self._compare_clocks())

    def _file(self) -> LockFile:
        return self._folder.lock_file(f".hudi_locks/probe/{uuid.uuid4().hex}")

    def _create_once(self) -> Finding:
        file = self._file()
        first, second = file.create(b"first", None), file.create(b"second", None)
        kept = first is not None and file.is_ours(first) is True
        _remove(file, [first, second])
        found = (
            f"a second create of one file was {'refused' if second is None else 'accepted'}, and the first is"
            f" {'as it was' if kept else 'gone'}"
        )
        return _judge("create-once", found, ok=kept and second is None)

    def _race_creates(self) -> Finding:
        wins = []
        for _ in range(_FILES):
            file = self._file()
            calls = [partial(file.create, b"contender %d" % number, None) for number in range(_CONTENDERS)]
            grips = [grip for grip in unwrap(run_all(calls)) if grip is not None]
            wins.append(len(grips))
            _remove(file, grips)
        return _judge_race("create-race-has-one-winner", wins)

    def _race_takeovers(self) -> Finding:
        wins = []
        for _ in range(_FILES):
            file = self._file()
            grip, found = file.create(b"expired", None), file.find()
            calls: list[Callable[[], bool]] = []
            if found is not None:
                calls = [partial(file.remove_found, found, lambda _: True)] * _CONTENDERS
            wins.append(sum(unwrap(run_all(calls))))
            _remove(file, [grip])
        return _judge_race("takeover-race-has-one-winner", wins)

    def _compare_clocks(self) -> Finding:
        file, sent_ms = self._file(), self._clock.wall_ms()
        grip = file.create(b"clock", None)
        found, answered_ms = file.find(), self._clock.wall_ms()
        _remove(file, [grip])
        if found is None:
            return Finding("clock-offset", ok=False, found="a file that was made is not there", advice=_OTHER)
        least_ms, most_ms = found.modified_ms - answered_ms, found.modified_ms + _SECOND_MS - sent_ms
        ok = least_ms <= _MOST_OFFSET_MS and most_ms >= -_MOST_OFFSET_MS
        said = f"the file system's clock is between {least_ms:+d} and {most_ms:+d} ms from this machine's"
        return Finding("clock-offset", ok, said, "" if ok else "keep this machine's clock in step, as by NTP")


def _remove(file: LockFile, grips: list[Any]) -> None:
    for grip in grips:
        if grip is not None:
            file.remove_own(grip, contended=False)


def _judge_race(name: str, wins: list[int]) -> Finding:
    found = f"{_CONTENDERS} contenders on {len(wins)} files: {min(wins)} to {max(wins)} winners of each"
    return _judge(name, found, ok=all(won == 1 for won in wins))


def _judge(name: str, found: str, *, ok: bool) -> Finding:
    return Finding(name, ok, found, "" if ok else _OTHER)
