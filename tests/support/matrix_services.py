"""Every table service, ours and JVM Hudi's, on a table of each kind that both write: its rows stay as they are."""

from __future__ import annotations

import shutil
import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from matrix_page import EQUAL, describe_failure
from old_turns import let_time_pass
from other_readers import COLUMNS, DEADLINE_S, SCHEMA, Jvm, JvmError
from paused_writes import paused
from small_tables import KEEP, archive_now, archived
from table_kinds import (
    KEY,
    OPERATION,
    OURS,
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

from hudi_locks.errors import ConfigError, HudiLocksError, UnsupportedTable
from hudi_locks.format import WRITE_ACTIONS
from hudi_locks.spark import HoodieTable, Operation
from hudi_locks.transaction import StopPoint
from hudi_locks.verification import verify_table

__all__ = ["serve_table"]

_BY_HAND: Final = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.compact.max.delta.commits": "4",
}
_SORTED: Final = "hoodie.clustering.plan.strategy.sort.columns"
_RINGS: Final = "org.apache.hudi.client.clustering."
_SPLITS: Final = {
    "hoodie.clustering.plan.strategy.class": f"{_RINGS}plan.strategy.SparkConsistentBucketClusteringPlanStrategy",
    "hoodie.clustering.execution.strategy.class": (
        f"{_RINGS}run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
    ),
    "hoodie.bucket.index.max.num.buckets": "4",
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.bucket.index.split.threshold": "0.0000001",
}
_OFTEN: Final = {"hoodie.log.compaction.blocks.threshold": "2", "hoodie.compact.inline.max.delta.commits": "1"}
_KEPT_LOGS: Final = {"hoodie.metadata.compact.max.delta.commits": "100"}
"""JVM Hudi takes back no commit that is older than the last compaction of its metadata table, which it runs first."""
_NOT_INLINE: Final = {"hoodie.compact.inline": "false"}
"""What the owner lets each write do is left to the service here."""
_CHANGED: Final = range(9, 12)
_NOT_FOR_IT: Final = "UnsupportedOperationException"
"""By which JVM Hudi says that a service is not for such a table."""
_NO_CHANGES: Final[Mapping[str, str]] = MappingProxyType({})


class _OtherRows(Exception):
    """Somebody sees other rows than are there, or a service did nothing; its text says who."""


@dataclass
class _Served:
    """A table that both write, and the rows that must be there.

    Attributes:
        judge: Says what rows a table of an early release has.
        is_alone: Whether JVM Hudi writes what this package would.
        by_rust: Whether hudi-rs shows the rows.
        is_registered: Whether the session catalog of JVM Hudi has it.
    """

    spark: Any
    jvm: Jvm
    judge: Jvm | None
    path: str
    options: dict[str, str]
    is_alone: bool = False
    ts: int = 2
    rows: Rows = field(default_factory=list)
    by_rust: bool = False
    is_registered: bool = False

    @property
    def name(self) -> str:
        """In the session catalog."""
        return f"served_{zlib.crc32(self.path.encode()):08x}"

    @property
    def updates(self) -> bool:
        """Whether its writes look for keys, and so make logs and new versions of files."""
        return self.options[OPERATION] == "upsert" and KEY in self.options

    def choose_steps(self, until: _Step | None = None) -> list[_Step]:
        """Those for such a table, to one of them."""
        chosen = _STEPS if until is None else _STEPS[: _STEPS.index(until) + 1]
        has_logs = HoodieTable.load(self.spark, self.path).table.is_merge_on_read
        return [step for step in chosen if has_logs or not step.needs_logs]

    def open(self) -> HoodieTable:
        """For our services."""
        given = {**_BY_HAND, **self.options, **OURS, **KEEP, _SORTED: "ts", **_OFTEN}
        return HoodieTable.load(self.spark, self.path, options=given)

    def write(self, changes: Mapping[str, str] = _NO_CHANGES, *, by_jvm: bool = False) -> None:
        """Change rows, with these changes of the options; all readers look later."""
        self.ts += 1
        rows, options = make_rows(_CHANGED, self.ts), {**_BY_HAND, **self.options, **changes}
        if by_jvm or self.is_alone:
            write_theirs(self.jvm, self.path, rows, options)
        else:
            write_ours(self.spark, self.path, rows, options)
        self.rows = self._read_first()
        if sum(row[2] == self.ts for row in self.rows) != len(_CHANGED):
            raise _OtherRows("other rows than were written")

    def _read_first(self) -> Rows:
        if self.is_alone:
            return join_dates((self.judge or self.jvm).read_path(self.path))
        return collect(HoodieTable.load(self.spark, self.path))

    def call(self, procedure: str, **given: Any) -> list[list[Any]]:
        """A procedure of JVM Hudi, with the options of the owner and those of the services."""
        options = {**_BY_HAND, **self.options, **KEEP, **_OFTEN, **_KEPT_LOGS, _SORTED: "ts"}
        if not self.is_registered:
            self.jvm.sql(f"create table {self.name} using hudi location '{self.path}'")
            self.is_registered = True
        named = {"table": self.name, **given}
        shown = ", ".join(f"{key} => {value!r}" for key, value in named.items())
        return self.jvm.call(f"call {procedure}({shown})", options)

    def last_write(self) -> str:
        """The requested time of the write that was begun last."""
        return HoodieTable.load(self.spark, self.path).table.timeline().completed(WRITE_ACTIONS)[-1].requested

    def abandon(self) -> None:
        """Leave a write of ours behind whose process died before it was decided."""
        table, rows, dead = self.open(), make_rows(_CHANGED, 99), f"{self.path}-dead"
        frame, operation = self.spark.createDataFrame(rows, SCHEMA), Operation(self.options[OPERATION])
        with paused(table, StopPoint.PUBLISH_CHECKED, lambda: table.write(operation, frame)):
            shutil.copytree(self.path, dead)
        shutil.rmtree(self.path)
        Path(dead).rename(self.path)
        let_time_pass(self.path)

    def refuse_pending(self) -> None:
        """What failed is rolled back, and all that was planned is done."""
        if pending := HoodieTable.load(self.spark, self.path).table.timeline().pending():
            raise _OtherRows(f"{pending[0]} is still pending")

    def look(self) -> None:
        """By all readers."""
        readers = [self.judge or self.jvm, *([] if TIME_TYPE in self.options else [self.jvm])]
        asked = {
            f"JVM Hudi {one.version} (hoodie.metadata.enable={told})": one.ask(
                "read", path=self.path, options={"hoodie.metadata.enable": told}, columns=list(COLUMNS)
            )
            for one in dict.fromkeys(readers)
            for told in ("true", "false")
        }
        shown = {} if self.is_alone else {"ours": collect(HoodieTable.load(self.spark, self.path))}
        shown |= {who: join_dates([tuple(row) for row in told.result(DEADLINE_S)]) for who, told in asked.items()}
        if strangers := [who for who, rows in shown.items() if rows != self.rows]:
            raise _OtherRows(f"{', '.join(strangers)}: other rows")
        by_rust = not self.is_alone and read_rust(self.path, unmerged=self.rows if self.by_rust else None) == self.rows
        if self.by_rust and not by_rust:
            raise _OtherRows("hudi-rs: other rows")
        self.by_rust = by_rust
        self._refuse_damages()

    def _refuse_damages(self) -> None:
        if damages := verify_table(HoodieTable.load(self.spark, self.path).table.storage).damages:
            raise _OtherRows(str(damages[0]))


def _restore(at: _Served) -> None:
    kept, before = at.open().services.savepoints.create(), at.rows
    at.write()
    at.open().services.restore(kept.instant)
    at.rows = before
    at.look()
    at.open().services.savepoints.delete(kept.instant)


def _cluster(at: _Served) -> None:
    _expect(at.open().clustering.run(), at, "clustered")


def _compact(at: _Served) -> None:
    at.write(_NOT_INLINE)
    _expect(at.open().compaction.run(), at, "compacted")


def _compact_logs(at: _Served) -> None:
    at.write(_NOT_INLINE)
    at.write(_NOT_INLINE)
    _expect(at.open().log_compaction.run(), at, "compacted logs")


def _clean(at: _Served) -> None:
    at.write()
    at.abandon()
    _expect(at.open().services.clean().deleted, at, "cleaned")
    at.refuse_pending()


def _archive(at: _Served) -> None:
    _expect(archive_now(at.open()), at, "archived")


def _write_by_jvm(at: _Served) -> None:
    at.write(by_jvm=True)


def _restore_by_jvm(at: _Served) -> None:
    at.write()
    kept, before = at.last_write(), at.rows
    at.call("create_savepoint", commit_time=kept)
    at.write()
    at.call("rollback_to_savepoint", instant_time=kept)
    at.rows = before
    at.look()
    at.open().services.savepoints.delete(kept)


def _roll_back_by_jvm(at: _Served) -> None:
    before = at.rows
    at.write(_KEPT_LOGS)
    at.call("rollback_to_instant", instant_time=at.last_write())
    at.rows = before


def _cluster_by_jvm(at: _Served) -> None:
    at.write()
    at.call("run_clustering", op="schedule", order="ts")
    _expect(at.call("run_clustering", op="execute"), at, "clustered by JVM Hudi")


def _compact_by_jvm(at: _Served) -> None:
    at.write(_NOT_INLINE)
    at.call("run_compaction", op="schedule")
    _expect(at.call("run_compaction", op="execute"), at, "compacted by JVM Hudi")


def _clean_by_jvm(at: _Served) -> None:
    at.write()
    if not at.is_alone:
        at.abandon()
    _expect(at.call("run_clean", retain_commits=1), at, "cleaned by JVM Hudi")
    at.refuse_pending()


def _age(at: _Served) -> None:
    at.write()
    at.call("archive_commits", min_commits=2, max_commits=3, retain_commits=1)


def _archive_by_jvm(at: _Served) -> None:
    before = archived(at.open())
    _age(at)
    _expect(len(archived(at.open())) > len(before), at, "archived by JVM Hudi")


def _expect(done: Any, at: _Served, what: str) -> None:
    if not done and at.updates:
        raise _OtherRows(f"nothing was {what}")


@dataclass(frozen=True)
class _Step:
    """A service, or a write that comes between them.

    Attributes:
        name: For a person.
        run: Does it.
        is_theirs: Whether JVM Hudi does.
        needs_logs: Whether it is for merge-on-read tables alone.
        looks: Whether all readers look after it, and not only after the next one.
    """

    name: str
    run: Callable[[_Served], None]
    is_theirs: bool = False
    needs_logs: bool = False
    looks: bool = True


# JVM Hudi 1.2.0 takes a commit back first: its restore drops statistics of partitions, and a rollback right after that
# makes them anew with the commit that it takes back (tests/interop/test_damage.py).
_STEPS: Final = (
    _Step("savepoint and restore", _restore),
    _Step("clustering", _cluster),
    _Step("compaction", _compact, needs_logs=True),
    _Step("log compaction", _compact_logs, needs_logs=True),
    _Step("cleaning", _clean),
    _Step("archival", _archive, looks=False),
    _Step("a write of JVM Hudi after our services", _write_by_jvm, is_theirs=True),
    _Step("rollback_to_instant", _roll_back_by_jvm, is_theirs=True),
    _Step("rollback_to_savepoint", _restore_by_jvm, is_theirs=True),
    _Step("run_clustering", _cluster_by_jvm, is_theirs=True),
    _Step("run_compaction", _compact_by_jvm, is_theirs=True, needs_logs=True),
    _Step("run_clean", _clean_by_jvm, is_theirs=True),
    _Step("archive_commits", _archive_by_jvm, is_theirs=True, looks=False),
    _Step("a write of ours after the services of JVM Hudi", _Served.write),
)

_AGE: Final = _Step("a write and archival", _age, looks=False)
"""Of JVM Hudi, in the place of a service of ours."""


def serve_table(spark: Any, jvm: Jvm, path: str, name: str, *, judge: Jvm | None = None) -> str:
    """Let both serve a table of that kind, one after the other; what came of it.

    Returns:
        "equal", with the services that JVM Hudi itself does not do on such a table, and those that this package
        refuses; or what was wrong.
    """
    table = _Served(spark, jvm, judge, path, _name_served(jvm, name))
    try:
        table.options = make_table(jvm, path, table.options)
    except JvmError as error:
        return describe_failure(error)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            table.write()
        except HudiLocksError as error:
            return f"refused: {getattr(error, 'key', None) or type(error).__name__}"
        return _play(table, name)


def _name_served(jvm: Jvm, name: str) -> dict[str, str]:
    options = name_options(jvm, name)
    return {**options, **(_SPLITS if options.get("hoodie.index.bucket.engine") == "CONSISTENT_HASHING" else {})}


def _play(table: _Served, name: str) -> str:
    told = [EQUAL]
    for step in table.choose_steps():
        word = _attempt(table, step)
        if word.startswith("wrong") and step.is_theirs and (_NOT_FOR_IT in word or _fails_alone(table, name, step)):
            word = f"not by Hudi: {step.name}"
        if word.startswith("wrong"):
            return word
        told += [word] if word else []
    return "; ".join(told)


def _attempt(table: _Served, step: _Step) -> str:
    """What went wrong, or was refused, after which the table is as it was before; "" for what everybody agrees on."""
    kept, before = shutil.copytree(table.path, f"{table.path}-kept"), (table.ts, table.rows)
    word = _try(table, step)
    if word:
        shutil.rmtree(table.path)
        shutil.copytree(kept, table.path)
        table.ts, table.rows = before
    shutil.rmtree(kept)
    return word


def _try(table: _Served, step: _Step) -> str:
    try:
        step.run(table)
        if step.looks:
            table.look()
    except HudiLocksError as error:
        if isinstance(error, (ConfigError, UnsupportedTable)) and not step.is_theirs:
            return f"refused: {step.name}"
        return f"wrong: {step.name}: {type(error).__name__}: {error}"
    except (JvmError, _OtherRows) as error:
        return f"wrong: {step.name}: {error}"
    return ""


def _fails_alone(table: _Served, name: str, until: _Step) -> bool:
    """Whether JVM Hudi cannot do it either on a table that it alone wrote, once where this package served the other."""
    path, options = f"{table.path}-alone", _name_served(table.jvm, name)
    alone = _Served(table.spark, table.jvm, table.judge, path, options, is_alone=True)
    alone.options = make_table(table.jvm, path, options)
    alone.write()
    words = [_attempt(alone, step if step.is_theirs else _AGE) for step in alone.choose_steps(until)]
    shutil.rmtree(path)
    return bool(words[-1])
