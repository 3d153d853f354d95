"""Requests that meet a link which goes down at that moment."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hudi_locks_providers._zookeeper.session import Session, SessionListener
from hudi_locks_providers._zookeeper.settings import Settings
from kazoo.exceptions import ConnectionLoss
from kazoo.protocol.serialization import Exists

from hudi_locks import SystemClock


class LinkThatFalls:
    """kazoo's client, whose link goes down between the look at it and the request: it fails what is queued, once."""

    def __init__(self) -> None:
        self.connected = True
        self._queue: deque[tuple[Any, Any]] = deque()

    def _call(self, request: Any, answer: Any) -> None:
        self.connected = False
        self._queue.clear()
        self._queue.append((request, answer))


@pytest.fixture
def client() -> LinkThatFalls:
    return LinkThatFalls()


@pytest.fixture
def session(client: LinkThatFalls) -> Session:
    made = Session(Settings("nowhere:1", "", 30.0, 30.0), clock=SystemClock(), listener=SessionListener())
    made._client = client
    return made


def test_a_request_that_came_after_the_link_is_lost_at_once_and_not_sent_later(
    session: Session, client: LinkThatFalls
) -> None:
    (outcome,) = session.call(Exists("/a", None))
    assert isinstance(outcome, ConnectionLoss)
    assert not client._queue


def test_an_errand_that_came_after_the_link_is_told_at_once(session: Session, client: LinkThatFalls) -> None:
    heard: list[Any] = []
    session.ask(Exists("/a", None), heard.append)
    assert [type(outcome) for outcome in heard] == [ConnectionLoss]
    assert not client._queue
