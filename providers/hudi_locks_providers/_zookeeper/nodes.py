"""Makes the lasting nodes above a lock, before the first contender comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kazoo.exceptions import NodeExistsError
from kazoo.protocol.serialization import Exists

from hudi_locks.errors import LockError
from hudi_locks.lock import SetupStep, SetupTerms
from hudi_locks_providers._zookeeper.line import create_node
from hudi_locks_providers._zookeeper.place import NodePlace
from hudi_locks_providers._zookeeper.session import Session, translate

__all__ = ["NodeMaker"]

_STEP: Final = "node"
_CHROOT: Final = "chroot-node"


class NodeMaker:
    """Makes nodes of one table's lock.

    Args:
        session: To ask.
        chroot: Of the address; empty for none. No lock makes its nodes: a wrong one would be another tree.
    """

    def __init__(self, session: Session, chroot: str) -> None:
        self._session = session
        parts = chroot.split("/")
        self._chroot = tuple("/".join(parts[:end]) for end in range(2, len(parts) + 1))

    def make(self, place: NodePlace, terms: SetupTerms) -> Iterator[SetupStep]:
        """Each node down to the one below which contenders stand in line; ends at the first that cannot be made."""
        self._session.await_link()
        for path in (*self._chroot, *place.parents, place.folder):
            name = _CHROOT if path in self._chroot else _STEP
            try:
                yield self._make(name, path, terms)
            except LockError as error:
                yield SetupStep.failed(name, error)
                return

    def _make(self, name: str, path: str, terms: SetupTerms) -> SetupStep:
        (found,) = self._session.call(Exists(path, None))
        if isinstance(found, Exception):
            raise translate(found, path) from found
        if found is not None:
            return SetupStep.there(name, path)
        if terms.dry_run:
            return SetupStep.to_make(name, path)
        (made,) = self._session.call(create_node(path, self._session.acl))
        if isinstance(made, NodeExistsError):
            return SetupStep.there(name, path)
        if isinstance(made, Exception):
            raise translate(made, path.rpartition("/")[0] or "/") from made
        return SetupStep.made(name, path)
