"""Whatever the history of a merge-on-read table: no clean takes a row from a reader whom the policy promises it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from clean_breaks import judge_by_names, take_pending_for_completed
from hypothesis import given
from hypothesis import strategies as st
from log_history import Event, LogHistory, events
from transaction_harness import heartbeats_that_end

from hudi_locks.services import retention
from hudi_locks.services.retention import find_border

Patch = pytest.MonkeyPatch
Options = st.SearchStrategy[dict[str, Any]]
BY_COMMITS: Options = st.fixed_dictionaries({"commits__retained": st.integers(1, 4)})
BY_VERSIONS: Options = st.fixed_dictionaries(
    {"policy": st.just("KEEP_LATEST_FILE_VERSIONS"), "fileversions__retained": st.integers(1, 2)}
)


@pytest.fixture(autouse=True)
def heartbeats_end(monkeypatch: Patch) -> Iterator[None]:
    """Those of writes that a history leaves open."""
    with heartbeats_that_end(monkeypatch):
        yield


@pytest.mark.histories
@given(events, BY_COMMITS | BY_VERSIONS)
def test_every_snapshot_that_is_promised_is_whole(played: list[Event], options: dict[str, Any]) -> None:
    assert LogHistory(options).play(played).wrong() == ""


def seeded(seed: int) -> LogHistory:
    return LogHistory({"commits__retained": 1 + seed % 3}).play_at_random(seed, 40)


@pytest.mark.histories
def test_histories_of_chance_clean_much_and_lose_nothing() -> None:
    histories = [seeded(seed) for seed in range(12)]
    assert [history.wrong() for history in histories] == [""] * 12
    assert sum(history.deleted for history in histories) > 30


# ---- planted breaks: each drops one rule, and must be found ----


def regard_no_one_under_way(patch: Patch) -> None:
    def find(timeline: Any, *given: Any, **named: Any) -> Any:
        return find_border(type(timeline)(timeline.layout, timeline.completed(), timeline.paths), *given, **named)

    patch.setattr(retention, "find_border", find)


BREAKS: list[tuple[Callable[[Patch], None], int]] = [
    (judge_by_names, 0),
    (take_pending_for_completed, 12),
    (regard_no_one_under_way, 12),
]


@pytest.mark.histories
@pytest.mark.parametrize(("plant", "likely"), BREAKS)
def test_a_rule_that_is_dropped_is_found(plant: Callable[[Patch], None], likely: int, monkeypatch: Patch) -> None:
    """First by the seed that was found when this was written, then by others."""
    plant(monkeypatch)
    assert any(goes_wrong(seed) for seed in (likely, *range(200)))


def goes_wrong(seed: int) -> bool:
    """By what readers see, or by a compaction whose files are gone."""
    try:
        return bool(seeded(seed).wrong())
    except TypeError:
        return True
