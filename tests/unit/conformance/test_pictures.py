"""Where a history first goes wrong, and how that is drawn."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from hudi_locks_conformance.history import (
    History,
    draw_svg,
    draw_text,
    find_failing_prefix,
    find_overlaps,
    find_violations,
    judge,
)


def record(*events: tuple[str, str, str, float]) -> History:
    history = History()
    for process, f, kind, t_s in events:
        history.add(process, f, kind, t_s=t_s)
    return history


def turns(count: int) -> list[tuple[str, str, str, float]]:
    steps = [("acquire", "invoke"), ("acquire", "ok"), ("release", "invoke"), ("release", "ok")]
    return [
        ("ab"[number % 2], f, kind, 4 * number + step / 10)
        for number in range(count)
        for step, (f, kind) in enumerate(steps)
    ]


BROKEN = [
    *turns(30),
    ("a", "acquire", "invoke", 200.0),
    ("a", "acquire", "ok", 200.001),
    ("<b>", "acquire", "invoke", 200.002),
    ("<b>", "acquire", "ok", 200.003),
    ("a", "release", "invoke", 200.004),
    ("a", "release", "ok", 200.005),
    *[(name, f, kind, 300 + at) for name, f, kind, at in turns(10)],
]


def test_the_shortest_failing_prefix_ends_where_the_second_holder_enters() -> None:
    prefix = find_failing_prefix(record(*BROKEN))
    assert prefix is not None
    assert len(prefix.operations) == 4 * 30 + 4
    assert prefix.operations[-1].process == "<b>"
    assert find_failing_prefix(record(*turns(5))) is None


def test_a_refusal_that_no_order_explains_is_found_without_an_overlap() -> None:
    history = record(("a", "acquire", "invoke", 0), ("a", "acquire", "ok", 1), ("b", "release", "invoke", 2))
    history.add("b", "release", "ok", t_s=3)
    prefix = find_failing_prefix(history)
    assert prefix is not None
    assert find_overlaps(prefix) == []
    assert draw_text(prefix).endswith("◀ this cannot be")


def test_the_text_shows_who_held_when() -> None:
    prefix = find_failing_prefix(record(*BROKEN))
    assert prefix is not None
    lines = draw_text(prefix, last=5).splitlines()
    assert lines[0].split() == ["ms", "b", "a", "<b>"]
    assert "119 events before" in lines[1]
    assert lines[-2].split() == ["83702.000", "┃", "acquire…"]
    assert lines[-1].split() == ["83703.000", "┃", "┃", "acquire", "◀", "two", "holders"]


def test_the_picture_is_sound_xml_and_marks_the_overlap() -> None:
    prefix = find_failing_prefix(record(*BROKEN))
    assert prefix is not None
    root = ET.fromstring(draw_svg(prefix))
    fills = [shape.get("fill") for shape in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert fills.count("#c0392b") == 2
    titles = [title.text or "" for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any(title.startswith("two holders") for title in titles)
    assert ET.fromstring(draw_svg(History())).tag.endswith("svg")


def test_a_holder_that_knows_of_its_loss_does_no_harm() -> None:
    lost = [("a", "acquire", "invoke", 0.0), ("a", "acquire", "ok", 1.0), ("b", "acquire", "invoke", 2.0)]
    lost += [("b", "acquire", "ok", 3.0)]
    knows, believes = ("a", "check", "fail", 4.0), ("a", "check", "ok", 4.0)
    assert find_violations(record(*lost, knows)) == []
    assert find_violations(record(*lost, believes, ("a", "check", "fail", 5.0))) == [], "b does not believe"
    both = [*lost, believes, ("b", "check", "ok", 4.5), ("a", "check", "fail", 5.0)]
    (overlap,) = find_violations(record(*both))
    assert overlap.first.process == "a"
    assert judge(record(*both)).ok is False


def test_a_late_write_does_harm_when_it_is_taken_after_the_successors() -> None:
    lost = [("a", "acquire", "invoke", 0.0), ("a", "acquire", "ok", 1.0), ("b", "acquire", "invoke", 2.0)]
    lost += [("b", "acquire", "ok", 3.0)]
    successor, late = ("b", "write", "ok", 4.0), ("a", "write", "ok", 5.0)
    knows = ("a", "check", "fail", 6.0)
    assert find_violations(record(*lost, successor, ("a", "write", "fail", 5.0), knows)) == []
    assert find_violations(record(*lost, ("a", "write", "ok", 3.5), successor, knows)) == []
    assert len(find_violations(record(*lost, successor, late, knows))) == 1


def test_of_two_holders_with_tokens_the_greater_is_the_later() -> None:
    """An answer that was read late, by a process that was paused, is that of the earlier holder."""
    history = History()
    history.add("new", "acquire", "ok", t_s=1, token=6)
    history.add("old", "acquire", "ok", t_s=2, token=5)
    history.add("new", "write", "ok", t_s=3, token=6)
    history.add("old", "check", "fail", t_s=4)
    assert find_violations(history) == []
    history.add("old", "acquire", "ok", t_s=5, token=4)
    history.add("new", "write", "ok", t_s=6, token=6)
    history.add("old", "write", "ok", t_s=7, token=4)
    assert len(find_violations(history)) == 1
