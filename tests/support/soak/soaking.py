"""A whole run: a table, writers that are killed and stopped, a janitor, and the verdict of several readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from other_readers import Jvm

from hudi_locks import LockManager, SystemClock
from hudi_locks.services import Archiver, ArchiveSettings, CleanSettings, TableServices
from hudi_locks.table import PROPERTIES_PATH, Table
from hudi_locks.transaction import Transactions
from soak.deeds import LOADED, draw_deed
from soak.fleet import OURS, FleetPlan, our_options, run_fleet
from soak.judgement import Readers, Verdict, age_leftovers, compare_readers, judge
from soak.plan import find_heartbeat_limit_s
from soak.running import Course, Say, SoakPlan, Told, run_writers
from soak.stores import Store, on_disk
from soak.writing import DeedWriter, describe_table

__all__ = ["Outcome", "render_outcome", "soak", "soak_fleet"]


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes:
        course: How it went.
        verdict: What was found.
        archived: How many instants were archived before the last look.
    """

    course: Course
    verdict: Verdict
    archived: int = 0

    @property
    def ok(self) -> bool:
        """Whether all is well."""
        return not self.verdict.differences


def soak(plan: SoakPlan, readers: Readers, say: Say, *, version: int = 9) -> Outcome:
    """Make a table, let writers at it, and judge it.

    Args:
        plan: The run; there is no table at its path yet.
        readers: Those that must see the rows of the replay, by name.
        say: Told how it gets on.
        version: Of the table.
    """
    store, options = plan.store, {**plan.options, **plan.store.sound}
    _create_table(store, options, seed=plan.seed, version=version)
    course = run_writers(plan, say)
    if store.link is not None:
        store.link.heal()
        course.link = store.link.met
    say(f"{len(course.told.committed)} commits in {course.took_s:.0f} s; now the janitor and the readers")
    verdict, archived = _judge_cleaned(store, options, course.told, readers)
    return _conclude(course, verdict, archived, commits=plan.commits)


def soak_fleet(plan: FleetPlan, jvms: Sequence[Jvm], readers: Readers, say: Say) -> Outcome:
    """The same with JVM writers beside ours, of which none is killed."""
    options = our_options(plan.service)
    store = on_disk(plan.path)
    _create_table(store, options, seed=plan.seed, version=plan.version, beside_jvm=True)
    if plan.keeps_metadata:
        _let_jvms_choose(store)
    course = run_fleet(plan, jvms, say)
    say(f"{len(course.told.done)} commits in {course.took_s:.0f} s; now the janitor and the readers")
    verdict, archived = _judge_cleaned(store, options, course.told, readers, beside_jvm=True)
    return _conclude(course, verdict, archived, commits=plan.commits * (len(jvms) + OURS))


def _let_jvms_choose(store: Store) -> None:
    """Take the line out by which tables of ours forbid a metadata table, as in one that the JVM made."""
    storage = store.open()
    lines = (storage.read(PROPERTIES_PATH) or b"").splitlines(keepends=True)
    storage.replace(PROPERTIES_PATH, b"".join(line for line in lines if not line.startswith(b"hoodie.metadata.enable")))


def _conclude(course: Course, verdict: Verdict, archived: int, *, commits: int) -> Outcome:
    missing = [f"there are {verdict.commits} commits, not {commits}"] if verdict.commits < commits else []
    found = (*course.crashes, *missing, *verdict.differences)
    return Outcome(course, replace(verdict, differences=found), archived)


def _create_table(
    store: Store, options: Mapping[str, str], *, seed: int, version: int, beside_jvm: bool = False
) -> None:
    """A table with the rows that are there from the start."""
    Table.create(store.open(), describe_table(version, beside_jvm=beside_jvm))
    table = Table.load(store.open(), for_writing=True)
    with LockManager.from_options(options) as locks:
        writer = DeedWriter(table, locks, options=options, clock=SystemClock())
        writer.write(draw_deed(f"{seed}:0:{LOADED}")).raise_unless_committed()


def _judge_cleaned(
    store: Store, options: Mapping[str, str], told: Told, readers: Readers, *, beside_jvm: bool = False
) -> tuple[Verdict, int]:
    """Let the janitor work, judge the table, archive what it has too much, and let the readers look once more."""
    clock = SystemClock()
    clock.sleep(find_heartbeat_limit_s(options) + 1)
    with LockManager.from_options(options) as locks:
        transactions = Transactions(Table.load(store.open(), for_writing=True), locks, options=options)
        _sweep(store, transactions, options)
        verdict = judge(store, told, readers, beside_jvm=beside_jvm)
        if verdict.differences:
            return verdict, 0
        is_old = transactions.coordinator.layout.is_version_6  # which JVM Hudi archives alone
        archived = 0 if is_old else _archive(transactions, options)
    return replace(verdict, differences=tuple(compare_readers(store.path, verdict.rows, readers))), archived


def _sweep(store: Store, transactions: Transactions, options: Mapping[str, str]) -> None:
    """What `hudi-locks clean` does."""
    services = TableServices(transactions, options)
    services.sweep()
    age_leftovers(store)
    services.sweep()
    services.clean()


def _archive(transactions: Transactions, options: Mapping[str, str]) -> int:
    """As if an hour had passed since the last commit; how many instants left the timeline."""
    settings = replace(ArchiveSettings.of(options), min_age_ms=0)
    return Archiver(transactions.coordinator, settings, clean_settings=CleanSettings.of(options)).run().archived


def render_outcome(outcome: Outcome) -> str:
    """The outcome as text."""
    course, verdict = outcome.course, outcome.verdict
    kinds = "   ".join(f"{verdict.kinds[kind]} x {kind}" for kind in sorted(verdict.kinds))
    events = "   ".join(f"{count} x {event}" for event, count in sorted(course.told.events.items()))
    faults = "   ".join(f"{count} x {fault}" for fault, count in sorted(course.link.items()))
    longest = f", the longest {max(course.stops):.0f} s" if course.stops else ""
    lines = [
        f"commits   {verdict.commits} in {course.took_s:.0f} s   {kinds}",
        *([f"link      {faults}"] if faults else []),
        f"attacks   {course.kills} kills, {len(course.stops)} stops{longest}",
        f"told      {events}",
        f"rows      {len(verdict.rows)}   archived afterwards {outcome.archived} instants",
        *(f"FAIL  {line}" for line in verdict.differences),
    ]
    return "\n".join([*lines, f"verdict   {'EQUAL to the serial replay' if outcome.ok else 'DIFFERENT'}"])
