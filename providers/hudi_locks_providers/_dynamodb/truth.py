"""Whether a service that says that it is DynamoDB keeps conditions: some stand-ins do not, under load."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable
from typing import Final

from hudi_locks.errors import LockError
from hudi_locks.lock import Finding
from hudi_locks_providers._dynamodb.connection import ConditionFailed
from hudi_locks_providers._dynamodb.context import version_of
from hudi_locks_providers._dynamodb.requests import DynamoRequests, Instead
from hudi_locks_providers._wire.dynamodb_item import KEY, OWNER_NAME, RECORD_VERSION, Item

__all__ = ["DynamoTruth"]

_RACERS: Final = 6
_ROUNDS: Final = 8
_OWNER: Final = "hudi-locks probe"
_NO: Final = "use another service: this one would give a lock to two writers"


class DynamoTruth:
    """Tries one service on items of its own, which it removes.

    Args:
        requests: To the lock table.
        base: What the keys of the scratch items begin with.
    """

    def __init__(self, requests: DynamoRequests, base: str) -> None:
        self._requests = requests
        self._base = f"{base}#hudi_locks_probe/{uuid.uuid4().hex}"
        self._versions: dict[str, list[str]] = {}

    def examine(self) -> tuple[Finding, ...]:
        """All that was found.

        Raises:
            BackendUnavailable: It does not answer.
            BackendRefused: It refuses the requests that locks need.
        """
        try:
            return (
                self._try_absence(),
                self._try_versions(),
                self._try_telling(),
                self._try_transaction(),
                self._try_race(),
            )
        finally:
            for key, versions in self._versions.items():
                with contextlib.suppress(ConditionFailed, LockError):
                    self._requests.remove(key, _OWNER, versions)

    def _item(self, name: str, version: str) -> Item:
        key = f"{self._base}/{name}"
        self._versions.setdefault(key, []).append(version)
        return {KEY: {"S": key}, OWNER_NAME: {"S": _OWNER}, RECORD_VERSION: {"S": version}}

    def _put(self, name: str, version: str, instead: Instead | None = None) -> ConditionFailed | None:
        """The refusal of a put; None if it was accepted."""
        return _refusal(lambda: self._requests.put(self._item(name, version), instead or Instead()))

    def _try_absence(self) -> Finding:
        first, second = self._put("absence", "a"), self._put("absence", "b")
        right = first is None and second is not None
        return _judge("creates-once", right, "an item that was there was refused", "it was created a second time")

    def _try_versions(self) -> Finding:
        self._put("versions", "a")
        wrong, right = self._put("versions", "b", Instead("z")), self._put("versions", "c", Instead("a"))
        late = _refusal(lambda: self._requests.remove(f"{self._base}/versions", _OWNER, ["a"]))
        kept = wrong is not None and right is None and late is not None
        return _judge("compares-versions", kept, "only the right version was replaced", "another version was replaced")

    def _try_telling(self) -> Finding:
        self._put("telling", "a")
        refusal = self._put("telling", "b")
        told = refusal is not None and version_of(refusal.reasons[0].item) == "a"
        said = "a refusal does not show the item (ReturnValuesOnConditionCheckFailure)"
        return _judge("shows-the-holder", told, "a refusal shows the item that is there", said)

    def _try_transaction(self) -> Finding:
        self._put("taken", "a")
        puts = [(self._item("free", "a"), Instead()), (self._item("taken", "b"), Instead())]
        refusal = _refusal(lambda: self._requests.put_all(puts, {}))
        whole = refusal is not None and self._requests.find(f"{self._base}/free") is None
        return _judge("writes-all-or-nothing", whole, "a refused transaction wrote nothing", "it wrote a part of it")

    def _try_race(self) -> Finding:
        winners = [self._race(f"race-{number}") for number in range(_ROUNDS)]
        doubles = sum(won != 1 for won in winners)
        said = f"one of {_RACERS} racers won, in each of {_ROUNDS} rounds"
        return _judge("one-winner", doubles == 0, said, f"{doubles} of {_ROUNDS} rounds had not one winner: {winners}")

    def _race(self, name: str) -> int:
        start = threading.Barrier(_RACERS)
        won: list[str] = []

        def run(version: str) -> None:
            start.wait()
            with contextlib.suppress(LockError):
                if self._put(name, version) is None:
                    won.append(version)

        threads = [threading.Thread(target=run, args=(str(number),)) for number in range(_RACERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(won)


def _refusal(request: Callable[[], None]) -> ConditionFailed | None:
    try:
        request()
    except ConditionFailed as refusal:
        return refusal
    return None


def _judge(name: str, ok: bool, right: str, wrong: str) -> Finding:  # noqa: FBT001  # a verdict, not a switch
    return Finding(name, ok=ok, found=right if ok else wrong, advice="" if ok else _NO)
