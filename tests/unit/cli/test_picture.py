"""The page that `hudi-locks timeline --html` writes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise

import pytest

from hudi_locks.cli.picture import draw_timeline
from hudi_locks.services.activity import Activity

BEGAN = 1_764_000_000_000
DONE = Activity("20251124160000000", "commit", "COMPLETED", "UPSERT", BEGAN, BEGAN + 4_000, 3, 1, 0, 2, 10, "a", 7)


def at(second: float, took_s: float | None, writer: str = "a", action: str = "commit") -> Activity:
    began = BEGAN + int(second * 1000)
    ended, state = (None, "INFLIGHT") if took_s is None else (began + int(took_s * 1000), "COMPLETED")
    return replace(
        DONE,
        requested=f"20251124{began}",
        began_ms=began,
        completed_ms=ended,
        state=state,
        writer=writer,
        action=action,
    )


def draw(*found: Activity, now_s: float = 100) -> ET.Element:
    page = draw_timeline("/data/<trips> & more", found, now_ms=BEGAN + int(now_s * 1000))
    return ET.fromstring(page.removeprefix("<!DOCTYPE html>"))


def bars(page: ET.Element) -> list[tuple[float, float, float]]:
    """Of each: left, width and top."""
    styles = [one.get("style") or "" for one in page.iter("a")]
    found = [re.fullmatch(r"left:([\d.]+)%;width:([\d.]+)%;top:([\d.]+)rem", style) for style in styles]
    return [(float(one[1]), float(one[2]), float(one[3])) for one in found if one]


def texts(page: ET.Element, tag: str) -> list[str]:
    return ["".join(one.itertext()) for one in page.iter(tag)]


def test_each_instant_is_a_bar_of_its_time_and_a_row() -> None:
    page = draw(at(0, 4), at(4, 4), at(8, 2))
    assert bars(page) == [(0.0, 40.0, 0.0), (40.0, 40.0, 0.0), (80.0, 20.0, 0.0)]
    targets = {f"#{row.get('id')}" for row in page.iter("tr") if row.get("id")}
    assert {bar.get("href") for bar in page.iter("a")} == targets
    assert len(targets) == 3


def test_each_writer_has_a_line_and_what_runs_together_lies_below() -> None:
    page = draw(at(0, 10), at(1, 5, "b"), at(2, 4), at(6, 4), at(7, 1, ""))
    assert texts(page, "h2") == ["a", "b", "JVM Hudi, or not known"]
    assert [top for _, _, top in bars(page)] == [0.0, 1.5, 1.5, 0.0, 0.0]  # those of one writer stand together


def test_a_time_in_which_nothing_happened_is_drawn_short() -> None:
    near, far = bars(draw(at(0, 10), at(90_000, 10)))
    assert near[1] == pytest.approx(far[1], abs=0.02)
    assert far[0] - near[1] == pytest.approx(100 / 21, abs=0.02)
    assert near[1] + far[1] > 95


def test_what_is_pending_goes_on_until_now_and_looks_otherwise() -> None:
    page = draw(at(0, 10), at(5, None, "b"), now_s=20)
    assert bars(page)[1] == (25.0, 75.0, 0.0)
    assert [one.get("class") for one in page.iter("a")] == ["bar write", "bar write pending"]


@pytest.mark.parametrize(
    ("action", "kind"),
    [("replacecommit", "replace"), ("compaction", "compact"), ("rollback", "undo"), ("clean", "other")],
)
def test_what_an_instant_did_has_a_colour_that_the_legend_explains(action: str, kind: str) -> None:
    page = draw(at(0, 1, action=action))
    assert [one.get("class") for one in page.iter("a")] == [f"bar {kind}"]
    assert kind in [one.get("class") for one in page.iter("i")]


def test_a_moment_is_seen_and_nothing_leaves_the_page() -> None:
    for left, width, _ in bars(draw(at(0, 100), at(100, 0), at(50, 0))):
        assert width >= 0.4
        assert left + width <= 100.01


def test_names_are_texts_and_nothing_is_run_or_loaded() -> None:
    page = draw(at(0, 1, "<script>alert(1)</script>\"'"))
    assert texts(page, "h1") == ["Timeline of /data/<trips> & more"]
    assert texts(page, "h2") == ["<script>alert(1)</script>\"'"]
    assert not list(page.iter("script"))
    assert not [one for tag in page.iter() for one in tag.attrib if one in ("src", "onclick")]
    policy = next(one.get("content") for one in page.iter("meta") if one.get("http-equiv"))
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_a_table_without_instants_has_a_page_too() -> None:
    page = draw()
    assert "No instants." in texts(page, "p")
    assert bars(page) == []


def test_moments_on_the_axis_do_not_overlap() -> None:
    page = draw(*(at(1000 * number, 10 if number % 3 == 0 else 0.01) for number in range(12)))
    styles = [one.get("style") or "" for one in page.iter("span")]
    places = [tuple(map(float, re.findall(r"[\d.]+", style))) for style in styles]
    assert len(places) > 2
    for (left, width), (following, _) in pairwise(places):
        assert left + width == pytest.approx(following, abs=0.02)
        assert width >= 15
