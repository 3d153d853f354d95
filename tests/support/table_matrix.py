"""What becomes of each kind of table that JVM Hudi makes when this package joins it: its rows, read and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from matrix_page import EQUAL, Outcome, describe_failure, find_word
from other_readers import COLUMNS, DEADLINE_S, Jvm, JvmError
from table_kinds import (
    KEY,
    OPERATION,
    TIME_TYPE,
    Rows,
    collect,
    join_dates,
    make_rows,
    make_table,
    name_options,
    read_rust,
    write_ours,
    write_theirs,
)

from hudi_locks.spark import HoodieTable
from hudi_locks.verification import verify_table

__all__ = ["join_table"]

_FILTERS: Final[Mapping[str, Callable[[tuple[Any, ...]], bool]]] = {
    "value > 10": lambda row: row[3] > 10,
    "ts = 3 and label = 'a'": lambda row: row[2] == 3 and row[4] == "a",
}
"""By which readers pass over files."""


def join_table(spark: Any, jvm: Jvm, path: str, name: str, *, judge: Jvm | None = None) -> Outcome:
    """Let JVM Hudi make and update a table of that kind, and then join it; `judge` says what rows it has."""
    try:
        options = make_table(jvm, path, name_options(jvm, name))
        expected = join_dates((judge or jvm).read_path(path))
    except JvmError as error:
        told = describe_failure(error)
        return Outcome(told, told)
    return Outcome(
        find_word(lambda: _read(spark, path, expected)),
        find_word(lambda: _write(spark, jvm, path, options, judge=judge)),
    )


def _read(spark: Any, path: str, expected: Rows) -> str:
    return EQUAL if collect(HoodieTable.load(spark, path)) == expected else "wrong: other rows than the JVM reads"


def _write(spark: Any, jvm: Jvm, path: str, options: Mapping[str, str], *, judge: Jvm | None) -> str:
    """Write as the owner's job does, with its options; then all readers look, and the JVM goes on."""
    readers = [judge or jvm, *([] if TIME_TYPE in options else [jvm])]
    replaces, is_keyless = options[OPERATION] not in ("upsert", "insert"), KEY not in options
    before, by_rust = HoodieTable.load(spark, path).read().count(), read_rust(path)
    is_judged_by_rust = by_rust == collect(HoodieTable.load(spark, path))
    write_ours(spark, path, make_rows(range(12, 17), 3), options)
    rows = collect(HoodieTable.load(spark, path))
    if sum(row[2] == 3 for row in rows) != len(range(12, 17)) or not (
        replaces or len(rows) == before + (5 if is_keyless else 3)
    ):
        return "wrong: other rows than were written"
    for told in ("true", "false"):
        if any(join_dates(one.read_path(path, {"hoodie.metadata.enable": told})) != rows for one in readers):
            return f"wrong: JVM Hudi reads other rows (hoodie.metadata.enable={told})"
    if is_judged_by_rust and read_rust(path) != rows:
        return "wrong: hudi-rs reads other rows, and read those of JVM Hudi"
    if strange := _find_strange_filter(spark, readers, path, rows):
        return f"wrong: other rows where {strange}"
    if damages := verify_table(HoodieTable.load(spark, path).table.storage).damages:
        return f"wrong: {damages[0]}"
    write_theirs(jvm, path, make_rows(range(15, 18), 4), options)
    after = collect(HoodieTable.load(spark, path))
    if any(join_dates(one.read_path(path)) != after for one in readers) or not (
        replaces or len(after) == len(rows) + (3 if is_keyless else 1)
    ):
        return "wrong: rows after the next write of JVM Hudi"
    return EQUAL


def _find_strange_filter(spark: Any, readers: list[Jvm], path: str, rows: Rows) -> str:
    """A condition by which ours, or a JVM that goes by the metadata table, finds other rows; "" for none."""
    for where, holds in _FILTERS.items():
        wanted = [row for row in rows if holds(row)]
        table = HoodieTable.load(spark, path)
        ours = join_dates([tuple(row) for row in table.read(where=where).select(*COLUMNS).collect()])
        options = {"hoodie.metadata.enable": "true"}
        asked = {"path": path, "options": options, "columns": list(COLUMNS), "where": where}
        found = [one.ask("read", **asked).result(DEADLINE_S) for one in readers]
        if any(join_dates([tuple(row) for row in told]) != wanted for told in (ours, *found)):
            return where
    return ""
