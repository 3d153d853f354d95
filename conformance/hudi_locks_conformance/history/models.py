"""What a lock may do, as machines that take one call at a time: the second engine searches for an order that fits."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol

__all__ = ["FENCED", "MODELS", "MUTEX", "OWNED", "REENTRANT", "Call", "Model"]


@dataclass(frozen=True)
class Call:
    """One call, with the span in which it took effect, if it did.

    Attributes:
        process: Who called.
        f: See `Operation`.
        begin_ns: When it was sent.
        end_ns: When it was answered; infinite if it was not.
        certain: Whether it is known to have happened.
        taken: Of a write: whether it was taken, or refused.
        token: Fencing token, if there is one.
    """

    process: str
    f: str
    begin_ns: int
    end_ns: float
    certain: bool
    taken: bool = True
    token: int | None = None


class Model(Protocol):
    """A machine.

    Attributes:
        name: What people call it.
        actions: The calls that it judges; it is not shown others.
        start: Its state at the beginning.
    """

    name: str
    actions: frozenset[str]
    start: Hashable

    def step(self, state: Any, call: Call) -> Hashable | None:
        """The state after `call`; None if it cannot happen in `state`."""


_CALLS: Final = frozenset({"acquire", "release"})
_FREE: Final = ("", 0)


class _Mutex:
    """Held or free, whoever's it is."""

    name = "mutex"
    actions = _CALLS
    start: Hashable = False

    def step(self, state: bool, call: Call) -> bool | None:  # noqa: FBT001  # its state
        """See `Model.step`."""
        wanted = call.f == "release"
        return not state if state is wanted else None


class _OwnedMutex:
    """Held by one process, which alone can let go of it."""

    name = "owner"
    actions = _CALLS
    start: Hashable = ""

    def step(self, state: str, call: Call) -> str | None:
        """See `Model.step`."""
        if call.f == "acquire":
            return None if state else call.process
        return "" if state == call.process else None


class _ReentrantMutex:
    """Held by one process as often as it likes; free after as many releases."""

    name = "reentrant"
    actions = _CALLS
    start: Hashable = _FREE

    def step(self, state: tuple[str, int], call: Call) -> tuple[str, int] | None:
        """See `Model.step`."""
        holder, count = state
        if call.f == "acquire":
            return (call.process, count + 1) if holder in ("", call.process) else None
        if holder != call.process:
            return None
        return (holder, count - 1) if count > 1 else _FREE


class _FencedMutex:
    """Held by one process, with a token greater than all before; beside it a store that remembers the greatest it saw.

    A write with a token smaller than that is refused, and no write is refused for which no greater token was given.
    """

    name = "fenced"
    actions = _CALLS | {"write"}
    start: Hashable = ("", -1, -1)

    def step(self, state: tuple[str, int, int], call: Call) -> tuple[str, int, int] | None:
        """See `Model.step`."""
        holder, given, seen = state
        if call.f == "release":
            return ("", given, seen) if holder == call.process else None
        if call.f == "acquire":
            return None if holder else _grant(state, call)
        if call.token is None:
            return None
        if call.taken:
            return (holder, given, call.token) if seen <= call.token <= given else None
        return state if call.token < given else None


def _grant(state: tuple[str, int, int], call: Call) -> tuple[str, int, int] | None:
    """An acquire whose answer was lost may have been given any token: the next one is compared with those known."""
    _, given, seen = state
    if call.token is None:
        return None if call.certain else (call.process, given, seen)
    return (call.process, call.token, seen) if call.token > given else None


MUTEX: Final[Model] = _Mutex()
OWNED: Final[Model] = _OwnedMutex()
REENTRANT: Final[Model] = _ReentrantMutex()
FENCED: Final[Model] = _FencedMutex()
MODELS: Final[Mapping[str, Model]] = MappingProxyType(
    {model.name: model for model in (MUTEX, OWNED, REENTRANT, FENCED)}
)
"""All of them, by name."""
