"""A simulator of a merge-on-read table of version 6: logs are named by what is below them, and a plan must stay."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

from transaction_harness import MODE, OPTIMISTIC, write_file
from transaction_simulator import Simulator
from transaction_store import SimulatorLock, SteppedStorage

from hudi_locks.errors import DamagedTable, StorageError, UnsupportedTable, WriteAborted, WriteError
from hudi_locks.format import CommitMetadata, CompactionPlan, Instant, IOType, LogFileName, LogPlace, State, WriteStat
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, decode_blocks, encode_block
from hudi_locks.markers import DirectMarkers
from hudi_locks.services import Compaction, TableServices, choose_slices
from hudi_locks.services.planned import PlannedService
from hudi_locks.storage import Storage
from hudi_locks.table import (
    FileSlice,
    Table,
    TableConfig,
    create_partition_metadata,
    latest_file_slices,
    list_data_files,
    slice_file_groups,
)
from hudi_locks.table.data_files import BlockScope
from hudi_locks.table.log_rows import find_undone
from hudi_locks.table.old_logs import find_log_places, list_planned_barriers
from hudi_locks.timeline import LAYOUT_1, Timeline
from hudi_locks.timeline.archive import list_archived_since

CONFIG = TableConfig("t", ("id",), ("part",), table_type="MERGE_ON_READ", version=6)
_GROUPS = {"w0": "g-0", "w1": "g-0", "w2": "h-0"}
SCHEMA = '{"type": "record", "name": "r", "fields": [{"name": "id", "type": ["null", "string"], "default": null}]}'
_EPOCH = "20230101000000000"
_KEEP = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.compact.inline.max.delta.commits": "1",
}


class OldLoggingSimulator(Simulator):
    """Each writer logs its own name; whoever commits looks at the table at once, as JVM readers and ours see it.

    Attributes:
        heeds: Whether the JVM writer looks for plans of compaction, as its default strategy does.
        rounds: How often each compactor plans.
    """

    max_steps = 60_000
    layout = LAYOUT_1
    table_type = "MERGE_ON_READ"
    action = "deltacommit"
    rounds = 6
    mode: ClassVar[Mapping[str, object]] = {MODE: OPTIMISTIC, "hoodie.index.type": "BUCKET"}

    def __init__(self, rng: random.Random, *, heeds: bool = True, **how: Any) -> None:
        super().__init__(rng, **how)
        self.heeds = heeds
        self.compacted: list[str] = []
        self.misread: list[str] = []
        create_partition_metadata(self.files, "p", instant="0")

    # ---- what processes do ----
    def write(self, tx: Any, group: str, name: str) -> CommitMetadata:
        storage, timeline = tx.files.storage, tx.timeline
        group = self.pick(storage, timeline, group, tx.instant)
        place = self._place(storage, timeline, group) or LogPlace(tx.instant, 1)
        log = place.name(group, tx.instant)
        ticket = write_file(tx.files, "p", str(log), encode_rows(tx.instant, [name]), io_type=IOType.CREATE)
        stat = WriteStat("p", group, f"p/{log}", log_version=log.version, ticket=ticket)
        return CommitMetadata.of([stat], "UPSERT", schema=SCHEMA)

    def pick(self, storage: Storage, timeline: Timeline, group: str, instant: str) -> str:
        """The file group for a row of `group`."""
        return group

    def _place(self, storage: Storage, timeline: Timeline, group: str) -> LogPlace | None:
        try:
            slices = latest_file_slices(storage, timeline)
        except DamagedTable as error:  # see `compactor`
            raise WriteAborted(str(error)) from error
        return find_log_places(slices, list_planned_barriers(storage, timeline)).get(("p", group))

    def writers(self, name: str, group: str, **how: Any) -> None:
        """The same process writes several times."""
        for number in range(4):
            self.writer(f"{name}.{number}", group, **how)
            self.look()

    def compactor(self, name: str, *, rounds: int = 6, **how: Any) -> None:
        """Plans and runs compactions, its own or those of the dead."""
        compaction = Compaction(self.open_table(**how), self.transactions(name, **how))
        self.run_plans(compaction, partial(self._merge, compaction), rounds=rounds)

    def open_table(self, *, all_dead: bool = False, **_: Any) -> Table:
        """As a process of its own has it."""
        return Table(SteppedStorage(self, all_dead=all_dead), CONFIG)

    def run_plans(self, service: PlannedService[Any], work: Callable[..., None], *, rounds: int) -> None:
        """Plan, sleep, and run what is planned, so many times."""
        for _ in range(rounds):
            # Without a lock, who plans may take the heartbeat of who runs: a publish under way looks lost for a moment.
            with contextlib.suppress(StorageError, WriteError, DamagedTable):
                service.schedule()
                self.doze()
                if (taken := service.take()) is not None:
                    work(*taken)

    def doze(self) -> None:
        process = self.mine()
        if process is not None:
            process.asleep_until = self.ticks + self.rng.choice((1, 60, 200))
            self.step("doze")

    def _merge(self, compaction: Compaction, tx: Any, plan: CompactionPlan) -> None:
        with tx:
            unless = compaction.refuse_publish(tx, plan)
            slices = choose_slices(compaction.table, plan, tx.instant)
            stats = [self._merge_slice(tx, piece) for piece in slices]
            self.doze()
            metadata = CommitMetadata.of(stats, "COMPACT", schema=SCHEMA, compacted=True)
            if tx.publish(metadata, unless=unless).is_committed:
                self.compacted.append(tx.instant)
        self.look()

    def _merge_slice(self, tx: Any, piece: FileSlice) -> WriteStat:
        name = str(tx.files.name_base("p", piece.file_id))
        ticket = write_file(tx.files, "p", name, json.dumps(self.rows(tx.files.storage, piece)).encode())
        return WriteStat("p", piece.file_id, f"p/{name}", ticket=ticket)

    def serve(self, name: str, work: Any, *, rounds: int = 4, **how: Any) -> None:
        services = TableServices(self.transactions(name, **how), _KEEP)
        for _ in range(rounds):
            self.doze()
            with contextlib.suppress(StorageError, WriteError, UnsupportedTable):
                work(services)

    def spawn_services(self, lock: SimulatorLock | None) -> None:
        """Two compactors and an archiver."""
        self.spawn_twice("compactor", partial(self.compactor, rounds=self.rounds), lock)
        how: dict[str, Any] = {"locks": lock} if lock else {}
        archive = partial(self.serve, "archiver", TableServices.archive, **how, all_dead=True)
        self.spawn("archiver", archive, may_crash=True)

    def spawn_twice(self, name: str, work: Callable[..., None], lock: SimulatorLock | None) -> None:
        """Two who do the same; without a lock the other takes everybody for dead."""
        how: dict[str, Any] = {"locks": lock} if lock else {}
        for one, all_dead in ((name, False), (f"other {name}", lock is None)):
            self.spawn(one, partial(work, one, **how, all_dead=all_dead, skew_ms=_skew(self)), may_crash=True)

    # ---- a JVM writer, which knows nothing of claims ----
    def jvm_logger(self, name: str, group: str, lock: SimulatorLock) -> None:
        for number in range(3):
            self._log_once(f"{name}.{number}", group, lock)
            self.look()

    def _log_once(self, name: str, group: str, lock: SimulatorLock) -> None:
        """It takes its time and makes its instant without the lock, and looks at the table then."""
        storage = SteppedStorage(self)
        begun = Instant(self._next_time(Timeline.load(storage, self.layout)), self.action, State.REQUESTED)
        if not storage.create_if_absent(f".hoodie/.heartbeat/{begun.requested}", b""):
            return None
        storage.create_if_absent(self.layout.path(begun), b"")
        storage.create_if_absent(self.layout.path(begun.as_inflight()), b"")
        known = Timeline.load(storage, self.layout)
        group = self.pick(storage, known, group, begun.requested)
        place = self._place(storage, known, group) or LogPlace(begun.requested, 1)
        log = LogFileName(group, place.barrier, place.version, "7-8-9")
        below = f"{group}_7-8-9_{place.barrier}.parquet"
        DirectMarkers(storage, begun.requested).create("p", below, io_type=IOType.APPEND)
        if not storage.create_if_absent(f"p/{log}", encode_rows(begun.requested, [name])):
            return self._die(begun)
        self.doze()
        held = lock.lock()
        now = Timeline.load(storage, self.layout)
        if now.get(begun.requested) is not None and not self._meets(storage, begun, known, now, group):
            stat = WriteStat("p", group, f"p/{log}", log_version=log.version)
            data = CommitMetadata.of([stat], "UPSERT", schema=SCHEMA).encode(self.action, layout_version=1)
            storage.create_if_absent(self.layout.path(begun.as_completed(self._next_time(now))), data)
            self.begun[name] = begun.requested
        else:
            self._die(begun)
        held.release()
        self.files.delete(f".hoodie/.heartbeat/{begun.requested}")
        return None

    def _die(self, begun: Instant) -> None:
        """Its writer gives up, and leaves it to the next one."""
        self.files.delete(f".hoodie/.heartbeat/{begun.requested}")

    def _meets(self, storage: Storage, begun: Instant, known: Timeline, now: Timeline, group: str) -> bool:
        for one in now.completed_since(known):
            commit = CommitMetadata.decode(storage.read(now.paths[one]) or b"", now.paths[one])
            is_known = commit.compacted and one.requested < begun.requested
            is_met = ("p", group) in commit.written_file_groups and not is_known
            if is_met and (self.heeds or not commit.compacted):
                return True
        planned = list_planned_barriers(storage, now).get(("p", group), "")
        return self.heeds and planned > begun.requested

    # ---- what must hold, at any time ----
    def look(self) -> None:
        """Of a JVM reader and of ours, at this moment; no process does anything meanwhile."""
        with contextlib.suppress(DamagedTable):  # see `compactor`
            self._look()

    def _look(self) -> None:
        timeline = Timeline.load(self.files, self.layout)
        names = {instant: name for name, instant in self.begun.items()}
        expected = sorted(names[time] for time in self.logged(timeline) if time in names)
        for reader, rows in (("JVM", self._read_as_jvm(timeline)), ("ours", self._read_as_ours(timeline))):
            found = sorted(row for row in rows if row in self.begun)
            if found != expected:
                self.misread.append(f"{reader} sees {found} at step {self.ticks}, and {expected} were written")

    def logged(self, timeline: Timeline) -> set[str]:
        archived = list_archived_since(self.files, self.layout, completed_after=_EPOCH)
        done = {one.requested for one in archived if one.action == self.action}
        return done | {one.requested for one in timeline.completed((self.action,))}

    def _read_as_ours(self, timeline: Timeline) -> Iterator[str]:
        for piece in latest_file_slices(self.files, timeline):
            yield from self.rows(self.files, piece)

    def _read_as_jvm(self, timeline: Timeline) -> Iterator[str]:
        """It joins two slices only where it finds the plan of a compaction."""
        listed, planned = list_data_files(self.files), list_planned_barriers(self.files, timeline)
        listed = listed.where(lambda file: file.file_id not in self.list_ended(timeline))
        bases = [base for base in listed.bases if timeline.is_completed(base.instant)]
        completed = frozenset(one.requested for one in timeline.completed())
        known = {*planned.values(), *(log.instant for log in listed.logs if timeline.is_completed(log.instant))}
        logs = [log for log in listed.logs if log.instant in known]
        scope = BlockScope(True, completed, timeline.first_active or "", None, frozenset(planned.values()))
        for group, slices in slice_file_groups(bases, logs, lambda _: None, blocks=scope).items():
            joined = slices[: 2 if slices[0].barrier == planned.get(group) else 1]
            for piece in joined:
                yield from self.rows(self.files, piece)

    def list_ended(self, timeline: Timeline) -> frozenset[str]:
        """File groups that were replaced."""
        return frozenset()

    def rows(self, storage: Storage, piece: FileSlice) -> list[str]:
        found: list[str] = [] if piece.base is None else json.loads(storage.read(piece.base.path) or b"[]")
        read = {log: storage.read(log.path) or b"" for log in piece.logs}
        undone = {time for log, data in read.items() for time in find_undone(data, log.path)}
        assert piece.blocks is not None or not read
        for log, data in read.items():
            counts = piece.blocks.choose(log, undone) if piece.blocks else undone.__contains__
            blocks = (block for block in decode_blocks(data, log.path) if block.kind is not BlockType.COMMAND)
            found += [row for block in blocks if counts(block.instant) for row in json.loads(bytes(block.content))]
        return found

    def done(self) -> list[str]:
        return sorted(self.logged(Timeline.load(self.files, self.layout)))

    def clean_up(self) -> None:
        """What services do once everybody is gone, until nothing is left to do."""
        self.recover()
        self.compactor("last compactor", all_dead=True, rounds=8)
        self.serve("the last", TableServices.sweep, rounds=1, all_dead=True)
        self.look()

    def wrong(self) -> str:
        if self.misread:
            return self.misread[0]
        pending = Timeline.load(self.files, self.layout).pending()
        return self._wrong_answers() or (f"{pending} are pending for ever" if pending else "")

    def has_archived(self) -> bool:
        """Whether anything left the active timeline."""
        return bool(list_archived_since(self.files, self.layout, completed_after=_EPOCH))

    def has_logs_above_plans(self) -> bool:
        """Whether a write was begun while a compaction was planned that has completed since."""
        return any(f"_{planned}.log." in line for line in self.trail for planned in self.compacted)


def encode_rows(requested: str, rows: list[str]) -> bytes:
    """A log of one write, with a block that this simulator alone can read."""
    header = {BlockHeader.INSTANT_TIME: requested, BlockHeader.SCHEMA: "{}"}
    return encode_block(LogBlock(BlockType.DELETE, header, json.dumps(rows).encode()))


def play_old_logs(seed: int, *, rng: random.Random | None = None) -> OldLoggingSimulator:
    """See `play_alone`."""
    simulator = OldLoggingSimulator(rng or random.Random(seed), crash=choose_crash(seed), lost=choose_lost(seed))
    play_alone(simulator, seed)
    return simulator


def play_old_logs_beside_jvm(
    seed: int, *, rng: random.Random | None = None, heeds: bool | None = None
) -> OldLoggingSimulator:
    """See `play_beside_jvm`; some JVM writers look for no plan."""
    looks = bool(seed % 2) if heeds is None else heeds
    simulator = OldLoggingSimulator(rng or random.Random(seed), heeds=looks, foreign=True, crash=choose_crash(seed))
    play_beside_jvm(simulator)
    return simulator


def choose_crash(seed: int) -> float:
    """How likely a process dies at a step."""
    return (0.0, 0.002, 0.004)[seed % 3]


def choose_lost(seed: int) -> float:
    """How likely an answer is lost."""
    return (0.0, 0.1)[seed % 2]


def play_alone(simulator: OldLoggingSimulator, seed: int) -> None:
    """Two or three writers, services, one that takes all for dead; no lock."""
    for number, (name, group) in enumerate(list(_GROUPS.items())[: 2 + seed % 2]):
        simulator.spawn(name, partial(simulator.writers, name, group, skew_ms=_skew(simulator)), may_crash=number == 0)
    simulator.spawn_services(None)
    if seed % 4 == 1:
        simulator.spawn("undertaker", simulator.cleaner)
    simulator.run()
    simulator.clean_up()


def play_beside_jvm(simulator: OldLoggingSimulator) -> None:
    """A writer and services beside two JVM writers; the lock works."""
    lock = SimulatorLock(simulator)
    simulator.spawn("w0", partial(simulator.writers, "w0", "g-0", locks=lock, skew_ms=_skew(simulator)), may_crash=True)
    simulator.spawn("jvm", partial(simulator.jvm_logger, "jvm", "g-0", lock))
    simulator.spawn("other jvm", partial(simulator.jvm_logger, "other jvm", "h-0", lock))
    simulator.spawn_services(lock)
    simulator.run()
    simulator.clean_up()


def _skew(simulator: OldLoggingSimulator) -> int:
    return simulator.rng.choice((0, 0, -40, 40))
