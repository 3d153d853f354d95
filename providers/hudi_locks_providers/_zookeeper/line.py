"""Standing in line for a lock, as Curator's mutex does: a node for each contender, the first one holds."""

from __future__ import annotations

import contextlib
import socket
import threading
import uuid
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.protocol.serialization import Create, Create2, Delete, Exists, GetChildren, GetData
from kazoo.protocol.states import EventType

from hudi_locks.clock import Clock
from hudi_locks.errors import BackendRefused, BackendUnavailable, LockError
from hudi_locks_providers._wire.zookeeper import contender_prefix, is_worn, parse_sequence, sort_contenders
from hudi_locks_providers._zookeeper.place import NodePlace
from hudi_locks_providers._zookeeper.session import Session, is_lost, translate

__all__ = ["Contender", "Line", "Orphan", "PlaceLost", "create_node", "create_parents"]

_EPHEMERAL_SEQUENTIAL: Final = 3
_PERSISTENT: Final = 0
_ROUNDS: Final = 10
_ANY_VERSION: Final = -1


class PlaceLost(Exception):
    """The node of a waiting contender is gone: its session ended, or somebody removed it."""


@dataclass(frozen=True)
class Contender:
    """A node of ours in a line.

    Attributes:
        place: Where the line is.
        name: The node's name.
        czxid: Id of the transaction that made it: greater than those of all before it.
        session_id: The session that it lives in.
    """

    place: NodePlace
    name: str
    czxid: int
    session_id: int

    @property
    def path(self) -> str:
        """The node's full path."""
        return f"{self.place.folder}/{self.name}"


@dataclass(frozen=True)
class Orphan:
    """A node that may be there and that nobody needs: `prefix` is its name, or how that begins."""

    place: NodePlace
    prefix: str


class Line:
    """Enters lines, waits in them and leaves them. Thread-safe.

    Attributes:
        orphans: Nodes to be removed once the link is back.
        made: Nodes of partitions that did not exist before.
    """

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self._waiting: set[threading.Event] = set()
        self.orphans: set[Orphan] = set()
        self.made: set[str] = set()

    def enter(self, place: NodePlace, payload: bytes) -> tuple[Contender, list[str], float]:
        """Make a node of ours: it, all children then, and when they were asked for.

        Raises:
            BackendUnavailable: It is not known to be there. If it is, it will be removed.
            BackendRefused: ZooKeeper says no.
        """
        prefix = contender_prefix(str(uuid.uuid4()))
        try:
            return self._enter(place, prefix, payload)
        except BackendRefused:
            raise
        except BaseException:
            self.orphans.add(Orphan(place, prefix))
            raise

    def _enter(self, place: NodePlace, prefix: str, payload: bytes) -> tuple[Contender, list[str], float]:
        create = Create2(f"{place.folder}/{prefix}", payload, self._session.acl, _EPHEMERAL_SEQUENTIAL)
        above = create_parents(place, self._session.acl)[-1:] if place.is_group else []
        for _ in range(_ROUNDS):
            sent_s = self._clock.monotonic()
            *made, created, children = self._session.call(*above, create, GetChildren(place.folder, None))
            self._note_made(place, made)
            if not isinstance(created, NoNodeError):
                contender = self._settle(created, place, prefix)
                return contender, *self._list(contender, children, sent_s)
            _judge_parents(place, made if len(made) > 1 else [])
            above = create_parents(place, self._session.acl)
        raise BackendUnavailable(f"{place.folder} was removed {_ROUNDS} times while it was made", key=place.folder)

    def _settle(self, created: Any, place: NodePlace, prefix: str) -> Contender:
        """Our contender, also when the answer to its creation was lost."""
        if isinstance(created, Exception):
            if not is_lost(created):
                raise translate(created, place.folder) from created
            return self._find_again(place, prefix, created)
        path, stat = created
        return Contender(place, path.rpartition("/")[2], stat.czxid, stat.ephemeralOwner)

    def _find_again(self, place: NodePlace, prefix: str, loss: Exception) -> Contender:
        self._session.await_link()
        (children,) = self._session.call(GetChildren(place.folder, None))
        found = [name for name in children if name.startswith(prefix)] if isinstance(children, list) else []
        if not found:
            raise translate(loss, place.folder) from loss
        (stat,) = self._session.call(Exists(f"{place.folder}/{found[0]}", None))
        if stat is None or isinstance(stat, Exception) or stat.ephemeralOwner != self._session.id:
            raise translate(loss, place.folder) from loss
        return Contender(place, found[0], stat.czxid, stat.ephemeralOwner)

    def _list(self, contender: Contender, children: Any, sent_s: float) -> tuple[list[str], float]:
        if isinstance(children, list):
            return children, sent_s
        try:
            return self._list_again(contender)
        except BaseException:
            self.orphans.add(Orphan(contender.place, contender.name))
            raise

    def _list_again(self, contender: Contender) -> tuple[list[str], float]:
        """All children now, once there is a link.

        Raises:
            PlaceLost: The contender's session is over.
        """
        self._session.await_link()
        if self._session.id != contender.session_id:
            raise PlaceLost
        sent_s = self._clock.monotonic()
        (children,) = self._session.call(GetChildren(contender.place.folder, None))
        if isinstance(children, NoNodeError):
            raise PlaceLost
        if isinstance(children, Exception):
            raise translate(children, contender.place.folder) from children
        return children, sent_s

    def _note_made(self, place: NodePlace, made: list[Any]) -> None:
        self.made.update(set(place.partition_nodes).intersection(path for path in made if isinstance(path, str)))

    def await_turn(
        self, contender: Contender, seen: tuple[list[str], float], until_s: float, *, closing: threading.Event
    ) -> float | None:
        """Wait until the contender is the first; when that was asked, or None if it was not by `until_s`.

        Raises:
            PlaceLost: Its node is gone.
        """
        children, sent_s = seen
        while (ahead := _find_ahead(contender, children)) is not None:
            if self._clock.monotonic() >= until_s or closing.is_set():
                return None
            seen_again = self._await_change(contender, ahead, until_s)
            if closing.is_set():
                return None
            children, sent_s = seen_again or self._list_again(contender)
        return sent_s

    def _await_change(self, contender: Contender, ahead: str, until_s: float) -> tuple[list[str], float] | None:
        """Wait until the contender ahead goes, or something happens to the session; the children then, if known."""
        folder = contender.place.folder
        departure = _Departure(self._session, folder, self._clock)
        self._waiting.add(departure.noticed)
        try:
            (found,) = self._session.call(GetData(f"{folder}/{ahead}", departure.hear))
            if not isinstance(found, Exception):
                self._clock.wait(departure.noticed, until_s - self._clock.monotonic())
        finally:
            self._waiting.discard(departure.noticed)
        return departure.seen

    def wake(self) -> None:
        """Let all who wait look at the session again."""
        for changed in list(self._waiting):
            changed.set()

    def leave(self, contender: Contender) -> None:
        """Remove our node, and the folder of a file group if nobody else needs it.

        Raises:
            BackendUnavailable: Not confirmed; it will be removed once the link is back, or goes with its session.
        """
        place = contender.place
        requests = [Delete(contender.path, _ANY_VERSION)]
        if place.is_group or is_worn(parse_sequence(contender.name)):
            requests.append(Delete(place.folder, _ANY_VERSION))
        orphan = Orphan(place, contender.name)
        try:
            gone = self._session.call(*requests)[0]
            if isinstance(gone, Exception) and not isinstance(gone, NoNodeError):
                raise translate(gone, contender.path) from gone
        except BaseException:
            self.orphans.add(orphan)
            raise
        self.orphans.discard(orphan)

    def withdraw(self, contender: Contender) -> None:
        """Leave without having held; what is not confirmed is done later."""
        with contextlib.suppress(LockError):
            self.leave(contender)

    def sweep(self) -> None:
        """Remove the orphans that can be reached now."""
        for orphan in list(self.orphans):
            if self._sweep_one(orphan):
                self.orphans.discard(orphan)

    def _sweep_one(self, orphan: Orphan) -> bool:
        folder = orphan.place.folder
        (children,) = self._session.call(GetChildren(folder, None))
        if isinstance(children, NoNodeError):
            return True
        if isinstance(children, Exception):
            return False
        ours = [name for name in children if name.startswith(orphan.prefix)]
        requests = [Delete(f"{folder}/{name}", _ANY_VERSION) for name in ours]
        if orphan.place.is_group:
            requests.append(Delete(folder, _ANY_VERSION))
        return not any(is_lost(outcome) for outcome in self._session.call(*requests))

    def sweep_partitions(self) -> None:
        """Remove the partition nodes that we made and nobody needs any more."""
        deepest_first = sorted(self.made, key=len, reverse=True)
        self._session.call(*(Delete(path, _ANY_VERSION) for path in deepest_first))


class _Departure:
    """Watches the contender ahead, and asks who is left as soon as it goes, before any thread is woken.

    Attributes:
        noticed: Set when it went and the answer is there, or when something else happened.
        seen: All children after it went, and when they were asked for.
    """

    def __init__(self, session: Session, folder: str, clock: Clock) -> None:
        self._session = session
        self._folder = folder
        self._clock = clock
        self.noticed = threading.Event()
        self.seen: tuple[list[str], float] | None = None

    def hear(self, event: Any) -> None:
        """Called on kazoo's connection thread."""
        if event.type != EventType.DELETED:
            self.noticed.set()
            return
        sent_s = self._clock.monotonic()
        self._session.ask(GetChildren(self._folder, None), lambda outcome: self._note(outcome, sent_s))

    def _note(self, outcome: Any, sent_s: float) -> None:
        if isinstance(outcome, list):
            self.seen = outcome, sent_s
        self.noticed.set()


def _find_ahead(contender: Contender, children: list[str]) -> str | None:
    """Who stands immediately before `contender`; None if it is the first."""
    if contender.name not in children:
        raise PlaceLost
    order = sort_contenders(children)
    index = order.index(contender.name)
    return order[index - 1] if index else None


def _judge_parents(place: NodePlace, made: list[Any]) -> None:
    """Say why the nodes above a contender could not be made, if it was not that somebody removed them meanwhile.

    Raises:
        BackendRefused: They cannot be.
    """
    for path, outcome in zip((*place.parents, place.folder), made, strict=False):
        above = path.rpartition("/")[0]
        if isinstance(outcome, NoAuthError):
            raise translate(outcome, above or "/")
        if isinstance(outcome, NoNodeError) and above and above not in place.parents:
            raise BackendRefused(
                f"the chroot {above} of the ZooKeeper url does not exist; create that node first: `hudi-locks init`",
                key=above,
            )


def create_parents(place: NodePlace, acl: list[Any]) -> list[Any]:
    """Requests that make the folder and all above it, outermost first; those that are there answer NodeExists."""
    return [create_node(path, acl) for path in (*place.parents, place.folder)]


def create_node(path: str, acl: list[Any]) -> Any:
    """A request that makes a lasting node, as Curator makes those above its locks."""
    return Create(path, _address().encode(), acl, _PERSISTENT)


@lru_cache(maxsize=1)
def _address() -> str:
    """This host's address, which Curator, and so Hudi, puts into every node without other data."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"
