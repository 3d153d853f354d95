"""Columns of every type that a Hudi table may have, as Spark makes them and as the Avro of a streamer declares them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, Final

__all__ = ["FROM_AVRO", "FROM_SPARK", "avro_row", "avro_schema_of", "spark_query"]

_MOMENT: Final = "2024-03-10 02:30:00.123456"
FROM_SPARK: Final = {
    "flag": "true", "tiny": "cast(7 as byte)", "small": "cast(-8 as short)", "number": "3", "big": "cast(-9 as bigint)",
    "single": "cast(0.5 as float)", "twice": "1e-300D", "price": "cast('12345678.90' as decimal(10,2))",
    "wide": "cast('-12345678901234567890.123456789012345678' as decimal(38,18))",
    "day": "date'1582-10-15'", "at": f"timestamp'{_MOMENT}'", "raw": "X'00ff'", "text": "'ünï 日本 😀'",
    "pairs": "map('a', 1L, 'b', null)", "none": "cast(map() as map<string,bigint>)",
    "deep": "map('k', named_struct('x', 1, 'y', array('q')))", "far": "timestamp_micros(300000000000000000)",
    "maps": f"array(map('t', timestamp'{_MOMENT}'))", "lists": "map('a', array(map('b', date'2020-01-01')))",
    "structs": "array(named_struct('k', 'a', 'v', cast(1.5 as decimal(5,1))), named_struct('k', null, 'v', null))",
    "nested": "named_struct('x', 1, 'y', named_struct('m', map('b', X'0102'), 'd', cast(1.23 as decimal(3,2))))",
    "rows": "array(array(1), array())",
}  # fmt: skip
"""An expression of Spark's SQL for each column."""


def spark_query(key: str, ts: int, *, with_values: bool = True, without: Collection[str] = ()) -> str:
    """A row with `id`, `region` and `ts`, and the columns of FROM_SPARK, or null in place of each."""
    wanted = {name: text for name, text in FROM_SPARK.items() if name not in without}
    shown = {name: text if with_values else f"if(true, null, {text})" for name, text in wanted.items()}
    return f"select '{key}' id, 'r' region, {ts}L ts, " + ", ".join(f"{text} {name}" for name, text in shown.items())


def _record(name: str, **fields: Any) -> Any:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}


def _logical(kind: str, logical: str, **more: Any) -> Any:
    return {"type": kind, "logicalType": logical, **more}


_COLUMNS: Final[dict[str, tuple[Any, Any]]] = {
    "millis": (_logical("long", "timestamp-millis"), 1710037800123),
    "micros": (_logical("long", "timestamp-micros"), 1710037800123456),
    "local": (_logical("long", "local-timestamp-micros"), 1710037800123456),
    "local_millis": (_logical("long", "local-timestamp-millis"), 1710037800123),
    "far": (_logical("long", "timestamp-micros"), 300000000000000000),
    "day": (_logical("int", "date"), 19000),
    "kind": ({"type": "enum", "name": "Kind", "symbols": ["A", "B"]}, "B"),
    "fixed": ({"type": "fixed", "name": "Three", "size": 3}, "\x00\xff\x07"),
    "price": (_logical("bytes", "decimal", precision=6, scale=2), "\x01\xff"),
    "uuid": (_logical("string", "uuid"), "d2719d62-5f2b-4c5b-8a5c-0d8ec1c1f7b5"),
    "inner": (_record("Inner", z="int"), {"z": 5}),
    "listed": ({"type": "array", "items": _record("Item", m=["null", {"type": "map", "values": "int"}])},
               [{"m": {"map": {"q": 3}}}]),
    "mapped": ({"type": "map", "values": _record("Value", t=_logical("long", "timestamp-millis"))},
               {"k": {"t": 1710037800123}}),
    "again": (["null", _record("Pair", a=_record("Deep", v="int", f="Three"), b="Deep")],
              {"T.Pair": {"a": {"v": 1, "f": "abc"}, "b": {"v": 2, "f": "def"}}}),
}  # fmt: skip
FROM_AVRO: Final = tuple(_COLUMNS)
"""Columns that a streamer writes, beside `id`, `region` and `ts`."""


def avro_schema_of(columns: Iterable[str]) -> str:
    """The schema of `id`, `region`, `ts` and these columns of FROM_AVRO."""
    record = _record("R", id="string", region="string", ts="long", **{name: _COLUMNS[name][0] for name in columns})
    return json.dumps(record | {"namespace": "T"})


def avro_row(key: str, ts: int, columns: Iterable[str]) -> str:
    """A row of them as Avro's JSON."""
    return json.dumps({"id": key, "region": "r", "ts": ts, **{name: _COLUMNS[name][1] for name in columns}})
