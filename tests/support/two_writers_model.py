"""All that can happen to two writers of one file group on a store of objects, step by step: a model of the protocol.

Each writer begins on what the claims say, stages one file, reads the log to its end, looks for a conflict, and claims
the next number. Whoever reads a claim finishes it first: names its file, then completes it, or voids it where its
ticket is gone. Beside them a third one finishes claims, and takes the living for dead once; all pause anywhere. Tickets
vanish, and a request to name a file may land much later. A rule that is dropped must have a history that goes wrong.
What one write alone must keep to, as to cancel before it removes, is for `test_ticket_histories.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

__all__ = ["RULES", "Model"]

RULES: Final = (
    "a claim takes the next number or none",
    "conflicts are looked for up to the number that is claimed",
    "a writer whose number is taken looks again",
    "the claim before is finished first",
    "a file is named before the write is completed",
)


class Write(NamedTuple):
    """One write, as the store has it."""

    ticket: str = ""  # open, used or gone, once the file is staged
    late: bool = False  # a request to name it is on its way
    named: bool = False
    inflight: bool = True
    made: bool = False  # its completed file


class Process(NamedTuple):
    """Where a writer (0, 1), or the third one (2), stands."""

    at: str = "idle"
    of: int = 0  # the write that is finished
    then: str = "idle"  # where it goes on once that is done
    head: int = 0  # claims that it knows of, all finished
    base: int = 0  # claims that its snapshot holds


class State(NamedTuple):
    log: tuple[tuple[str, int], ...] = ()
    writes: tuple[Write, Write] = (Write(), Write())
    processes: tuple[Process, ...] = (Process("begin"), Process("begin"), Process())
    told: tuple[str, str] = ("", "")


Step = tuple[str, State]


@dataclass(frozen=True)
class Model:
    """The protocol, with one of `RULES` dropped, or none."""

    dropped: str = ""

    def explore(self, most: int = 2_000_000) -> tuple[int, str, list[str]]:
        """How many states there are; what goes wrong in one of them, and the shortest history that leads to it."""
        start = State()
        came: dict[State, tuple[str, State] | None] = {start: None}
        queue = deque([start])
        while queue:
            state = queue.popleft()
            if wrong := self.find_wrong(state):
                return len(came), wrong, _history(came, state)
            for label, following in self.steps(state):
                if following not in came:
                    came[following] = (label, state)
                    queue.append(following)
            if len(came) > most:
                return len(came), "there are more states than are looked at", []
        return len(came), "", []

    def keeps(self, rule: int) -> bool:
        return self.dropped != RULES[rule]

    # ---- what may happen next ----

    def steps(self, s: State) -> Iterator[Step]:
        for who in range(len(s.processes)):
            for label, following in self.act(s, who):
                yield f"{_NAMES[who]} {label}", following
        for of, write in enumerate(s.writes):
            if write.late:
                yield f"a late request names the file of {of}", self.redeem(_put(s, of, late=False), of)
            if write.ticket == "open":
                yield f"the ticket of {of} vanishes", _put(s, of, ticket="gone")

    def act(self, s: State, who: int) -> Iterator[Step]:
        p = s.processes[who]
        if p.at in _FINISHING:
            yield from self.finish(s, who, p)
        elif who < len(s.writes):
            yield from self.write(s, who, p)
        elif p.at == "idle" and s.log:
            yield "reads the last claim", self.see(s, who, "idle")
        if who == _THIRD and p.at == "idle" and not any(kind == "R" for kind, _ in s.log):
            yield from ((f"takes {of} for dead", _go(s, who, f"dead-{of}")) for of in (0, 1) if not _is_claimed(s, of))
        if p.at.startswith("dead-"):
            yield "reads the log", self.see(s, who, f"roll-{p.at[-1]}")
        if p.at.startswith("roll-"):
            yield "rolls back", self.claim(s, who, "R", int(p.at[-1]), lost="idle")

    def write(self, s: State, who: int, p: Process) -> Iterator[Step]:
        if p.at == "begin":
            yield "begins", self.see(s, who, "stage")
        elif p.at == "stage":
            yield "stages its file", _go(_put(s, who, ticket="open"), who, "look", base=p.head)
        elif p.at == "look":
            yield "reads the log", self.see(s, who, "check")
        elif p.at == "check":
            yield "looks for conflicts", self.check(s, who, p)
        elif p.at == "claim":
            again = "look" if self.keeps(2) else "skip"
            yield "claims", self.claim(s, who, "P", who, lost=again)
        elif p.at == "skip":
            yield "takes the next number as it is", self.see(s, who, "claim")
        elif p.at == "done":
            outcome = "COMMITTED" if s.writes[who].made else "ABORTED"
            told = (outcome, s.told[1]) if who == 0 else (s.told[0], outcome)
            yield f"is told {outcome}", _go(s, who, "end")._replace(told=told)

    def see(self, s: State, who: int, then: str) -> State:
        """Read the log to its end, and finish what the last claim decides."""
        head = len(s.log)
        if not head or not self.keeps(3):
            return _go(s, who, then, head=head)
        kind, of = s.log[-1]
        return _go(s, who, "redeem" if kind == "P" else "cancel", of=of, then=then, head=head)

    def check(self, s: State, who: int, p: Process) -> State:
        seen = s.log[p.base : p.head if self.keeps(1) else p.base]
        if ("R", who) in s.log[: p.head]:
            return _go(s, who, "done")
        is_conflict = any(claim == ("P", 1 - who) and ("V", 1 - who) not in seen for claim in seen)
        return self.claim(s, who, "R", who, lost="look") if is_conflict else _go(s, who, "claim")

    def claim(self, s: State, who: int, kind: str, of: int, *, lost: str) -> State:
        p = s.processes[who]
        if (self.keeps(0) and len(s.log) != p.head) or (kind == "R" and _is_claimed(s, of)):
            return _go(s, who, lost)
        if kind == "P" and ("R", of) in s.log:
            return _go(s, who, "done")
        then = "done" if who < len(s.writes) else "idle"
        begun = "redeem" if kind == "P" and self.keeps(4) else "complete" if kind == "P" else "cancel"
        return _go(s, who, begun, of=of, then=then, head=len(s.log) + 1)._replace(log=(*s.log, (kind, of)))

    # ---- finishing a claim ----

    def finish(self, s: State, who: int, p: Process) -> Iterator[Step]:
        write, of = s.writes[p.of], p.of
        if p.at == "redeem":
            yield from self.name(s, who, of)
        elif p.at == "lost":
            yield f"sees no name of {of}", _go(s, who, "leave") if write.made else self.void(s, who, p)
        elif p.at == "inflight":
            yield f"looks whether {of} is pending", _go(s, who, "complete") if write.inflight else self.void(s, who, p)
        elif p.at in ("complete", "look-again"):
            yield self.complete(s, who, p)
        elif p.at == "leave":
            yield "goes on", self.leave(s, who, p)
        else:
            yield self.undo(s, who, p)

    def name(self, s: State, who: int, of: int) -> Iterator[Step]:
        write = s.writes[of]
        if write.ticket == "open":
            yield f"names the file of {of}", _go(self.redeem(s, of), who, "inflight")
            if who == _THIRD and not write.late:
                yield f"asks for the name of {of}, and hears nothing", _put(s, of, late=True)
        else:
            yield f"finds no ticket of {of}", _go(s, who, "inflight" if write.named else "lost")

    def complete(self, s: State, who: int, p: Process) -> Step:
        write, of = s.writes[p.of], p.of
        if p.at == "complete":
            after = "look-again" if self.keeps(4) or write.named else "redeem"
            return f"completes {of}", _go(_put(s, of, made=True), who, after)
        kept = s if write.inflight else _put(s, of, made=False)
        return f"looks again whether {of} is pending", _go(kept, who, "leave")

    def leave(self, s: State, who: int, p: Process) -> State:
        """What is of no use any more is forgotten, which leaves fewer states."""
        if who >= len(s.writes) and p.then == "idle":
            return _go(s, who, "idle", of=0, then="idle", head=0)
        return _go(s, who, p.then, of=0, then="idle")

    def undo(self, s: State, who: int, p: Process) -> Step:
        if p.at == "cancel":
            return f"cancels the ticket of {p.of}", _go(_put(s, p.of, ticket="gone"), who, "remove")
        if p.at == "remove":
            return f"removes the files of {p.of}", _go(_put(s, p.of, named=False, made=False), who, "end-inflight")
        return f"removes the inflight file of {p.of}", _go(_put(s, p.of, inflight=False), who, "leave")

    def void(self, s: State, who: int, p: Process) -> State:
        if s.log[-1] == ("P", p.of) and len(s.log) == p.head:
            return _go(s, who, "cancel", head=p.head + 1)._replace(log=(*s.log, ("V", p.of)))
        return _go(s, who, "cancel" if ("V", p.of) in s.log else "leave")

    def redeem(self, s: State, of: int) -> State:
        write = s.writes[of]
        if write.ticket != "open" or write.named:
            return s
        return _put(s, of, named=True, ticket="used")

    # ---- what must never be ----

    def find_wrong(self, s: State) -> str:
        is_quiet = all(p.at in ("end", "idle") for p in s.processes) and not any(write.late for write in s.writes)
        found = (self.find_fault(s, of, is_quiet=is_quiet) for of in range(len(s.writes)))
        return next(filter(None, found), "") or self.find_lost(s)

    def find_fault(self, s: State, of: int, *, is_quiet: bool) -> str:
        write, is_last = s.writes[of], bool(s.log) and s.log[-1][1] == of
        if write.made and not write.named:
            return f"write {of} is completed, and its file is not there"
        if not is_quiet:
            return ""
        is_undone = ("R", of) in s.log or ("V", of) in s.log
        if is_undone and (write.made or write.named) and not (is_last and write.inflight):
            return f"write {of} was undone, and its file is there"
        if ("P", of) in s.log and not is_undone and not write.made and not is_last:
            return f"write {of} was published, and is never completed"
        if s.told[of] == "COMMITTED" and not write.made:
            return f"write {of} was told that it is committed, and is not"
        return ""

    def find_lost(self, s: State) -> str:
        counted = [of for kind, of in s.log if kind == "P" and ("V", of) not in s.log]
        if len(counted) < len(s.writes):
            return ""
        first, second = counted
        is_built_on = s.processes[second].base > s.log.index(("P", first))
        return "" if is_built_on else f"the update of {first} is lost: {second} did not see it"


_NAMES: Final = ("writer 0", "writer 1", "the third one")
_THIRD: Final = 2
_FINISHING: Final = frozenset(
    {"redeem", "lost", "inflight", "complete", "look-again", "leave", "cancel", "remove", "end-inflight"}
)


def _is_claimed(s: State, of: int) -> bool:
    return ("P", of) in s.log or ("R", of) in s.log


def _go(s: State, who: int, at: str, **more: Any) -> State:
    moved = s.processes[who]._replace(at=at, **more)
    return s._replace(processes=tuple(moved if place == who else p for place, p in enumerate(s.processes)))


def _put(s: State, of: int, **more: Any) -> State:
    first, second = (write._replace(**more) if place == of else write for place, write in enumerate(s.writes))
    return s._replace(writes=(first, second))


def _history(came: dict[State, Step | None], state: State) -> list[str]:
    path: list[str] = []
    while (step := came[state]) is not None:
        label, state = step
        path.append(label)
    return path[::-1]
