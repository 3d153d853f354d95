"""The second engine: a search for one order of calls that explains every answer."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from hudi_locks_conformance.history.models import OWNED, Call, Model
from hudi_locks_conformance.history.record import History, Operation, group_by_process

__all__ = ["is_linearizable"]

_NEVER: Final = float("inf")
_State = tuple[frozenset[int], Hashable]


def is_linearizable(history: History, budget: int = 200_000, *, model: Model = OWNED) -> bool | None:
    """Whether one order of calls, each between its sending and its answer, is one that `model` can do.

    None if the search gave up after `budget` states. A call that ended with `info`, or not at all, may have happened at
    any time after it was sent, or never.
    """
    calls = _find_calls(history, model)
    seen: set[_State] = set()
    stack: list[_State] = [(frozenset(range(len(calls))), model.start)]
    while stack:
        state = stack.pop()
        if not any(calls[index].certain for index in state[0]):
            return True
        if state in seen:
            continue
        seen.add(state)
        if len(seen) > budget:
            return None
        stack += _next_states(calls, state, model)
    return False


def _next_states(calls: list[Call], state: _State, model: Model) -> list[_State]:
    """All states one call further: any call that was sent before every certain remaining one had ended.

    The call that ended first comes last, and is tried first.
    """
    left, inner = state
    first_end_ns = min(calls[index].end_ns for index in left)
    able = [index for index in left if calls[index].begin_ns <= first_end_ns]
    states: list[_State] = []
    for index in sorted(able, key=lambda index: -calls[index].end_ns):
        after: Any = model.step(inner, calls[index])
        if after is not None:
            states.append((left - {index}, after))
    return states


def _find_calls(history: History, model: Model) -> list[Call]:
    calls: list[Call] = []
    for process, mine in group_by_process(history.operations):
        sent: Operation | None = None
        for one in [one for one in mine if one.f in model.actions]:
            if one.type == "invoke":
                calls += [_leave_open(process, sent)] if sent else []
                sent = one
            elif sent is not None:
                calls += _end(process, sent, one)
                sent = None
        calls += [_leave_open(process, sent)] if sent else []
    return calls


def _leave_open(process: str, sent: Operation) -> Call:
    return Call(process, sent.f, sent.t_ns, _NEVER, certain=False, token=sent.token)


def _end(process: str, sent: Operation, answer: Operation) -> list[Call]:
    token = sent.token if answer.token is None else answer.token
    if answer.type == "info":
        return [_leave_open(process, sent)]
    if answer.type == "fail" and sent.f != "write":
        return []
    taken = answer.type == "ok"
    return [Call(process, sent.f, sent.t_ns, answer.t_ns, certain=True, taken=taken, token=token)]
