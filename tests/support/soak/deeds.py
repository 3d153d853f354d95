"""What a writer is to do, drawn from a text that the commit keeps: so the rows can be made again without the writer."""

from __future__ import annotations

import enum
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

__all__ = [
    "COLUMNS",
    "KEPT_UNDER",
    "LOADED",
    "REGIONS",
    "Deed",
    "Kind",
    "Row",
    "State",
    "draw_deed",
    "replay",
]

COLUMNS: Final = ("id", "region", "ts", "value", "label")
KEPT_UNDER: Final = "_soak"
"""Extra metadata of a commit that names its deed; a JVM writer keeps every option that begins with `_` there."""
LOADED: Final = "load"
REGIONS: Final = tuple(f"r{number}" for number in range(6))
_KEYS: Final = 30
"""Of each region, there from the start."""
_MOST_ROWS: Final = 6
_PRIME: Final = 1_000_000_007
_LOOK_BACK: Final = 60
Row = tuple[str, str, int, float, str]
State = dict[tuple[str, str], Row]
"""Rows by region and key."""


class Kind(enum.Enum):
    """The operations."""

    UPSERT = "upsert"
    RAISE = "raise"
    """An upsert whose values are computed from those in the table: whoever builds on an old one is found out."""
    INSERT = "insert"
    DELETE = "delete"
    OVERWRITE = "insert_overwrite"


_WEIGHTS: Final[Mapping[Kind, int]] = {
    Kind.UPSERT: 35,
    Kind.RAISE: 35,
    Kind.INSERT: 15,
    Kind.DELETE: 10,
    Kind.OVERWRITE: 5,
}
_SHARED_WITH_JVM: Final = (Kind.UPSERT, Kind.RAISE, Kind.INSERT, Kind.DELETE)


@dataclass(frozen=True)
class Deed:
    """One write.

    Attributes:
        name: `<seed>:<writer>:<number>`, from which all else follows.
        kind: What to do.
        rows: With what; of a DELETE keys and regions count, of a RAISE each value is what is mixed in.
    """

    name: str
    kind: Kind
    rows: tuple[Row, ...]

    @property
    def regions(self) -> tuple[str, ...]:
        """Regions of the rows."""
        return tuple(sorted({row[1] for row in self.rows}))

    def against(self, present: Mapping[tuple[str, str], Row]) -> Deed:
        """The same with the values that a RAISE has, given the rows that are in the table."""
        if self.kind is not Kind.RAISE:
            return self
        return replace(self, rows=tuple(_raise(row, present.get((row[1], row[0]))) for row in self.rows))


def _raise(row: Row, before: Row | None) -> Row:
    if before is None:
        return row
    return (row[0], row[1], before[2], float((before[3] * 31 + row[3]) % _PRIME), row[4])


def draw_deed(name: str, *, beside_jvm: bool = False) -> Deed:
    """The deed of this name.

    Args:
        name: `<seed>:<writer>:<number>`; the number `load` for the rows that are there from the start, a writer that
            begins with `jvm` for one that is given its rows before it looks at the table.
        beside_jvm: Whether JVM writers share the table, which do not look whether others bring the same new keys: then
            only keys that are there are changed, and only a writer's own are deleted.
    """
    rng = random.Random(name)
    if name.endswith(f":{LOADED}"):
        return Deed(name, Kind.INSERT, tuple(_row(rng, key, region, name) for region, key in _pool()))
    kinds = [kind for kind in (_SHARED_WITH_JVM if beside_jvm else Kind) if kind is not Kind.RAISE or not _is_jvm(name)]
    kind = rng.choices(kinds, [_WEIGHTS[kind] for kind in kinds])[0]
    keys = {Kind.INSERT: _draw_new, Kind.DELETE: _draw_doomed}.get(kind, _draw_present)(rng, name, beside_jvm)
    return Deed(name, kind, tuple(_row(rng, key, region, name) for region, key in keys))


def _is_jvm(name: str) -> bool:
    """Whether this deed is one of a JVM writer."""
    return name.split(":")[1].startswith("jvm")


def _row(rng: random.Random, key: str, region: str, name: str) -> Row:
    return (key, region, rng.randint(1, 3), float(rng.randrange(1, _PRIME)), name)


def _pool() -> list[tuple[str, str]]:
    return [(region, f"{region}-{number:02}") for region in REGIONS for number in range(_KEYS)]


def _draw_regions(rng: random.Random) -> list[str]:
    return rng.sample(REGIONS, rng.choice((1, 1, 1, 2)))


def _draw_new(rng: random.Random, name: str, _: bool) -> list[tuple[str, str]]:
    regions = _draw_regions(rng)
    return [(rng.choice(regions), f"{name}/{number}") for number in range(rng.randint(1, _MOST_ROWS))]


def _draw_present(rng: random.Random, name: str, beside_jvm: bool) -> list[tuple[str, str]]:
    regions = _draw_regions(rng)
    keys = {(rng.choice(regions), f"{rng.randrange(_KEYS):02}") for _ in range(rng.randint(1, _MOST_ROWS))}
    return [(region, f"{region}-{number}") for region, number in sorted(keys)]


def _draw_doomed(rng: random.Random, name: str, beside_jvm: bool) -> list[tuple[str, str]]:
    if not beside_jvm:
        return [*_draw_present(rng, name, beside_jvm), *_keys_of_another(rng, name)]
    seed, writer, number = name.split(":")
    earlier = (draw_deed(f"{seed}:{writer}:{before}", beside_jvm=True) for before in range(int(number) - 1, -1, -1))
    inserted = next((deed.rows for deed in earlier if deed.kind is Kind.INSERT), ())
    return [(row[1], row[0]) for row in inserted] or [(REGIONS[0], "nobody")]


def _keys_of_another(rng: random.Random, name: str) -> list[tuple[str, str]]:
    """Keys that another deed may have inserted, or inserts just now."""
    seed, _, number = name.split(":")
    other = f"{seed}:{rng.randint(1, 12)}:{rng.randrange(min(int(number), _LOOK_BACK) + 2)}"
    rng_of_other = random.Random(other)
    if rng_of_other.choices(tuple(Kind), [_WEIGHTS[kind] for kind in Kind])[0] is not Kind.INSERT:
        return []
    return _draw_new(rng_of_other, other, False)[:2]


def replay(deeds: Iterable[Deed]) -> list[Row]:
    """The rows of a table on which these were done one after the other, in order of their text."""
    state: State = {}
    for deed in deeds:
        _apply(state, deed.against(state))
    return sorted(state.values(), key=repr)


def _apply(state: State, deed: Deed) -> None:
    if deed.kind is Kind.OVERWRITE:
        for place in [place for place in state if place[0] in deed.regions]:
            del state[place]
    for row in deed.rows:
        place = (row[1], row[0])
        if deed.kind is Kind.DELETE:
            state.pop(place, None)
        elif place not in state or row[2] >= state[place][2]:
            state[place] = row
