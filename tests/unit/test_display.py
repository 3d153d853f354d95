"""What notebooks show of the values that users meet."""

from __future__ import annotations

from hudi_locks.display import make_card, say_time
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
