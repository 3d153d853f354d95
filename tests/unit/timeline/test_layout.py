from __future__ import annotations

from datetime import timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.format import Instant, State, epoch_ms
from hudi_locks.timeline import LAYOUT_1, LAYOUT_2, TimelineLayout

INDIA = timezone(timedelta(hours=5, minutes=30))


def test_instants_live_where_the_layout_says() -> None:
    done = Instant("20261121032159605", "commit", State.COMPLETED, "20261121032200229")
    assert LAYOUT_1.path(done) == ".hoodie/20261121032159605.commit"
    assert LAYOUT_2.path(done) == ".hoodie/timeline/20261121032159605_20261121032200229.commit"


@given(st.integers(min_value=0, max_value=4_102_444_800_000))
def test_times_of_a_zone_survive_the_round_trip(ms: int) -> None:
    layout = TimelineLayout(2, ".hoodie/timeline", ".hoodie/timeline/history", INDIA)
    assert epoch_ms(layout.time(ms), INDIA) == ms


@pytest.mark.parametrize(("zone", "text"), [(timezone.utc, "20231114221320000"), (INDIA, "20231115034320000")])
def test_times_are_those_of_the_zone(zone: timezone, text: str) -> None:
    assert TimelineLayout(2, "", "", zone).time(1_700_000_000_000) == text
