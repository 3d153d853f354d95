"""Clock, lock and storage of a simulator of processes: every call is a step, and may crash or lose its answer."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa

from hudi_locks.clock import Clock
from hudi_locks.errors import StorageError
from hudi_locks.storage import Entry, StagedFile, Storage
from hudi_locks.timeline import LAYOUT_2, conversion
from hudi_locks.timeline.heartbeat import HEARTBEAT_FOLDER, Beating
from hudi_locks.transaction import forward, rollback

if TYPE_CHECKING:
    from transaction_simulator import Simulator

_ELSEWHERE = Beating(host="elsewhere", machine="", pid=1, started="", id="").encode()


class Crashed(BaseException):
    """The process is gone: none of its later steps has an effect."""


@contextlib.contextmanager
def in_turn() -> Iterator[None]:
    """Let a process name and cancel files one by one, so that others come in between, and a seed says when."""

    def call_each(call: Callable[[Any], Any], arguments: Iterable[Any], *, threads: int = 1) -> list[Any]:
        assert threads
        return [call(argument) for argument in arguments]

    with (
        mock.patch.object(forward, "map_in_threads", call_each),
        mock.patch.object(rollback, "map_in_threads", call_each),
        mock.patch.object(conversion, "map_in_threads", call_each),
    ):
        yield


@dataclass
class Process:
    name: str
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    asleep_until: int = 0
    may_crash: bool = False
    frailty: float = 1.0
    is_crashed: bool = False
    is_done: bool = False
    ident: int | None = None


class SimulatorClock(Clock):
    """Passes with the steps; a process may be off by `skew_ms`. Other threads (heartbeats) sleep until the end."""

    def __init__(self, simulator: Simulator, *, skew_ms: int = 0) -> None:
        self._simulator, self._skew_ms = simulator, skew_ms

    def monotonic(self) -> float:
        return self._simulator.ticks / 1000

    def wall_ms(self) -> int:
        return self._simulator.now_ms() + self._skew_ms

    def wait(self, event: threading.Event, timeout_s: float | None) -> bool:
        if self._simulator.mine() is None and threading.get_ident() != self._simulator.home:
            self._simulator.events.append(event)
            return event.wait()
        self._simulator.ticks += round((timeout_s or 0) * 1000)
        self._simulator.step("sleep")
        return event.is_set()


class SimulatorLock:
    """A lock that works, and is freed when its holder crashes."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self.token = None

    def lock(self) -> SimulatorLock:
        self._simulator.step("lock")
        while self._simulator.lock_owner is not None:
            mine = self._simulator.mine()
            assert mine is not None
            mine.asleep_until = self._simulator.ticks + 10
            self._simulator.step("wait for the lock")
        self._simulator.lock_owner = self._simulator.mine()
        return self

    def verify(self) -> None:
        assert self._simulator.lock_owner is self._simulator.mine()

    def release(self) -> None:
        if self._simulator.lock_owner is self._simulator.mine():
            self._simulator.lock_owner = None


class SteppedFile(StagedFile):
    """A file under preparation in which each request is a step."""

    def __init__(self, simulator: Simulator, staged: StagedFile) -> None:
        self.target = staged.target
        self._simulator, self._staged = simulator, staged

    def open(self) -> pa.NativeFile:
        self._simulator.step(f"write {self.target}")
        return self._staged.open()

    def seal(self) -> str:
        self._simulator.step(f"seal {self.target}")
        return self._staged.seal()

    def discard(self) -> None:
        self._staged.discard()


class SteppedStorage(Storage):
    """A process's view of the shared files: every call is a step; a claim's answer may be lost, and land late."""

    def __init__(self, simulator: Simulator, *, all_dead: bool = False) -> None:
        self.base, self.capabilities = simulator.files.base, simulator.files.capabilities
        self._simulator, self._all_dead = simulator, all_dead

    def list(self, folder: str) -> list[Entry]:
        self._simulator.step(f"list {folder}")
        return self._simulator.files.list(folder)

    def read(self, path: str) -> bytes | None:
        self._simulator.step(f"read {path}")
        return self._simulator.files.read(path)

    def stat(self, path: str) -> Entry | None:
        self._simulator.step(f"stat {path}")
        return self._simulator.files.stat(path)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        self._simulator.step(f"create {path}")
        if "/claims/" in path and self._simulator.rng.random() < self._simulator.lost:
            self._lose(path, data)
        made = self._create(path, data) if self._simulator.rng.random() > self._simulator.lost / 8 else None
        self._fail_sometimes(path)
        if made is None:
            raise StorageError(f"no answer for {path}", path=path)
        return made

    def replace(self, path: str, data: bytes) -> None:
        self._simulator.step(f"replace {path}")
        self._simulator.files.replace(path, data)

    def touch(self, path: str) -> bool:
        self._simulator.step(f"touch {path}")
        return self._simulator.files.touch(path)

    def move_if_absent(self, source: str, target: str) -> bool:
        self._simulator.step(f"move {target}")
        return self._simulator.files.move_if_absent(source, target)

    def stage(self, target: str, *, instant: str) -> StagedFile:
        return SteppedFile(self._simulator, self._simulator.files.stage(target, instant=instant))

    def redeem(self, ticket: str, target: str) -> bool:
        self._simulator.step(f"redeem {target}")
        return self._simulator.files.redeem(ticket, target)

    def cancel(self, ticket: str, target: str) -> None:
        self._simulator.step(f"cancel {target}")
        self._simulator.files.cancel(ticket, target)

    def list_staged(self) -> set[str]:
        self._simulator.step("list what is staged")
        return self._simulator.files.list_staged()

    def cancel_staged(self, instants: Collection[str]) -> None:
        self._simulator.step(f"cancel what is staged of {', '.join(sorted(instants))}")
        self._simulator.files.cancel_staged(instants)

    def delete(self, path: str) -> bool:
        self._simulator.step(f"delete {path}")
        self._fail_sometimes(path)
        self._simulator.note_deletion(path)
        return self._simulator.files.delete(path)

    def delete_all(self, paths: Iterable[str], *, threads: int = 1) -> None:
        """One by one, each a step."""
        del threads
        for path in list(paths):
            self.delete(path)

    def delete_folder(self, folder: str) -> None:
        self._simulator.step(f"delete {folder}/")
        self._simulator.files.delete_folder(folder)

    def make_folder(self, folder: str) -> None:
        self._simulator.files.make_folder(folder)  # no step: nobody else sees it

    def open_input(self, path: str) -> pa.NativeFile:
        self._simulator.step(f"open {path}")
        return self._simulator.files.open_input(path)

    def address(self, path: str) -> str:
        return self._simulator.files.address(path)

    def now_ms(self) -> int:
        return self._simulator.now_ms() + (3_600_000 if self._all_dead else 0)

    def _fail_sometimes(self, path: str) -> None:
        if self._simulator.mine() is not None and self._simulator.rng.random() < self._simulator.lost / 16:
            self._simulator.trail.append(f"  the answer to {path} is lost")
            raise StorageError(f"no answer for {path}", path=path)

    def _create(self, path: str, data: bytes) -> bool:
        if data and path.startswith(HEARTBEAT_FOLDER):
            data = _ELSEWHERE  # the processes are on machines of their own
        made = self._simulator.files.create_if_absent(path, data)
        if made and path.endswith(".commit") and path.startswith(LAYOUT_2.folder):
            self._simulator.completed_order.append(path.rsplit("/", 1)[-1].split("_")[0])
        return made

    def _lose(self, path: str, data: bytes) -> None:
        fate = self._simulator.rng.choice(("answer", "late", "late", "never"))
        self._simulator.trail.append(f"  the answer to {path} is lost ({fate})")
        if fate == "answer":
            self._create(path, data)
        if fate == "late":
            self._simulator.spawn("late request", partial(self._land, path, data))
        raise StorageError(f"no answer for {path}", path=path)

    def _land(self, path: str, data: bytes) -> None:
        for _ in range(self._simulator.rng.choice((1, 10, 40))):
            self._simulator.step("a request is under way")
        self._create(path, data)
