"""What a power failure leaves of a folder: names and bytes that were flushed, and nothing else.

It is the strictest reading of POSIX: a name is kept only as the folder around it was at its last fsync, a file's bytes
only as they were at the file's. File systems with a journal keep more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

Names = dict[str, int]


@dataclass
class Disk:
    """Watches every fsync of this process; what was below `root` at first is on the disk.

    Attributes:
        root: The folder whose fate is asked for.
        on_flush: Called after each fsync: the power may fail right then.
    """

    root: Path
    on_flush: Callable[[], None] = lambda: None
    folders: dict[int, Names] = field(default_factory=dict)
    files: dict[int, bytes] = field(default_factory=dict)
    held: list[int] = field(default_factory=list)

    @contextmanager
    def watched(self, patch: pytest.MonkeyPatch) -> Iterator[Disk]:
        """A context in which flushes count."""
        self._take_in(self.root)
        fsync = os.fsync

        def flush(handle: int) -> None:
            fsync(handle)
            self._record(handle)
            self.on_flush()

        with patch.context() as patched:
            patched.setattr("os.fsync", flush)
            yield self
        for handle in self.held:
            os.close(handle)

    def restore_to(self, target: Path) -> Path:
        """Lay out in a new folder what the disk has now."""
        self._lay_out(self.root.stat().st_ino, target)
        return target

    def _lay_out(self, inode: int, target: Path) -> None:
        if inode in self.folders:
            target.mkdir()
            for name, child in self.folders[inode].items():
                self._lay_out(child, target / name)
        else:
            target.write_bytes(self.files.get(inode, b""))

    def _take_in(self, path: Path) -> None:
        handle = os.open(path, os.O_RDONLY)
        self._record(handle)
        os.close(handle)
        if path.is_dir():
            for child in path.iterdir():
                self._take_in(child)

    def _record(self, handle: int) -> None:
        """Keep a handle of what is recorded: else its inode number could be given to another file."""
        inode = os.fstat(handle).st_ino
        self.held.append(os.dup(handle))
        path = Path(f"/proc/self/fd/{handle}").readlink()
        if path.is_dir():
            with os.scandir(path) as children:
                self.folders[inode] = {child.name: child.inode() for child in children}
                self.folders |= {child: {} for child in self._new_folders(path)}
        elif path.exists():
            self.files[inode] = path.read_bytes()

    def _new_folders(self, path: Path) -> list[int]:
        """Folders whose names are on the disk now, and of whose own names nothing is."""
        with os.scandir(path) as children:
            return [child.inode() for child in children if child.is_dir() and child.inode() not in self.folders]
