"""Merges the rows of a DataFrame into a table: updates, deletes and inserts in one commit. Runs on the driver."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from hudi_locks.config import Options, write_keys
from hudi_locks.errors import BadInput, ConfigError
from hudi_locks.spark.operation import WriteResult
from hudi_locks.spark.partitions import list_paths
from hudi_locks.spark.reading.readable import Readable
from hudi_locks.spark.reading.reader import Reader
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.placement import MOVED, RESERVED
from hudi_locks.spark.writing.rows import keep_persisted, quote_name, select_user_columns, to_spark
from hudi_locks.table import Table, list_partitions

__all__ = ["Derive", "MergeBuilder", "Mergeable"]

Derive: TypeAlias = Callable[[Snapshot], DataFrame]
"""The rows to write, from the table as an attempt finds it; those with MOVED take out what has their key."""
Condition: TypeAlias = "str | Column | None"
Values: TypeAlias = "Mapping[str, str | Column] | None"

_SOURCE: Final = "source"
_TARGET: Final = "target"
_MATCHED: Final = f"{RESERVED}matched"
_CLAUSE: Final = f"{RESERVED}clause"
_WIDER: Final = ("tinyint", "smallint", "int", "bigint", "float", "double")
"""Each fits into those after it, as Hudi widens columns."""


class _Action(enum.Enum):
    """What a clause does with a row."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True)
class _Clause:
    """One WHEN of a MERGE."""

    action: _Action
    condition: Condition = None
    values: Values = None

    def applies(self) -> Column:
        """Whether it is about a joined row; null for no."""
        is_there = F.col(f"{_TARGET}.{_MATCHED}").isNotNull()
        fits = ~is_there if self.action is _Action.INSERT else is_there
        return fits if self.condition is None else fits & _expression(self.condition)

    def value(self, name: str, source: Sequence[str]) -> Column:
        """What it makes of a column."""
        if self.values is not None and name in self.values:
            return _expression(self.values[name])
        takes_all = self.values is None and self.action is not _Action.DELETE
        if takes_all and name in source:
            return _column(_SOURCE, name)
        return F.lit(None) if self.action is _Action.INSERT else _column(_TARGET, name)


class Mergeable(Readable, ABC):
    """A table into which rows can be merged."""

    def merge(self, source: DataFrame, on: str | Sequence[str]) -> MergeBuilder:
        """Begin a MERGE (Hudi's MERGE INTO): say what becomes of rows by `when_…`, then `execute` it.

        Args:
            source: The rows; at most one for each value of `on`.
            on: Columns that both have, the record key among them. A row of the source matches those of the table that
                are equal in all of them; null is equal to nothing. With the partition columns among them other
                partitions are not read.

        Raises:
            BadInput: One side has no such column, or a record key column is missing among them.
            ConfigError: Writers of the table do not look for conflicts (NON_BLOCKING_CONCURRENCY_CONTROL).
        """
        columns = (on,) if isinstance(on, str) else tuple(on)
        _refuse_blind(self.options)
        _check_on(columns, source.columns, self.table)
        return MergeBuilder(self, select_user_columns(source), columns)

    @abstractmethod
    def _write_derived(self, derive: Derive) -> WriteResult:
        """Upsert what `derive` makes of the table, anew for each attempt."""


@dataclass(frozen=True)
class MergeBuilder:
    """A MERGE that is not executed yet. Lives on the driver.

    Conditions and values are SQL or Spark columns, in which `source.` and `target.` name the two sides. For each row
    the first clause holds that is about it; rows without one stay as they are, and are not inserted.

    Attributes:
        table: Into which rows are merged.
        source: The rows.
        on: Columns by which they match.
    """

    table: Mergeable
    source: DataFrame
    on: tuple[str, ...]
    _clauses: tuple[_Clause, ...] = ()

    def when_matched_update(self, condition: Condition = None, *, values: Values = None) -> MergeBuilder:
        """Change rows of the table that match.

        Where the table has an ordering column, a row whose new value there is smaller than the present one stays.

        Args:
            condition: Only if it is true.
            values: New values by column; others stay. If None, the source's for all columns that both have.
        """
        return self._add(_Clause(_Action.UPDATE, condition, values))

    def when_matched_delete(self, condition: Condition = None) -> MergeBuilder:
        """Take out rows of the table that match, whatever their ordering column says."""
        return self._add(_Clause(_Action.DELETE, condition))

    def when_not_matched_insert(self, condition: Condition = None, *, values: Values = None) -> MergeBuilder:
        """Insert rows of the source that match none.

        Args:
            condition: Only if it is true.
            values: By column; others are null. If None, the source's for all columns that both have.
        """
        return self._add(_Clause(_Action.INSERT, condition, values))

    def execute(self) -> WriteResult:
        """Do it in one commit.

        What each row becomes is found on the snapshot that the commit builds on. A writer that changes one of the file
        groups meanwhile, or brings one of the keys, is a conflict: then all is read and decided anew.

        Raises:
            BadInput: No clause is given, the source has several rows for one value of `on`, or an expression names no
                column or gives another type; nothing was written.
            WriteConflict: See `HoodieTable.upsert`, as for all others that it raises.
        """
        if not self._clauses:
            raise BadInput("a merge without a clause changes nothing: add when_matched_update(), or another when_…")
        with keep_persisted(self.source) as kept:
            _refuse_repeated(kept, self.on)
            asked = replace(self, source=kept)
            asked.derive(Snapshot.load(self.table.table))  # what is wrong is said before anything begins
            return self.table._write_derived(asked.derive)  # noqa: SLF001  # its other half

    def derive(self, snapshot: Snapshot) -> DataFrame:
        """The rows to upsert; those with MOVED are to be taken out."""
        fields = self._list_fields(snapshot)
        self._check_names([field.name for field in fields])
        with _saying_what():
            joined = self._join(snapshot).withColumn(_CLAUSE, self._choose_clause())
            return _Rows(joined.where(F.col(_CLAUSE).isNotNull()), self._clauses, self.source.columns).make(fields)

    def _add(self, clause: _Clause) -> MergeBuilder:
        return replace(self, _clauses=(*self._clauses, clause))

    def _list_fields(self, snapshot: Snapshot) -> list[T.StructField]:
        """The columns of the table; of one that nobody has written yet, those of the source."""
        known = snapshot.shown_schema
        return list(self.source.schema.fields if known is None else to_spark(known).fields)

    def _check_names(self, there: Sequence[str]) -> None:
        unknown = sorted({name for clause in self._clauses for name in clause.values or () if name not in there})
        if unknown:
            message = f"values are given for {', '.join(unknown)}, and the table has {', '.join(there)}"
            raise BadInput(message, columns=unknown, found=list(there))
        fixed = {*self.table.table.config.record_key_fields, *self.table.table.config.partition_fields}
        for clause in self._clauses:
            if clause.action is _Action.UPDATE:
                self._refuse_moving(sorted(fixed.intersection(self._list_changed(clause))))

    def _list_changed(self, clause: _Clause) -> set[str]:
        """The columns that an update may give other values."""
        return set(clause.values) if clause.values is not None else set(self.source.columns).difference(self.on)

    def _refuse_moving(self, columns: Sequence[str]) -> None:
        if columns:
            message = (
                f"an update would change {', '.join(columns)}, by which a row has its key or partition: put it among"
                " `on`, or give `values` without it; to move a row, delete it and insert another"
            )
            raise BadInput(message, columns=list(columns))

    def _join(self, snapshot: Snapshot) -> DataFrame:
        present = self._read(snapshot).withColumn(_MATCHED, F.lit(True)).alias(_TARGET)
        pairs = [_column(_SOURCE, name) == _column(_TARGET, name) for name in self.on]
        return self.source.alias(_SOURCE).join(present, pairs, "left")

    def _read(self, snapshot: Snapshot) -> DataFrame:
        if snapshot.shown_schema is None:
            return self.source.limit(0)
        return Reader(self.table.spark, self.table.table, False, partitions=self._choose_partitions(snapshot)).at(
            snapshot
        )

    def _choose_partitions(self, snapshot: Snapshot) -> Sequence[str] | None:
        """Those that rows of the source may match; None for all."""
        table, known = self.table.table, snapshot.shown_schema
        fields = table.config.partition_fields
        if known is None or not fields or not set(fields) <= set(self.on):
            return None
        stored, given = ({field.name: field.dataType for field in one} for one in (to_spark(known), self.source.schema))
        if any(stored[name] != given[name] for name in fields):
            return None  # equal values of two types may have different folders
        return sorted(
            set(list_paths(table, self.table.options, self.source)).intersection(list_partitions(table.storage))
        )

    def _choose_clause(self) -> Column:
        """The number of the first clause that is about a row; null for none."""
        chosen = F.lit(None).cast("int")
        for number in reversed(range(len(self._clauses))):
            chosen = F.when(self._clauses[number].applies(), F.lit(number)).otherwise(chosen)
        return chosen


@dataclass(frozen=True)
class _Rows:
    """Joined rows of which each has a clause.

    Attributes:
        joined: The rows.
        clauses: By number.
        source: Columns of the source.
    """

    joined: DataFrame
    clauses: Sequence[_Clause]
    source: Sequence[str]

    def make(self, fields: Sequence[T.StructField]) -> DataFrame:
        """What the clauses make of them."""
        values = [[clause.value(field.name, self.source) for clause in self.clauses] for field in fields]
        kinds = iter(self.joined.select(*(value for one in values for value in one)).schema.fields)
        pairs = zip(fields, values, strict=True)
        made = [_choose(field, [_fit(value, next(kinds).dataType, field) for value in one]) for field, one in pairs]
        gone = [number for number, clause in enumerate(self.clauses) if clause.action is _Action.DELETE]
        marks = [F.col(_CLAUSE).isin(gone).alias(MOVED)] if gone else []
        return self.joined.select(*made, *marks)


def _choose(field: T.StructField, values: Sequence[Column]) -> Column:
    """The value of a column that the clause of a row gives it."""
    chosen = F.lit(None).cast(field.dataType)
    for number, value in enumerate(values):
        chosen = F.when(F.col(_CLAUSE) == number, value).otherwise(chosen)
    return chosen.alias(field.name)


def _fit(value: Column, kind: T.DataType, field: T.StructField) -> Column:
    """A value of type `kind` as the column has it, if nothing can be lost by that."""
    given, wanted = kind.simpleString(), field.dataType.simpleString()
    if given == wanted:
        return value
    if not _fits(kind, field.dataType):
        message = f"column {field.name} is {wanted}, and the merge gives it {given}; cast it"
        raise BadInput(message, column=field.name, type=wanted, found=given)
    return value.cast(field.dataType)


def _fits(given: T.DataType, wanted: T.DataType) -> bool:
    names = given.simpleString(), wanted.simpleString()
    if isinstance(given, T.NullType):
        return True
    if isinstance(given, T.DecimalType) and isinstance(wanted, T.DecimalType):
        return bool(given.scale <= wanted.scale and given.precision - given.scale <= wanted.precision - wanted.scale)
    return all(name in _WIDER for name in names) and _WIDER.index(names[0]) < _WIDER.index(names[1])


def _expression(given: str | Column) -> Column:
    return F.expr(given) if isinstance(given, str) else given


def _column(side: str, name: str) -> Column:
    return F.col(f"{side}.{quote_name(name)}")


@contextmanager
def _saying_what() -> Iterator[None]:
    """What Spark says of an expression that names no column, or cannot be read, in one sentence."""
    try:
        yield
    except (AnalysisException, ParseException) as error:
        said = str(error).strip().splitlines()[0]
        message = f"the merge cannot be planned: {said} Columns are named source.… and target.…"
        raise BadInput(message, reason=said) from error


def _refuse_blind(options: Options) -> None:
    """Where nobody looks for conflicts, what was read may have changed before it is written."""
    key, mode = write_keys.CONCURRENCY_MODE, options.get_value(write_keys.CONCURRENCY_MODE).upper()
    if mode == write_keys.NON_BLOCKING:
        message = (
            f"a merge writes what it made of rows that it read, and with {key.name}={mode} nobody sees that another"
            f" writer changed them meanwhile: merge with {key.name}={write_keys.OPTIMISTIC}, or upsert whole rows"
        )
        raise ConfigError(message, key=key.name, value=mode)


def _check_on(on: Sequence[str], source: Sequence[str], table: Table) -> None:
    lacking = [name for name in on if name not in source]
    if lacking or not on:
        message = f"the source has no column {', '.join(lacking)} to match by; it has {', '.join(source)}"
        raise BadInput(message if on else "a merge matches by columns: name them in `on`", columns=lacking)
    keys = table.config.record_key_fields
    if not keys or not set(keys) <= set(on):
        named = ", ".join(keys) or "none, each row has a key of its own"
        message = f"a merge matches by all record key columns of the table ({named}); it was given {', '.join(on)}"
        raise BadInput(message, columns=list(keys), found=list(on))


def _refuse_repeated(source: DataFrame, on: Sequence[str]) -> None:
    """Which of several rows for one row of the table comes last would be chance."""
    columns = [F.col(quote_name(name)) for name in on]
    twice = source.dropna(subset=list(on)).groupBy(*columns).count().where("count > 1").limit(1).collect()
    if twice:
        what = ", ".join(f"{name}={twice[0][name]!r}" for name in on)
        message = f"the source has {twice[0]['count']} rows for {what}: keep one of each before it is merged"
        raise BadInput(message, columns=list(on), count=twice[0]["count"])
