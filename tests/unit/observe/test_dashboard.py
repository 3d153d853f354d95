"""The dashboard asks for nothing that no writer tells."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hudi_locks.format import CommitMetadata
from hudi_locks.observe import metrics

BOARD = json.loads(Path(__file__).parents[3].joinpath("docs", "dashboards", "hudi-writers.json").read_text())
TIMERS = ("_sum", "_count", "_longest")
NAME = re.compile(r"\$\{table\}_(\w+)")
ACTIONS = ("commit", "deltacommit", "replacecommit")


def list_queries() -> list[str]:
    return [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]


def list_told() -> set[str]:
    """Every name that a writer may tell, as Prometheus spells it and without the table's."""
    names = {value for name, value in vars(metrics).items() if name.isupper() and isinstance(value, str)}
    totals = {f"{action}.{name}" for action in ACTIONS for name in (*CommitMetadata().count_written(), "duration")}
    spelt = {name.replace(".", "_") for name in names | totals}
    return spelt | {name + end for name in spelt for end in TIMERS}


def test_every_metric_of_a_query_is_told_by_writers() -> None:
    told, asked = list_told(), set[str]()
    for query in list_queries():
        if "__name__" in query:
            pattern = re.compile(re.search(r"\$\{table\}_([^\"]+)", query)[1])  # type: ignore[index]
            assert any(pattern.fullmatch(name) for name in told), query
        else:
            asked |= set(NAME.findall(query))
    assert len(asked) > 10
    assert asked <= told


def test_panels_have_places_of_their_own_and_say_what_they_show() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in BOARD["panels"]]
    assert len(set(places)) == len(places) == 8
    assert all(panel["description"] and panel["title"] for panel in BOARD["panels"])
    sources: list[Any] = [target["datasource"]["uid"] for panel in BOARD["panels"] for target in panel["targets"]]
    assert set(sources) == {"${source}"}
