"""Looking at the locks of others, and breaking them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from kazoo.exceptions import NoNodeError
from kazoo.protocol.serialization import Delete, GetChildren, GetData

from hudi_locks.clock import Clock
from hudi_locks.errors import BackendUnavailable
from hudi_locks.lock import Holder, Owner
from hudi_locks_providers._wire.zookeeper import decode_payload, find_first, is_contender, sort_contenders
from hudi_locks_providers._zookeeper.place import NodePlace
from hudi_locks_providers._zookeeper.session import Session, translate

__all__ = ["Inspection"]

_LOOKS: Final = 20
_ANY_VERSION: Final = -1


class Inspection:
    """What one sees of a line from outside."""

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session = session
        self._clock = clock

    def find_holders(self, base: str, *, without: str) -> Iterator[Holder]:
        """The first of every line below a node but one, whose scopes are paths from there."""
        self._session.await_link()
        above = [base]
        while above:
            answers = self._session.call(*(GetChildren(path, None) for path in above))
            children = {path: self._check(path, found) for path, found in zip(above, answers, strict=True)}
            lines = [path for path, names in children.items() if path != without and any(map(is_contender, names))]
            yield from filter(None, (self._find_below(base, path) for path in lines))
            above = [f"{path}/{name}" for path, names in children.items() for name in names if not is_contender(name)]

    def _find_below(self, base: str, path: str) -> Holder | None:
        found = self.find_holder(path)
        return found and replace(found, scope=path.removeprefix(f"{base}/"))

    def _check(self, path: str, answer: Any) -> list[str]:
        """The children that were told; none of a node that is gone."""
        if isinstance(answer, Exception) and not isinstance(answer, NoNodeError):
            raise translate(answer, path) from answer
        return [] if isinstance(answer, NoNodeError) else answer

    def find_holder(self, folder: str) -> Holder | None:
        """The first in a line, whatever it is; None if nobody has to wait for anything."""
        found = self._find_first(folder)
        if found is None:
            return None
        path, data, stat = found
        return Holder(
            key=folder,
            owner=decode_payload(data),
            since_ms=stat.ctime,
            age_ms=max(0, self._clock.wall_ms() - stat.mtime),
            token=str(stat.czxid),
            raw=data.decode("utf-8", "replace"),
            waiting=self._find_waiting(folder, path.rpartition("/")[2]),
        )

    def _find_waiting(self, folder: str, first: str) -> tuple[Owner, ...]:
        """Who stands in line behind the first, without those who leave meanwhile."""
        (answer,) = self._session.call(GetChildren(folder, None))
        contenders = sort_contenders(filter(is_contender, self._check(folder, answer)))
        later = contenders[contenders.index(first) + 1 :] if first in contenders else []
        told = self._session.call(*(GetData(f"{folder}/{name}", None) for name in later)) if later else []
        return tuple(decode_payload(found[0]) for found in told if not isinstance(found, Exception))

    def break_if(self, place: NodePlace, token: str) -> bool:
        """Remove the node of the first in line if `token` means it; its name is never used again."""
        found = self._find_first(place.folder)
        if found is None or str(found[2].czxid) != token:
            return False
        (gone,) = self._session.call(Delete(found[0], _ANY_VERSION))
        if isinstance(gone, NoNodeError):
            return False
        if isinstance(gone, Exception):
            raise translate(gone, found[0]) from gone
        return True

    def _find_first(self, folder: str) -> tuple[str, bytes, Any] | None:
        """Path, payload and state of the first node in the line."""
        self._session.await_link()
        for _ in range(_LOOKS):
            (answer,) = self._session.call(GetChildren(folder, None))
            if (first := find_first(self._check(folder, answer))) is None:
                return None
            path = f"{folder}/{first}"
            (found,) = self._session.call(GetData(path, None))
            if not isinstance(found, Exception):
                return path, *found
            if not isinstance(found, NoNodeError):
                raise translate(found, path) from found
        raise BackendUnavailable(f"the first in line for {folder} changes too fast to be named", key=folder)
