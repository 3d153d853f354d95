"""Real events for streams: aircraft that leave an airport, mostly in the order of departure."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow.compute as pc

from hudi_locks.cli.demo.flights import read_flights

__all__ = ["SCHEMA", "Row", "draw_events", "fold_events"]

Row = tuple[str, str, int, float | None, str]
"""Tail number, airport, place in the order of departure, minutes of delay, and flight."""
SCHEMA: Final = "id string, region string, ts long, value double, label string"
_DISORDER: Final = 400
"""By how many events one may come too late."""


def draw_events(count: int, seed: int) -> list[Row]:
    """The first flights of the year as they come in: most of them in the order of departure, some late."""
    rng = random.Random(f"{seed} flights")
    rows = list(_list_departures(count))
    return sorted(rows, key=lambda row: row[2] + (rng.random() < 0.2) * rng.randint(1, _DISORDER))


def fold_events(rows: Iterable[Row]) -> list[Row]:
    """The last of each aircraft and airport: what a table with all of them must show."""
    newest: dict[tuple[str, str], Row] = {}
    for row in rows:
        known = newest.get(row[:2])
        if known is None or row[2] > known[2]:
            newest[row[:2]] = row
    return sorted(newest.values())


def _list_departures(count: int) -> Iterator[Row]:
    flights = read_flights()
    flights = flights.filter(pc.is_valid(flights["tailnum"]))
    order = pc.sort_indices(flights, [(name, "ascending") for name in ("time_hour", "dep_time", "carrier", "flight")])
    names = ["tailnum", "origin", "dep_delay", "carrier", "flight", "dest"]
    found: list[dict[str, Any]] = flights.take(order[:count]).select(names).to_pylist()
    for place, row in enumerate(found):
        delay = None if row["dep_delay"] is None else float(row["dep_delay"])
        yield row["tailnum"], row["origin"], place, delay, f"{row['carrier']} {row['flight']} to {row['dest']}"
