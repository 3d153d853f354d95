"""A table of many types of columns that JVM Hudi and this package change in turns, and filters that must find its rows.

What is done is drawn from a seed. After each step every reader shows the same rows, and each of twenty filters, at the
bounds of values that are there, finds the rows that meet it.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Final, NamedTuple

import pyarrow as pa
from metadata_turns import WITH_IT, name_options, open_here
from other_readers import JvmError

from hudi_locks.spark import HoodieTable
from hudi_locks.verification import verify_table

__all__ = ["FilteredTurns"]

Row = dict[str, Any]
_DEADLINE_S: Final = 600
_AT_ONCE: Final = 3
"""So many reads of the JVM at once: each opens all files of the metadata table with a buffer of 16 MB."""
_LET_GO: Final = "Block rdd_"
_FIRST: Final = datetime(2024, 1, 1, tzinfo=timezone.utc)
_A_DAY: Final = date(2024, 1, 1)
"""For JVM 1.0.2, which cannot log a date that is null: it fails on its own statistics of columns."""
_TEXTS: Final = ("", "a", "Ω", "ü" * 40, "zz", "日本")


class _Type(NamedTuple):
    """A type of column.

    Attributes:
        name: In Spark's SQL.
        draw: Some value.
        write: A value as Spark's SQL has it.
    """

    name: str
    draw: Callable[[random.Random], Any]
    write: Callable[[Any], str]


_COLUMNS: Final[Mapping[str, _Type]] = {
    "n": _Type("int", lambda rng: rng.randint(-50, 50), str),
    "big": _Type("bigint", lambda rng: rng.choice((-(2**60), -1, 0, 7, 2**60)), lambda value: f"{value}L"),
    "half": _Type("float", lambda rng: rng.randint(-40, 40) / 4, lambda value: f"cast({value} as float)"),
    "twice": _Type("double", lambda rng: rng.choice((-1e300, -0.5, 0.0, 1e-9, 3.25)), lambda value: f"{value!r}D"),
    "text": _Type("string", lambda rng: rng.choice(_TEXTS), lambda value: f"'{value}'"),
    "day": _Type(
        "date", lambda rng: date(1969, 12, 30) + timedelta(rng.randint(0, 40)), lambda value: f"date'{value}'"
    ),
    "at": _Type(
        "timestamp",
        lambda rng: _FIRST + timedelta(microseconds=rng.randint(-3, 3), days=rng.randint(-9, 9)),
        lambda value: f"timestamp'{value.replace(tzinfo=None).isoformat(sep=' ')}Z'",
    ),
    "price": _Type(
        "decimal(12,2)",
        lambda rng: Decimal(rng.randint(-500, 500)) / 100,
        lambda value: f"cast('{value}' as decimal(12,2))",
    ),
    "flag": _Type("boolean", lambda rng: rng.random() < 0.5, lambda value: str(value).lower()),
}
_SHOWN: Final = ("id", "region", "ts", *(f"cast({name} as string)" for name in ("n", "big", "text", "day", "price")))
_COMPARED: Final = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class _Filter(NamedTuple):
    where: str
    admits: Callable[[Row], bool]


@dataclass
class FilteredTurns:
    """The table, and the rows that must be there.

    Attributes:
        jvm: Of the other writer.
        spark: Of ours.
        path: Of the table, which the JVM makes.
        kind: One of `metadata_turns.KINDS`, or `BY_KEY`.
        partitioned_by: `region`, or "".
        seed: Of all that is drawn.
        is_clustered: Whether it was since the savepoint. A restore by the JVM would leave that clustering pending, its
            own too, and then JVM writers refuse to change the file groups of its plan.
    """

    jvm: Any
    spark: Any
    path: str
    kind: str
    partitioned_by: str
    seed: int
    rows: dict[str, Row] = field(default_factory=dict)
    saved: tuple[str, dict[str, Row]] | None = None
    done: list[str] = field(default_factory=list)
    is_clustered: bool = False

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)

    def play(self, steps: int) -> None:
        """Let both write in turns, and serve the table; see the module."""
        self._write_by_jvm(self._draw_rows(6))
        for _ in range(steps):
            step = self._rng.choice(self._list_steps())
            self.done.append(step.__name__.strip("_"))
            step()
            self.check()

    def _list_steps(self) -> Sequence[Callable[[], None]]:
        often = [self._upsert_here, self._upsert_there] * 4
        once = [self._delete_here, self._delete_there, self._serve_here, self._clean_here, self._clean_there]
        restores = (self._restore_here, self._restore_here if self.is_clustered else self._restore_there)
        saving = self._save if self.saved is None else self._rng.choice(restores)
        return [*often, *once, self._fail_here, saving]

    def check(self) -> None:
        """By all readers, and all filters."""
        at = f"seed {self.seed}: {' '.join(self.done)}"
        everything = sorted(self.rows)
        ours = self._open()
        assert self._read_here(ours, None) == everything, at
        asked = [self._ask(options) for options in (WITH_IT, {"hoodie.metadata.enable": "false"})]
        shown = [sorted(tuple(row) for row in future.result(_DEADLINE_S)) for future in asked]
        assert shown[0] == shown[1], at
        assert [row[0] for row in shown[0]] == everything, at
        assert [row[2] for row in shown[0]] == [self.rows[key]["ts"] for key in everything], at
        if self.kind == "COPY_ON_WRITE":
            assert _read_by_rust(self.path) == everything, at
        filters = self._make_filters()
        for start in range(0, len(filters), _AT_ONCE):
            self._check_filters(ours, filters[start : start + _AT_ONCE], at)
        assert verify_table(ours.table.storage).damages == (), at

    def _check_filters(self, ours: HoodieTable, filters: Sequence[_Filter], at: str) -> None:
        asked = [self._ask(WITH_IT, one.where) for one in filters]
        for one, future in zip(filters, asked, strict=True):
            wanted = sorted(key for key, row in self.rows.items() if one.admits(row))
            assert self._await(future, one.where) == wanted, f"{at}: the JVM, {one.where}"
            assert self._read_here(ours, one.where) == wanted, f"{at}: ours, {one.where}"

    def _await(self, asked: Future[Any], where: str) -> list[str]:
        """The keys that it found. A read of JVM Hudi may let go of what it persisted while another one reads that."""
        try:
            found = asked.result(_DEADLINE_S)
        except JvmError as error:
            if _LET_GO not in str(error):
                raise
            found = self._ask(WITH_IT, where).result(_DEADLINE_S)
        return sorted(row[0] for row in found)

    def _make_filters(self) -> list[_Filter]:
        """Two at a bound of each column, nulls, and partitions."""
        filters = []
        for name, kind in _COLUMNS.items():
            known = [row[name] for row in self.rows.values() if row[name] is not None] or [kind.draw(self._rng)]
            bound = self._rng.choice((min(known), max(known), self._rng.choice(known)))
            filters += [
                _Filter(f"{name} {sign} {kind.write(bound)}", _compare(name, sign, bound))
                for sign in self._rng.sample([*_COMPARED], 2)
            ]
        name = self._rng.choice([*_COLUMNS])
        filters.append(_Filter(f"{name} is null", lambda row: row[name] is None))
        both = _compare("n", ">=", 0)
        filters.append(_Filter("region = 'eu' and n >= 0", lambda row: row["region"] == "eu" and both(row)))
        return filters

    def _draw_rows(self, count: int) -> list[Row]:
        """Some of keys that are there; each key stays in its region."""
        ts = max((row["ts"] for row in self.rows.values()), default=0) + 1
        return [self._draw_row(f"k{self._rng.randint(0, 30):02}", ts) for _ in range(count)]

    def _draw_row(self, key: str, ts: int) -> Row:
        region = ("eu", "us", "new")[int(key[1:]) % 3]
        values = {name: None if self._rng.random() < 0.15 else kind.draw(self._rng) for name, kind in _COLUMNS.items()}
        return {"id": key, "region": region, "ts": ts, **values}

    def _upsert_here(self) -> None:
        rows = self._draw_rows(4)
        self._open().upsert(self.spark.sql(_query(rows)))
        self._merge(rows)

    def _upsert_there(self) -> None:
        self._write_by_jvm(self._draw_rows(4))

    def _delete_here(self) -> None:
        rows = self._draw_gone()
        self._open().delete(self.spark.sql(_query(rows)))
        self._forget(rows)

    def _delete_there(self) -> None:
        rows = self._draw_gone()
        self._send(rows, "delete")
        self._forget(rows)

    def _draw_gone(self) -> list[Row]:
        ts = max(row["ts"] for row in self.rows.values()) + 1
        keys = self._rng.sample(sorted(self.rows), max(1, min(2, len(self.rows) - 1)))
        return [{**self.rows[key], "ts": ts} for key in keys]

    def _serve_here(self) -> None:
        table = self._open()
        if self.kind.startswith("MERGE_ON_READ"):
            table.compaction.run()
        else:
            self.is_clustered |= table.clustering.run(sort_by=["n"]) is not None

    def _clean_here(self) -> None:
        self._open(hoodie__clean__commits__retained="1").services.clean()

    def _clean_there(self) -> None:
        self._write_by_jvm(self._draw_rows(1), hoodie__clean__automatic="true", hoodie__clean__commits__retained="1")

    def _fail_here(self) -> None:
        bad = [{**row, "id": ""} for row in self._draw_rows(1)]
        try:
            self._open().upsert(self.spark.sql(_query([*self._draw_rows(2), *bad])))
        except Exception as error:
            if "record key" not in str(error):
                raise
        else:
            raise AssertionError("a row without a key was written")

    def _save(self) -> None:
        self.saved = self._open().services.savepoints.create().instant, dict(self.rows)
        self.is_clustered = False

    def _restore_here(self) -> None:
        instant, self.rows = self._take_saved()
        self._open().services.restore(instant)
        self._open().services.savepoints.delete(instant)

    def _restore_there(self) -> None:
        instant, self.rows = self._take_saved()
        self.jvm.sql(f"call rollback_to_savepoint(path => '{self.path}', instant_time => '{instant}')")
        self._open().services.savepoints.delete(instant)

    def _take_saved(self) -> tuple[str, dict[str, Row]]:
        assert self.saved is not None
        found, self.saved = self.saved, None
        return found

    def _write_by_jvm(self, rows: list[Row], **changes: str) -> None:
        if self.jvm.version == "1.0.2" and self.kind != "COPY_ON_WRITE":
            rows = [{**row, "day": row["day"] or _A_DAY} for row in rows]
        self._send(rows, "upsert", **changes)
        self._merge(rows)

    def _send(self, rows: list[Row], operation: str, **changes: str) -> None:
        options = name_options(self, operation, changes)
        self.jvm.ask("write_query", path=self.path, query=_query(rows), options=options).result(_DEADLINE_S)

    def _open(self, **options: str) -> HoodieTable:
        return open_here(self, options)

    def _ask(self, options: Mapping[str, str], where: str = "true") -> Any:
        columns = ["id"] if where != "true" else list(_SHOWN)
        return self.jvm.ask("read", path=self.path, columns=columns, options=dict(options), where=where)

    def _read_here(self, table: HoodieTable, where: str | None) -> list[str]:
        return sorted(row.id for row in table.read(where=where, columns="id", meta_columns=False).collect())

    def _merge(self, rows: Sequence[Row]) -> None:
        """Of two rows of one key and one ordering value Hudi keeps either: the last one here is the only one sent."""
        self.rows |= {row["id"]: row for row in rows}

    def _forget(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self.rows.pop(row["id"], None)


def _read_by_rust(path: str) -> list[str]:
    from hudi import HudiTableBuilder

    batches = HudiTableBuilder.from_base_uri(path).build().read()
    return sorted(key for batch in batches for key in pa.record_batch(batch).column("id").to_pylist())


def _compare(name: str, sign: str, bound: Any) -> Callable[[Row], bool]:
    return lambda row: row[name] is not None and _COMPARED[sign](row[name], bound)


def _query(rows: Sequence[Row]) -> str:
    """One row for each key, the last."""
    last = {row["id"]: row for row in rows}
    return " union all ".join(f"select {_select(row)}" for row in last.values())


def _select(row: Row) -> str:
    shown = [f"'{row['id']}' id", f"'{row['region']}' region", f"{row['ts']}L ts"]
    for name, kind in _COLUMNS.items():
        value = row[name]
        shown.append(f"{f'cast(null as {kind.name})' if value is None else kind.write(value)} {name}")
    return ", ".join(shown)
