"""Levels and the badge that a run earns; capabilities that a run shows although nobody claims them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hudi_locks_conformance import CHECKS, LADDER, Harness, History, Level, Outcome, Status, find_badge, select_checks
from hudi_locks_conformance.storm import Storm
from hudi_locks_conformance.unclaimed import count_turns, find_unclaimed


def run(level: Level, ends: Mapping[str, Status] | None = None) -> list[Outcome]:
    return [Outcome(check, (ends or {}).get(check.id, Status.PASS)) for check in select_checks(level)]


def test_the_badge_names_the_level_that_was_asked_for_when_all_is_well() -> None:
    badge = find_badge(run(Level.LEASE))
    assert (badge.level, badge.extra, badge.failed) == (Level.LEASE, False, 0)
    assert str(badge) == f"hudi-locks {badge.version} · lease · 0 failed"
    assert badge.lacking == "fencing: not asked for"


@pytest.mark.parametrize("status", [Status.FAIL, Status.ERROR, Status.NOT_RUN, Status.UNKNOWN])
def test_a_level_with_a_check_that_is_not_in_order_is_not_earned(status: Status) -> None:
    badge = find_badge(run(Level.FENCING, {"E2": status}))
    assert badge.level is Level.CORE
    assert badge.lacking == f"lease: E2 {status.value}"
    assert badge.failed == (status in (Status.FAIL, Status.ERROR))


def test_what_is_not_claimed_is_no_merit() -> None:
    ends = {check.id: Status.UNSUPPORTED for check in CHECKS.values() if check.level is Level.LEASE}
    badge = find_badge(run(Level.FENCING, ends))
    assert badge.level is Level.CORE
    assert badge.lacking == "lease: not claimed"


def test_a_part_of_a_level_earns_nothing() -> None:
    badge = find_badge(run(Level.CORE)[1:])
    assert badge.level is None
    assert "only" in badge.lacking
    assert " · no level · " in str(badge)


def test_extra_stands_beside_the_ladder() -> None:
    assert Level.EXTRA not in LADDER
    assert Level.INTEROP not in Level.EXTRA.contents
    assert Level.EXTRA not in Level.INTEROP.contents
    assert Level.INTEROP.contents == set(LADDER)
    badge = find_badge(run(Level.EXTRA))
    assert (badge.level, badge.extra) == (Level.FENCING, True)
    assert " · fencing + extra · " in str(badge)
    assert not find_badge(run(Level.EXTRA, {"B10": Status.FAIL})).extra


def storm(*, apart_s: float, order: str, tokens: bool) -> Storm:
    """Twenty times three that queue up, `apart_s` seconds apart, and are served in `order`."""
    history = History()
    for number in range(20):
        for place, name in enumerate("abc"):
            history.add(name, "acquire", "invoke", t_s=number + place * apart_s)
        for place, name in enumerate(order):
            token = 3 * number + place if tokens else None
            history.add(name, "acquire", "ok", t_s=number + 0.5 + place / 10, token=token)
            history.add(name, "release", "invoke", t_s=number + 0.55 + place / 10)
            history.add(name, "release", "ok", t_s=number + 0.55 + place / 10)
    return Storm(history, 60, 60, (), ())


@pytest.mark.parametrize(
    ("apart_s", "order", "turns"), [(0.1, "abc", (40, 40)), (0.1, "cab", (20, 40)), (0.0001, "cba", (0, 0))]
)
def test_turns_are_counted_where_the_order_of_asking_is_plain(
    apart_s: float, order: str, turns: tuple[int, int]
) -> None:
    assert count_turns(storm(apart_s=apart_s, order=order, tokens=False).history) == turns


def test_what_a_storm_shows_and_nobody_claims_is_noted() -> None:
    harness = Harness("hudi_locks_conformance.broken:LiesAboutWaiting")
    assert list(find_unclaimed(harness)) == []
    harness.shared["storm True"] = storm(apart_s=0.1, order="abc", tokens=True)
    fencing, fair = find_unclaimed(harness)
    assert fencing.startswith("FENCING is not claimed, but tokens grew")
    assert fair == "FAIR is not claimed, but 40 of 40 grants were in order: could be claimed"
    harness.shared["storm True"] = storm(apart_s=0.1, order="cab", tokens=False)
    assert list(find_unclaimed(harness)) == []


def test_a_class_that_claims_it_needs_no_note() -> None:
    harness = Harness("filesystem")
    harness.shared["storm True"] = storm(apart_s=0.1, order="abc", tokens=True)
    assert list(find_unclaimed(harness)) == []
