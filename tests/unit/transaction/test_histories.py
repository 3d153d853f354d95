"""The product's own code in seeded histories of several processes.

`tox -e search` plays more of them than the unit tests, and `HUDI_LOCKS_HISTORIES=5000` as many as you like.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from transaction_plays import Dealt

from hudi_locks.errors import PossibleLostUpdate
from hudi_locks.format.claim import Claim, ClaimKind, digest_of, encode_claim
from hudi_locks.timeline.claims import ClaimEntry, ClaimLog
from hudi_locks.transaction import Outcome, PublishResult, StopPoint, View
from hudi_locks.transaction.begin import Begin
from hudi_locks.transaction.concurrent_writes import ConcurrentWrites
from hudi_locks.transaction.forward import RollForward
from hudi_locks.transaction.publish import Publish
from hudi_locks.transaction.rollback import Rollback

HISTORIES = max(30, int(os.environ.get("HUDI_LOCKS_HISTORIES", "0")))
Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.histories


def test_histories_lose_nothing_and_meet_what_they_are_for(native: Any, mixed: Any) -> None:
    """Native ones without any lock, mixed ones while the lock works."""
    simulators = [play_sound(play, seed) for play in (native, mixed) for seed in range(HISTORIES)]
    kinds = {claim.kind for simulator in simulators for claim in simulator.claims()}
    outcomes = {outcome for simulator in simulators for outcome in simulator.outcomes.values()}
    assert kinds >= {ClaimKind.PUBLISH, ClaimKind.ROLLBACK, ClaimKind.VOID}
    assert outcomes >= {Outcome.COMMITTED, Outcome.ABORTED}
    assert any("is dead" in line for simulator in simulators for line in simulator.trail)
    assert any("is lost (late)" in line for simulator in simulators for line in simulator.trail)
    assert {count_writers(simulator) for simulator in simulators} == {2, 3, 4}


def count_writers(simulator: Any) -> int:
    return sum(process.name.startswith("w") for process in simulator.processes)


def play_sound(play: Any, seed: int) -> Any:
    simulator = play(seed)
    assert simulator.wrong() == "", f"{play.__name__}, seed {seed}:\n" + "\n".join(simulator.trail)
    return simulator


@pytest.mark.parametrize("foreign", [False, True])
@hypothesis.settings(max_examples=max(20, HISTORIES // 5), suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(dealt=st.lists(st.integers(0, 2**16 - 1), max_size=300), seed=st.integers(0, 5))
def test_histories_that_are_searched_for_lose_nothing_either(
    native: Any, mixed: Any, foreign: bool, dealt: list[int], seed: int
) -> None:
    """Hypothesis deals every choice: who goes on, sleeps or dies, whose answer is lost; and cuts down what fails."""
    simulator = (mixed if foreign else native)(seed, rng=Dealt(tuple(dealt)))
    assert simulator.wrong() == "", "\n".join(simulator.trail)


# ---- planted breaks: each drops one rule of the protocol, and must be found, first by the seed beside it ----


def drop_claims(patch: Patch) -> None:
    def append(self: ClaimLog, draft: Claim) -> ClaimEntry:
        data = encode_claim(draft)
        self._create(draft.number, data)
        return ClaimEntry(draft.number, digest_of(data), draft)

    patch.setattr(ClaimLog, "append", append)


def claim_before_checking(patch: Patch) -> None:
    find, conclude = Publish._find_conflict, Publish._conclude

    def remember(self: Any, view: View, claims: list[Claim]) -> None:
        self.unchecked = (view, claims)

    def check_late(self: Any, claim: Claim, timeline: Any) -> PublishResult:
        view, claims = getattr(self, "unchecked", (None, []))
        found = view and find(self, view, claims)
        return self._give_up("a conflict", conflict=found) if found else conclude(self, claim, timeline)

    patch.setattr(Publish, "_find_conflict", remember)
    patch.setattr(Publish, "_conclude", check_late)


def check_once(patch: Patch) -> None:
    find = Publish._find_conflict

    def find_once(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = None if getattr(self, "was_checked", False) else find(self, *args, **kwargs)
        self.was_checked = found is None
        return found

    patch.setattr(Publish, "_find_conflict", find_once)


def roll_back_without_claim(patch: Patch) -> None:
    patch.setattr(Rollback, "append", lambda _, draft: ClaimEntry(draft.number, "", draft))


def begin_without_rolling_forward(patch: Patch) -> None:
    patch.setattr(Begin, "_read", lambda self: self._table.peek())
    patch.setattr(ConcurrentWrites, "_unclaimed", lambda *_, **__: [])


def take_the_time_first(patch: Patch) -> None:
    prepare, request = Begin._prepare, Begin._request

    def prepare_late(self: Any) -> Any:
        self.early = self._table.later_than()
        return prepare(self)

    def request_early(self: Any, action: str, view: View, archived: Any) -> Any:
        table, early = self._table, self.early
        self._table = replace(table)
        object.__setattr__(self._table, "later_than", lambda *_: early)
        try:
            return request(self, action, view, archived)
        finally:
            self._table = table

    patch.setattr(Begin, "_prepare", prepare_late)
    patch.setattr(Begin, "_request", request_early)


def forget_the_late_request(patch: Patch) -> None:
    def look_only(self: Any, view: View, reason: str) -> PublishResult | None:
        if self._table.log.read_head().number != view.head.number:
            return None
        return PublishResult(self._instant, Outcome.ABORTED, reason=reason)

    patch.setattr(Publish, "_occupy", look_only)


def make_without_looking(self: Any, claim: Claim) -> bool:
    content = self._log.read_content(claim)
    if content is not None and not self._is_completed(claim):
        self._storage.create_if_absent(self._completed_path(claim), content)
    return True


def forward_what_was_archived(patch: Patch) -> None:
    patch.setattr(RollForward, "_see_to_publish", make_without_looking)


def forward_what_was_rolled_back(patch: Patch) -> None:
    patch.setattr(
        RollForward, "settle", lambda self, claim: self._is_archived(claim) or make_without_looking(self, claim)
    )


def forward_past_foreign_writers(patch: Patch) -> None:
    patch.setattr(RollForward, "_was_overtaken", lambda *_: False)


def never_look_again(patch: Patch) -> None:
    patch.setattr(RollForward, "_look_again", lambda *_: True)


def never_reload_after_the_heartbeat_test(patch: Patch) -> None:
    def clean_at_once(self: Any, timeline: Any) -> list[str]:
        expired = self._find_expired(timeline)
        view = View(self._table.forward.to_head(), timeline)
        for instant in timeline.pending(("commit",)):
            if instant.requested in expired:
                self._table.rollback.run(view, instant)
                return [instant.requested]
        return []

    patch.setattr(Begin, "_clean_one", clean_at_once)


NATIVE_BREAKS: list[tuple[Callable[[Patch], None], int]] = [
    (drop_claims, 7),
    (claim_before_checking, 0),
    (check_once, 7),
    (roll_back_without_claim, 0),
    (begin_without_rolling_forward, 6),
    (take_the_time_first, 27),
    (forget_the_late_request, 26),
    (forward_what_was_archived, 210),
    (never_reload_after_the_heartbeat_test, 46),
]
MIXED_BREAKS: list[tuple[Callable[[Patch], None], int]] = [
    (forward_past_foreign_writers, 127),
    (forward_what_was_rolled_back, 50),
    (forward_what_was_archived, 12),
]


def is_found(play: Any, likely: int, limit: int = 600) -> bool:
    """Whether some history goes wrong: by what the table holds, by an alarm of the product, or by never ending.

    Args:
        play: Plays one.
        likely: The seed to begin with, for one that went wrong when this was written.
        limit: How many others to play.
    """
    return any(goes_wrong(play, seed) for seed in (likely, *range(limit)))


def goes_wrong(play: Any, seed: int) -> bool:
    try:
        return bool(play(seed).wrong())
    except (AssertionError, PossibleLostUpdate):
        return True


@pytest.mark.parametrize(("plant", "likely"), NATIVE_BREAKS)
def test_a_break_planted_in_a_native_table_is_found(
    native: Any, plant: Callable[[Patch], None], likely: int, monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    assert is_found(native, likely)


def test_a_missing_second_look_brings_an_archived_instant_back(harness: Any, monkeypatch: Patch) -> None:
    """Others complete it before it is staged here, and a JVM archiver, which knows no staged files, takes it away."""
    begun: list[str] = []
    meanwhile: dict[StopPoint, Callable[[], object]] = {
        StopPoint.PUBLISH_CLAIMED: lambda: harness.open().roll_back_failed(),
        StopPoint.PUBLISH_LOOKED: lambda: harness.archive(begun[0]),
    }
    never_look_again(monkeypatch)
    tx = harness.open(trace=lambda point: meanwhile.pop(point, int)()).begin("commit", "UPSERT")
    begun.append(tx.instant)
    assert tx.publish(harness.write(tx, "g-0")).is_committed
    assert harness.timeline().get(tx.instant) is not None


@pytest.mark.parametrize(("plant", "likely"), MIXED_BREAKS)
def test_a_break_planted_beside_a_jvm_writer_is_found(
    mixed: Any, plant: Callable[[Patch], None], likely: int, monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    assert is_found(mixed, likely)
