"""Files on a local or mounted POSIX file system."""

from __future__ import annotations

import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hudi_locks.errors import StorageError
from hudi_locks.storage.storage import Entry, Storage

__all__ = ["LocalStorage"]

_STAGING = ".hoodie/.hudi_locks/tmp"
"""Half-written files wait here: JVM readers take every child of the timeline and marker folders for one of theirs."""


class LocalStorage(Storage):
    """A folder of this machine. Runs on the driver and on executors; picklable; thread-safe.

    Files with content are written to a staging folder, flushed to disk and then linked under their final name, so a
    crash leaves either nothing or the whole file. The `.crc` file that Hadoop keeps beside a file goes whenever the
    file changes, since a stale one makes the JVM refuse the file.

    Args:
        root: The table's base path as an absolute path of this machine.
        base: The same as the user wrote it; `root` if not given.
    """

    def __init__(self, root: str, *, base: str | None = None) -> None:
        self._root = Path(root)
        self.base = (base if base is not None else root).rstrip("/") or "/"

    def __repr__(self) -> str:
        return f"LocalStorage({str(self._root)!r})"

    def list(self, folder: str) -> list[Entry]:
        """See `Storage.list`."""
        with _reporting("list", folder):
            try:
                with os.scandir(self._locate(folder)) as children:
                    entries = [entry for child in children if (entry := _describe(child))]
            except FileNotFoundError:
                return []
        return sorted(entries, key=lambda entry: entry.name)

    def read(self, path: str) -> bytes | None:
        """See `Storage.read`."""
        with _reporting("read", path):
            try:
                return self._locate(path).read_bytes()
            except FileNotFoundError:
                return None

    def stat(self, path: str) -> Entry | None:
        """See `Storage.stat`."""
        with _reporting("look at", path):
            return _describe(self._locate(path))

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """See `Storage.create_if_absent`. An empty file needs no staging: its name is all of it."""
        with _reporting("create", path):
            target = self._locate(path)
            if not data:
                return _create_empty(target)
            with self._staged(data) as staged:
                return _link(staged, target)

    def replace(self, path: str, data: bytes) -> None:
        """See `Storage.replace`."""
        with _reporting("replace", path), self._staged(data) as staged:
            target = self._locate(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            _checksum_of(target).unlink(missing_ok=True)
            staged.replace(target)
            _flush(target.parent)

    def touch(self, path: str) -> bool:
        """See `Storage.touch`."""
        with _reporting("touch", path):
            try:
                os.utime(self._locate(path))
            except FileNotFoundError:
                return False
            return True

    def move_if_absent(self, source: str, target: str) -> bool:
        """See `Storage.move_if_absent`. False if another attempt took `source` away and `target` is there."""
        with _reporting("move to", target):
            old, new = self._locate(source), self._locate(target)
            if old.exists():
                _flush(old)  # else a power failure could leave the name, and a commit that counts on it, without bytes
            if not _link(old, new):
                return False
            _checksum_of(old).unlink(missing_ok=True)
            old.unlink(missing_ok=True)
            return True

    def delete(self, path: str) -> bool:
        """See `Storage.delete`."""
        with _reporting("delete", path):
            target = self._locate(path)
            _checksum_of(target).unlink(missing_ok=True)
            try:
                target.unlink()
            except FileNotFoundError:
                return False
            return True

    def delete_folder(self, folder: str) -> None:
        """See `Storage.delete_folder`."""
        with _reporting("delete", folder):
            try:
                shutil.rmtree(self._locate(folder))
            except FileNotFoundError:
                return

    def make_folder(self, folder: str) -> bool:
        """See `Storage.make_folder`."""
        with _reporting("make the folder", folder):
            self._locate(folder).mkdir(parents=True, exist_ok=True)
        return True

    def native(self, path: str) -> str:
        """See `Storage.native`: a plain absolute path."""
        return str(self._locate(path))

    def now_ms(self) -> int:
        """See `Storage.now_ms`: the stamp of a file made for the purpose."""
        with _reporting("stamp a file in", _STAGING), self._staged(b"", durable=False) as staged:
            return staged.stat().st_mtime_ns // 1_000_000

    def _locate(self, path: str) -> Path:
        if path.startswith("/") or ".." in path.split("/"):
            raise StorageError(f"{path!r} leads out of the table at {self.base}", path=path)
        return self._root / path

    @contextmanager
    def _staged(self, data: bytes, *, durable: bool = True) -> Iterator[Path]:
        folder = self._root / _STAGING
        folder.mkdir(parents=True, exist_ok=True)
        staged = folder / uuid.uuid4().hex
        try:
            with staged.open("xb") as file:
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            yield staged
        finally:
            staged.unlink(missing_ok=True)


@contextmanager
def _reporting(verb: str, path: str) -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        message = f"cannot {verb} {path or 'the table folder'!r}: {error.strerror or error}"
        raise StorageError(message, path=path, errno=error.errno) from error


def _describe(target: os.DirEntry[str] | Path) -> Entry | None:
    try:
        found = target.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    is_folder = stat.S_ISDIR(found.st_mode)
    return Entry(target.name, 0 if is_folder else found.st_size, found.st_mtime_ns // 1_000_000, is_folder)


def _create_empty(target: Path) -> bool:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError:
        return False
    _checksum_of(target).unlink(missing_ok=True)
    return True


def _link(source: Path, target: Path) -> bool:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.hardlink_to(source)
    except FileExistsError:
        return False
    except FileNotFoundError:
        if target.exists():
            return False
        raise
    _checksum_of(target).unlink(missing_ok=True)
    _flush(target.parent)
    return True


def _checksum_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.crc")


def _flush(target: Path) -> None:
    """Bring a file's bytes, or a folder's names, to the disk, whoever wrote them."""
    handle = os.open(target, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
