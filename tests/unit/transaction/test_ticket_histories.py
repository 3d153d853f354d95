"""Naming data files by tickets, in seeded histories over stores with folders, stores without, and beside a JVM writer.

The rules are those of `docs/commit-protocol.md`. Each is dropped in turn, and the histories must find that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tickets_simulator import TicketsSimulator, play_object_tickets, play_tickets, play_tickets_beside_jvm

from hudi_locks.errors import PossibleLostUpdate
from hudi_locks.format import Instant, State
from hudi_locks.format.claim import Claim, ClaimKind
from hudi_locks.markers import StagedFiles
from hudi_locks.storage import MemoryStorage, StagedFile
from hudi_locks.timeline.claims import ClaimLog
from hudi_locks.transaction.forward import RollForward

HISTORIES = int(os.environ.get("HUDI_LOCKS_HISTORIES", "24"))
Patch = pytest.MonkeyPatch
Play = Callable[[int], TicketsSimulator]
PLAYS: list[Play] = [play_tickets, play_object_tickets, play_tickets_beside_jvm]
pytestmark = pytest.mark.histories


def play_sound(play: Play, seed: int) -> TicketsSimulator:
    simulator = play(seed)
    assert simulator.wrong() == "", f"{play.__name__}, seed {seed}:\n" + "\n".join(simulator.trail)
    return simulator


def test_histories_name_what_is_claimed_and_nothing_else() -> None:
    simulators = [play_sound(play, seed) for play in PLAYS for seed in range(HISTORIES)]
    kinds = {claim.kind for simulator in simulators for claim in simulator.claims()}
    trails = [line for simulator in simulators for line in simulator.trail]
    assert kinds >= {ClaimKind.PUBLISH, ClaimKind.ROLLBACK, ClaimKind.VOID}
    for met in ("thief: the ticket", "late: redeem", "late: create", "late task: seal", "vacuum: removes", "is dead"):
        assert any(met in line for line in trails), met


# ---- planted breaks: each drops one rule, and must be found, first by the seed beside it ----


def let_tasks_name(patch: Patch) -> None:
    seal = StagedFiles.seal

    def name(self: StagedFiles, staged: StagedFile) -> str:
        ticket = seal(self, staged)
        self.storage.redeem(ticket, staged.target)
        return ticket

    patch.setattr(StagedFiles, "seal", name)


def keep_tickets_that_were_used(patch: Patch) -> None:
    def redeem(self: MemoryStorage, ticket: str, target: str) -> bool:
        data = self.read(f".hoodie/.hudi_locks/staging/{ticket}")
        return data is not None and self.create_if_absent(target, data)

    patch.setattr(MemoryStorage, "redeem", redeem)


def complete_before_the_names(patch: Patch) -> None:
    settle = RollForward.settle

    def settle_late(self: RollForward, claim: Claim) -> bool:
        content = self._log.read_content(claim)
        if content is not None and not self._is_voided(claim) and self._context.is_inflight(claim):
            self._storage.create_if_absent(self._completed_path(claim), content)
        return settle(self, claim)

    patch.setattr(RollForward, "settle", settle_late)


def take_a_missing_ticket_for_a_name(patch: Patch) -> None:
    patch.setattr(RollForward, "_name", lambda self, path, ticket: self._storage.redeem(ticket, path) or True)


def look_at_the_name_first(patch: Patch) -> None:
    def name(self: RollForward, path: str, ticket: str) -> bool:
        return self._storage.exists(path) or self._storage.redeem(ticket, path)

    patch.setattr(RollForward, "_name", name)


def give_up_without_a_void(patch: Patch) -> None:
    """Whoever misses a file takes the write for undone, and says so to nobody."""

    def give_up(self: RollForward, claim: Claim) -> bool:
        self._storage.delete(self._context.path(Instant(claim.instant, claim.action, State.INFLIGHT), State.INFLIGHT))
        self._is_voided = lambda _: True  # type: ignore[assignment,method-assign]
        return True

    patch.setattr(RollForward, "_void_or_pass", give_up)


def name_what_was_staged(patch: Patch) -> None:
    def read_all(self: Any, claim: Claim) -> dict[str, str]:
        staged: Iterable[tuple[str, str]] = self._storage._simulator.staged
        return {target: ticket for ticket, target in staged if ticket.startswith(claim.instant)}

    patch.setattr(ClaimLog, "read_tickets", read_all)


# A VOID that does not cancel, or cancels late, is found in `test_tickets.py`, at each step of the VOID.
BREAKS: list[tuple[Callable[[Patch], None], Play, int]] = [
    (let_tasks_name, play_tickets, 0),
    (keep_tickets_that_were_used, play_object_tickets, 32),
    (complete_before_the_names, play_object_tickets, 1),
    (take_a_missing_ticket_for_a_name, play_tickets, 4),
    (look_at_the_name_first, play_object_tickets, 174),
    (give_up_without_a_void, play_tickets, 4),
    (name_what_was_staged, play_tickets, 1),
]


@pytest.mark.parametrize(("plant", "play", "likely"), BREAKS)
def test_each_rule_that_is_dropped_is_found(
    plant: Callable[[Patch], None], play: Play, likely: int, monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    assert any(goes_wrong(play, seed) for seed in (likely, *range(600)))


def goes_wrong(play: Play, seed: int) -> bool:
    """By what the table holds in the end, by an alarm of the product, or by never ending."""
    try:
        return bool(play(seed).wrong())
    except (AssertionError, PossibleLostUpdate):
        return True
