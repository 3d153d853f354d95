"""One acquire and release of a free lock on the local file system."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import filelock

from benchmarks.figures import Figure, measure_together
from hudi_locks import LockManager

_ROUNDS, _REPEATS = 40, 100
_QUICK_ROUNDS = 5


def run(*, quick: bool) -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = {
            "hoodie.write.lock.provider": "filesystem",
            "hoodie.write.lock.filesystem.path": str(folder / "ours"),
        }
        with LockManager.from_options(options) as manager:
            actions = {
                "ours": _cycle(manager),
                "the same system calls, bare": _same_calls(folder),
                "O_EXCL and unlink, bare": _exclusive_create(folder),
                "filelock.FileLock": _peer(filelock.FileLock(folder / "peer")),
                "filelock.SoftFileLock": _peer(filelock.SoftFileLock(folder / "soft")),
            }
            found = measure_together(actions, rounds=_QUICK_ROUNDS if quick else _ROUNDS, repeats=_REPEATS)
    ours = found.pop("ours")
    return [Figure("lock cycle, filesystem", ours, peer, value, "µs", "lower") for peer, value in found.items()]


def _cycle(manager: LockManager) -> Callable[[], None]:
    def cycle() -> None:
        with manager.lock():
            pass

    return cycle


def _peer(lock: filelock.BaseFileLock) -> Callable[[], None]:
    def cycle() -> None:
        with lock:
            pass

    return cycle


def _exclusive_create(folder: Path) -> Callable[[], None]:
    path = str(folder / "bare")

    def cycle() -> None:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.unlink(path)  # noqa: PTH108  # the bare call is what is measured

    return cycle


def _same_calls(folder: Path) -> Callable[[], None]:
    """What the provider asks of the system, one call after the other: a record that appears whole, and a token."""
    record = b"x" * 315
    path, tokens = str(folder / "same"), [str(folder / "token-0"), str(folder / "token-1")]
    Path(tokens[0]).touch()

    def cycle() -> None:
        handle = os.open(folder, os.O_WRONLY | os.O_CLOEXEC | os.O_TMPFILE, 0o666)
        os.write(handle, record)
        os.link(f"/proc/self/fd/{handle}", path, src_dir_fd=handle)
        os.fstat(handle)
        os.rename(tokens[0], tokens[1])  # noqa: PTH104
        tokens.reverse()
        os.stat(path, follow_symlinks=False)  # noqa: PTH116
        os.unlink(path)  # noqa: PTH108
        os.close(handle)

    return cycle
