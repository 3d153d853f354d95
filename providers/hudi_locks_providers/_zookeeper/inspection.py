"""Looking at the locks of others, and breaking them."""

from __future__ import annotations

from typing import Any, Final

from kazoo.exceptions import NoNodeError
from kazoo.protocol.serialization import Delete, GetChildren, GetData

from hudi_locks.clock import Clock
from hudi_locks.errors import BackendUnavailable
from hudi_locks.lock import Holder
from hudi_locks_providers._wire.zookeeper import decode_payload, find_first
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

    def find_holder(self, place: NodePlace) -> Holder | None:
        """The first in line, whatever it is; None if nobody has to wait for anything."""
        found = self._find_first(place)
        if found is None:
            return None
        _, data, stat = found
        return Holder(
            key=place.folder,
            owner=decode_payload(data),
            since_ms=stat.ctime,
            age_ms=max(0, self._clock.wall_ms() - stat.mtime),
            token=str(stat.czxid),
            raw=data.decode("utf-8", "replace"),
        )

    def break_if(self, place: NodePlace, token: str) -> bool:
        """Remove the node of the first in line if `token` means it; its name is never used again."""
        found = self._find_first(place)
        if found is None or str(found[2].czxid) != token:
            return False
        (gone,) = self._session.call(Delete(found[0], _ANY_VERSION))
        if isinstance(gone, NoNodeError):
            return False
        if isinstance(gone, Exception):
            raise translate(gone, found[0]) from gone
        return True

    def _find_first(self, place: NodePlace) -> tuple[str, bytes, Any] | None:
        """Path, payload and state of the first node in the line."""
        self._session.await_link()
        for _ in range(_LOOKS):
            (children,) = self._session.call(GetChildren(place.folder, None))
            if isinstance(children, NoNodeError):
                return None
            if isinstance(children, Exception):
                raise translate(children, place.folder) from children
            if (first := find_first(children)) is None:
                return None
            path = f"{place.folder}/{first}"
            (found,) = self._session.call(GetData(path, None))
            if not isinstance(found, Exception):
                return path, *found
            if not isinstance(found, NoNodeError):
                raise translate(found, path) from found
        raise BackendUnavailable(f"the first in line for {place.folder} changes too fast to be named", key=place.folder)
