"""What notebooks show of the values that users meet."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hudi_locks.display import make_card, open_notebook_line, say_time
from hudi_locks.lock import Holder, Owner


def test_a_card_escapes_what_others_wrote_and_leaves_out_what_is_not_known() -> None:
    card = make_card(
        "<t>", [("a&b", "<script>"), ("none", None), ("empty", ""), ("no", ()), ("zero", 0), ("two", (1, 2))]
    )
    assert card == (
        "<table><caption>&lt;t&gt;</caption><tr><th>a&amp;b</th><td>&lt;script&gt;</td></tr>"
        "<tr><th>zero</th><td>0</td></tr><tr><th>two</th><td>1<br>2</td></tr></table>"
    )


def test_moments_are_in_utc_to_the_second() -> None:
    assert say_time(1_700_000_000_999) == "2023-11-14 22:13:20+00:00"
    assert say_time(None) == ""


def test_a_holder_is_described_in_words() -> None:
    owner = Owner("id", host="etl-7", pid=12, application="nightly <etl>")
    holder = Holder("/t/.hoodie/lock", owner, since_ms=1_700_000_000_000, age_ms=61_000, token="7", expires_in_ms=-1)
    assert dict(holder.describe()) == {
        "key": "/t/.hoodie/lock",
        "owner": "id",
        "host": "etl-7",
        "process": "12",
        "application": "nightly <etl>",
        "since": "2023-11-14 22:13:20+00:00",
        "last sign of life": "0:01:01 ago",
        "others may take it": "now",
        "token": "7",
    }
    assert "nightly &lt;etl&gt;" in holder._repr_html_()


class Cell:
    """What a front end shows of one display, which IPython's `display` gives a handle of."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        self.shown.append(data)
        return SimpleNamespace(update=lambda data, *, raw: self.shown.append(data) if raw else None)


def start_ipython(monkeypatch: pytest.MonkeyPatch, shell: object) -> Cell:
    module, display, cell = ModuleType("IPython"), ModuleType("IPython.display"), Cell()
    module.get_ipython = lambda: shell  # type: ignore[attr-defined]
    display.display = cell.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return cell


def test_a_line_in_a_notebook_is_replaced_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = start_ipython(monkeypatch, SimpleNamespace(kernel=object()))
    line = open_notebook_line()
    assert line is not None
    line("upsert into /t<1>")
    line("")
    assert [data["text/plain"] for data in cell.shown] == ["", "upsert into /t<1>", ""]
    assert [data["text/html"] for data in cell.shown] == ["", "<pre>upsert into /t&lt;1&gt;</pre>", ""]


@pytest.mark.parametrize("shell", [None, SimpleNamespace(), SimpleNamespace(kernel=None)])
def test_no_line_where_no_kernel_runs(monkeypatch: pytest.MonkeyPatch, shell: object) -> None:
    cell = start_ipython(monkeypatch, shell)
    assert open_notebook_line() is None
    monkeypatch.delitem(sys.modules, "IPython")
    assert open_notebook_line() is None
    assert cell.shown == []
