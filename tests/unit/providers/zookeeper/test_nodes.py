"""The nodes above a lock, made before the first contender."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hudi_locks_providers._zookeeper.nodes import NodeMaker
from hudi_locks_providers._zookeeper.place import PlaceFinder
from hudi_locks_providers.zookeeper import ZooKeeperLockProvider
from kazoo.exceptions import NoAuthError
from kazoo.protocol.serialization import Create

from hudi_locks import LockScope, Owner
from hudi_locks.lock import SetupTerms

Make = Callable[[], ZooKeeperLockProvider]
LOOK = SetupTerms(dry_run=True)


def set_up(provider: ZooKeeperLockProvider, terms: SetupTerms = SetupTerms()) -> list[tuple[str, str]]:  # noqa: B008
    return [(step.outcome, step.found) for step in provider.set_up(terms)]


def test_nodes_are_made_once_and_stay(make: Make, tree: Any) -> None:
    provider = make()
    assert set_up(provider, LOOK) == [("to make", "/b"), ("to make", "/b/k")]
    assert list(tree.nodes) == [""]
    assert set_up(provider) == [("made", "/b"), ("made", "/b/k")]
    assert set_up(provider) == [("there", "/b"), ("there", "/b/k")]
    assert set_up(provider, LOOK) == [("there", "/b"), ("there", "/b/k")]
    lease = provider.try_acquire(LockScope.table(), Owner("ada"), 0)
    assert lease is not None
    provider.release(lease)
    provider.close()
    assert {"/b", "/b/k"} < set(tree.nodes)


def test_a_node_that_came_in_between_is_there(make: Make, tree: Any) -> None:
    provider = make()
    session: Any = provider.client.session
    other = make()
    session.between = [lambda: None, lambda: list(other.set_up(SetupTerms()))]
    assert set_up(provider) == [("there", "/b"), ("there", "/b/k")]


def test_the_first_node_that_is_refused_ends_it(make: Make, tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = make()
    session: Any = provider.client.session
    asked = session.call

    def refuse(*requests: Any) -> list[Any]:
        return [NoAuthError() if isinstance(one, Create) else asked(one)[0] for one in requests]

    monkeypatch.setattr(session, "call", refuse)
    [step] = provider.set_up(SetupTerms())
    assert step.has_failed
    assert "its ACL must let this client read, create" in step.found


def test_the_nodes_of_a_chroot_are_made_too(make: Make, tree: Any) -> None:
    session: Any = make().client.session
    place = PlaceFinder("/lake/locks", "/hudi", "trips").table
    steps = list(NodeMaker(session, "/lake/locks").make(place, SetupTerms()))
    assert [(step.name, step.outcome, step.found) for step in steps] == [
        ("chroot-node", "made", "/lake"),
        ("chroot-node", "made", "/lake/locks"),
        ("node", "made", "/lake/locks/hudi"),
        ("node", "made", "/lake/locks/hudi/trips"),
    ]
