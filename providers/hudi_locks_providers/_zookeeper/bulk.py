"""Many locks at once: all or none, in as few round trips as ZooKeeper's transactions allow."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kazoo.exceptions import NodeExistsError, NoNodeError, RolledBackError
from kazoo.protocol.serialization import Create, Delete, Exists, Transaction

from hudi_locks.clock import Clock
from hudi_locks.errors import BackendUnavailable
from hudi_locks_providers._wire.zookeeper import contender_prefix
from hudi_locks_providers._zookeeper.line import Contender, Line, Orphan, create_parents
from hudi_locks_providers._zookeeper.place import NodePlace
from hudi_locks_providers._zookeeper.session import Session, is_lost, translate

__all__ = ["Bulk"]

_EPHEMERAL: Final = 1
_PERSISTENT: Final = 0
_ANY_VERSION: Final = -1
_MOST_BYTES: Final = 700_000
"""A request longer than a megabyte is refused by a server with its default settings."""
_OVERHEAD_BYTES: Final = 80
_FIRST: Final = "0000000000"


@dataclass(frozen=True)
class _Grasp:
    """A contender to be made as the first and only one in a folder that is made with it."""

    place: NodePlace
    name: str

    @property
    def path(self) -> str:
        return f"{self.place.folder}/{self.name}"


class Bulk:
    """Takes the locks of many file groups by transactions, each of which makes folders and contenders or nothing.

    A folder that did not exist holds nobody else, so its first contender has the lock without looking.
    """

    def __init__(self, session: Session, line: Line, clock: Clock) -> None:
        self._session = session
        self._line = line
        self._clock = clock

    def grasp(self, places: Sequence[NodePlace], payload: bytes) -> tuple[list[Contender], float] | None:
        """Contenders that hold all of `places`, and when they were asked for; None if some could not be had so.

        Raises:
            BackendUnavailable: Not known to be there. If they are, they will be removed.
        """
        name = f"{contender_prefix(str(uuid.uuid4()))}{_FIRST}"
        grasps = [_Grasp(place, name) for place in places]
        sent_s = self._clock.monotonic()
        taken: list[Contender] = []
        try:
            for chunk in _split(grasps, len(payload)):
                found = self._grasp_chunk(chunk, payload)
                if found is None:
                    self.leave_all(taken)
                    return None
                taken += found
        except BaseException:
            self._line.orphans.update(Orphan(grasp.place, grasp.name) for grasp in grasps)
            raise
        return taken, sent_s

    def _grasp_chunk(self, chunk: list[_Grasp], payload: bytes) -> list[Contender] | None:
        taken, failure = self._commit(chunk, payload, stale=frozenset())
        if isinstance(failure, NoNodeError):
            self._make_partitions(chunk)
            taken, failure = self._commit(chunk, payload, stale=frozenset())
        if isinstance(failure, NodeExistsError):
            stale = self._find_stale(chunk)
            taken, _ = self._commit(chunk, payload, stale=stale) if stale else (None, None)
        return taken

    def _commit(
        self, chunk: list[_Grasp], payload: bytes, *, stale: frozenset[str]
    ) -> tuple[list[Contender] | None, Exception | None]:
        """One transaction; folders in `stale` are empty, and made anew."""
        transaction = Transaction(list(_operations(chunk, payload, stale, self._session.acl)))
        done, stat = self._session.call(transaction, Exists(chunk[-1].path, None))
        if is_lost(done):
            stat = self._look_again(chunk[-1], done)
        elif isinstance(done, Exception):
            raise translate(done, chunk[0].place.folder) from done
        elif (failure := _find_cause(done)) is not None:
            return None, failure
        if stat is None or isinstance(stat, Exception):
            raise BackendUnavailable(f"{chunk[-1].path} was made, and is not there", key=chunk[-1].path)
        return [Contender(grasp.place, grasp.name, stat.czxid, stat.ephemeralOwner) for grasp in chunk], None

    def _look_again(self, last: _Grasp, loss: Exception) -> Any:
        """What became of a transaction whose answer was lost: if one of its nodes is there, all are."""
        self._session.await_link()
        (stat,) = self._session.call(Exists(last.path, None))
        if stat is None or isinstance(stat, Exception) or stat.ephemeralOwner != self._session.id:
            raise translate(loss, last.path) from loss
        return stat

    def _make_partitions(self, chunk: list[_Grasp]) -> None:
        acl = self._session.acl
        requests = {request.path: request for grasp in chunk for request in create_parents(grasp.place, acl)[:-1]}
        made = self._session.call(*requests.values())
        partitions = {path for grasp in chunk for path in grasp.place.partition_nodes}
        self._line.made.update(partitions.intersection(path for path in made if isinstance(path, str)))

    def _find_stale(self, chunk: list[_Grasp]) -> frozenset[str] | None:
        """Folders that are there, empty; None if in one of them somebody stands."""
        folders = [grasp.place.folder for grasp in chunk]
        found = dict(zip(folders, self._session.call(*(Exists(folder, None) for folder in folders)), strict=True))
        there = {folder: stat for folder, stat in found.items() if stat is not None}
        occupied = any(isinstance(stat, Exception) or stat.numChildren for stat in there.values())
        return None if occupied else frozenset(there)

    def count_free(self, places: Sequence[NodePlace]) -> int:
        """How many of the first places have nobody standing there."""
        found = self._session.call(*(Exists(place.folder, None) for place in places))
        free = itertools.takewhile(lambda stat: stat is None or not getattr(stat, "numChildren", True), found)
        return len(list(free))

    def leave_all(self, contenders: Sequence[Contender]) -> None:
        """Let all go, by transactions where nobody waits; what is not confirmed is done later."""
        left = list(contenders)
        try:
            for chunk in _split(list(contenders), 0):
                if self._leave_chunk(chunk):
                    left = left[len(chunk) :]
        finally:
            self._line.orphans.update(Orphan(contender.place, contender.name) for contender in left)

    def _leave_chunk(self, chunk: list[Contender]) -> bool:
        deletes = [Delete(path, _ANY_VERSION) for contender in chunk for path in _paths(contender)]
        (done,) = self._session.call(Transaction(deletes))
        if not isinstance(done, Exception) and _find_cause(done) is None:
            return True
        return not any(is_lost(outcome) for outcome in self._session.call(*deletes))


def _paths(contender: Contender) -> tuple[str, ...]:
    return (contender.path, contender.place.folder) if contender.place.is_group else (contender.path,)


def _operations(chunk: list[_Grasp], payload: bytes, stale: frozenset[str], acl: list[Any]) -> Iterator[Any]:
    data = create_parents(chunk[0].place, acl)[0].data
    for grasp in chunk:
        folder = grasp.place.folder
        if folder in stale:
            yield Delete(folder, _ANY_VERSION)
        yield Create(folder, data, acl, _PERSISTENT)
        yield Create(grasp.path, payload, acl, _EPHEMERAL)


def _find_cause(outcomes: list[Any]) -> Exception | None:
    """Why a transaction was rolled back; None if it was not."""
    failures = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    causes = [failure for failure in failures if not isinstance(failure, RolledBackError)]
    return next(iter(causes or failures), None)


def _split(items: list[Any], payload_bytes: int) -> Iterator[list[Any]]:
    """Pieces that fit into one request each."""
    chunk: list[Any] = []
    size = 0
    for item in items:
        cost = 2 * len(item.path.encode()) + payload_bytes + 2 * _OVERHEAD_BYTES
        if chunk and size + cost > _MOST_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(item)
        size += cost
    if chunk:
        yield chunk
