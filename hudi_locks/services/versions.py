"""Upgrade and downgrade: a table becomes one of another table version, with the same rows (Hudi's UpgradeDowngrade)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from hudi_locks.config import Options
from hudi_locks.errors import ConfigError, HudiLocksError, TableError, UnsupportedTable
from hudi_locks.format import MetadataPartition, decode_properties
from hudi_locks.metadata_table import is_partitioned
from hudi_locks.redaction import open_log
from hudi_locks.services.metadata_making import PARTITIONED_SINCE, RECORD_INDEXES, ask_for_record_index
from hudi_locks.services.metadata_properties import NAMED, list_named, read_properties_file
from hudi_locks.services.table_writer import TableWriter
from hudi_locks.table import (
    PROPERTIES_PATH,
    VERSIONS,
    Table,
    TableConfig,
    latest_file_slices,
    refuse_altered,
    translate_properties,
)
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import StopPoint, Transactions, carry_out_change, convert_for, promise_change

__all__ = ["VersionChange", "downgrade_table", "upgrade_table"]

_KEYS: Final = MetadataPartition.RECORD_INDEX.value
_LATER: Final = 8
"""Table version since which a log is named by its write."""
_ASKED: Final = tuple(key.name for key in RECORD_INDEXES)
_LOST_INDEX: Final = (
    "the record index by partition is gone, since the releases that write this version do not know that kind"
)
_UNKEPT: Final = "Version 6 keeps the history of them under other names: copy the rows to a new table of that version"
_log = open_log(__name__)


@dataclass(frozen=True)
class VersionChange:
    """What became of a table.

    Attributes:
        before: Its table version.
        after: Its table version now; the same if it was of that version already.
        instants: How many instants of its timeline were brought over; 0 where both versions have one layout.
        archived: How many archived ones.
        merge_mode: How two rows with one key become one, as the properties of the table have it now.
        dropped: Parts of its metadata table, which is of the version of the table, so that it was deleted.
        made: Parts of the metadata table that was made in its place.
        warnings: Why none was made, if that failed, or what it lacks; the change stands.
    """

    before: int
    after: int
    instants: int = 0
    archived: int = 0
    merge_mode: str = ""
    dropped: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def upgrade_table(
    path: str, options: Mapping[str, object] | None = None, *, to: int = VERSIONS[-1], zone: str | None = None
) -> VersionChange:
    """Make of a table one of a later version. Rows, commits and times stay as they are.

    It is done under the table's lock, and not while a write is under way. Queries that have begun go on; whoever opened
    the table before opens it anew: this package refuses it by name, JVM writers have to be started anew. If the process
    dies, the next writer of this package goes on, or the same call. Logs of a merge-on-read table of version 6 stay
    beside their base files until they are compacted. A metadata table is deleted, and made anew.

    Args:
        path: Base path.
        options: Hudi's keys, those of the lock that the table's writers have among them. What tables of version 6
            leave to their writers (`hoodie.datasource.write.payload.class`, the kinds of a custom key generator) is
            taken from them too.
        to: The table version, 8 or 9.
        zone: Time zone of the writers of a table whose timeline is in LOCAL time.

    Raises:
        AcquireTimeout: Somebody else held the lock for as long as the options allow to wait.
        ConfigError: An option cannot be used, or the table is of a later version.
        DamagedTable: A file of the timeline cannot be read; nothing was changed.
        TableError: A write or a table service is under way.
        StorageError: The store failed.
        UnsupportedTable: The table is of a kind that the version has no words for, or that is not written here.
    """
    return _change(path, options, to, zone, upgrades=True)


def downgrade_table(
    path: str, options: Mapping[str, object] | None = None, *, to: int, zone: str | None = None
) -> VersionChange:
    """Make of a table one of an earlier version. For arguments, results and errors see `upgrade_table`.

    To version 6 goes a merge-on-read table without logs only: compact it first. There the time when an instant was
    completed is that of its file. An object store gives files their own: then it is the time of the downgrade, in the
    same order.
    """
    return _change(path, options, to, zone, upgrades=False)


def _change(
    path: str, options: Mapping[str, object] | None, to: int, zone: str | None, *, upgrades: bool
) -> VersionChange:
    if to not in VERSIONS:
        raise ConfigError(f"table version {to} is none of {', '.join(map(str, VERSIONS))}", version=to)
    with TableWriter.open(path, options, zone=zone) as writer:
        by_partition = is_partitioned(writer.table.storage)
        _refuse_direction(path, writer.table.config.version, to, upgrades=upgrades)
        done = VersionChanger(writer.transactions, writer.options, zone=writer.table.config.zone).run(to)
    if not done.dropped:
        return done
    if _KEYS not in done.dropped:
        return _make_metadata(done, path, options, zone)
    if by_partition and to < PARTITIONED_SINCE:
        done = replace(done, warnings=(_LOST_INDEX,))
        return _make_metadata(done, path, {**(options or {}), **dict.fromkeys(_ASKED, "false")}, zone)
    return _make_metadata(done, path, {**(options or {}), **ask_for_record_index(by_partition=by_partition)}, zone)


def _make_metadata(
    done: VersionChange, path: str, options: Mapping[str, object] | None, zone: str | None
) -> VersionChange:
    try:
        with TableWriter.open(path, options, zone=zone) as writer:
            made = writer.services.make_metadata_table()
    except HudiLocksError as error:
        _log.warning("%s goes on without a metadata table: %s", path, error)
        return replace(done, warnings=(*done.warnings, f"no metadata table was made: {error}"))
    return replace(done, made=made.parts if made else ())


def _refuse_direction(path: str, before: int, to: int, *, upgrades: bool) -> None:
    if before != to and (before < to) != upgrades:
        command = "downgrade" if upgrades else "upgrade"
        message = f"{path} is of version {before}, and {to} is {'an earlier' if upgrades else 'a later'} one"
        raise ConfigError(f"{message}: hudi-locks {command} {path} --to {to}", version=to, found=before)


class VersionChanger:
    """Changes the version of one table. Runs on the driver.

    The `VERSION` claim decides. What it promises is read and translated as a whole before, so that a damaged file or a
    property without an equal is told while nothing has changed.

    Args:
        transactions: Of the table.
        options: Hudi's keys, as the process was given them.
        zone: Where LOCAL is, if that is where the table's instants are.
    """

    def __init__(self, transactions: Transactions, options: Options, *, zone: str | None = None) -> None:
        self._transactions = transactions
        self._table = transactions.coordinator
        self._storage = self._table.storage
        self._options = options
        self._zone = zone

    def run(self, to: int) -> VersionChange:
        """Do it; see `upgrade_table`."""
        if self._table.settings.cleans_failed_writes:
            self._transactions.roll_back_failed()
        with self._table.hold() as hold:
            while (done := self._attempt(to, token=hold.token)) is None:
                pass  # another claim was first
        self._require(to)
        return done

    def _attempt(self, to: int, *, token: int | None) -> VersionChange | None:
        view = self._table.look()
        data, known = read_properties_file(self._storage)
        before = TableConfig.from_properties(known)
        if before.version == to:
            return VersionChange(to, to, merge_mode=before.merge_mode)
        wanted = self._translate(known, to, view.timeline)
        after = TableConfig.from_properties(wanted)
        converted = convert_for(self._storage, self._table.layout, after)
        time = self._table.time_after(view)
        promise = promise_change(self._table, data, wanted, time=time, fencing_token=token)
        claim = self._table.log.draft(view.head, promise)
        self._table.wait_for_skew(time)
        if self._table.log.append(claim) is None:
            return None
        self._table.trace(StopPoint.VERSION_CLAIMED)
        carry_out_change(self._table, claim)
        return VersionChange(
            before.version,
            to,
            instants=len(view.timeline.instants) if converted else 0,
            archived=len(converted.archived) if converted else 0,
            merge_mode=after.merge_mode,
            dropped=tuple(sorted(list_named(known))),
        )

    def _translate(self, known: Mapping[str, str], to: int, timeline: Timeline) -> dict[str, str]:
        self._refuse_busy(timeline)
        kept = {key: value for key, value in known.items() if key not in NAMED}
        wanted = translate_properties(kept, to, self._options, zone=self._zone)
        self._refuse_lacking(TableConfig.from_properties(kept), TableConfig.from_properties(wanted), timeline)
        self._refuse_logs(timeline, to)
        if to < _LATER:
            refuse_altered(self._storage, timeline, advice=_UNKEPT)
        return wanted

    def _refuse_busy(self, timeline: Timeline) -> None:
        if pending := timeline.pending():
            first = pending[0]
            message = (
                f"{self._storage.base}: {first.action} {first.requested} is under way, and would go on as in the"
                " version before: let it finish, or roll it back, and stop the writers of the table meanwhile. A clean"
                " whose process died is finished by hudi-locks clean, a plan of this package taken back by hudi-locks"
                " compact or cluster with --abort"
            )
            raise TableError(message, path=self._storage.base, instant=first.requested, action=first.action)

    def _refuse_logs(self, timeline: Timeline, to: int) -> None:
        """Version 6 names a log by the base file below it, and later ones by its write."""
        is_logged = self._table.strategy.is_merge_on_read and not self._table.layout.is_version_6
        if to >= _LATER or not is_logged:
            return
        logged = sum(bool(piece.logs) for piece in latest_file_slices(self._storage, timeline))
        if logged:
            base = self._storage.base
            message = (
                f"{base}: {logged} file groups have logs, which version {to} names in another way: compact them first"
                f" (hudi-locks compact {base}), while nobody writes"
            )
            raise UnsupportedTable(message, path=base, groups=logged)

    def _refuse_lacking(self, before: TableConfig, after: TableConfig, timeline: Timeline) -> None:
        """Other columns may decide between rows then, as of events of MySQL: the table has to have them."""
        new = set(after.ordering_fields) - set(before.ordering_fields)
        schema = Table(self._storage, before).schema(timeline) if new else None
        if schema is not None and (lacking := sorted(new.difference(schema.names))):
            message = (
                f"{self._storage.base}: at version {after.version} rows are ordered by"
                f" {','.join(after.ordering_fields)}, and the table has no column {', '.join(lacking)}: write it first"
            )
            raise UnsupportedTable(message, path=self._storage.base, columns=lacking)

    def _require(self, to: int) -> None:
        data = self._storage.read(PROPERTIES_PATH)
        found = TableConfig.from_properties(decode_properties(data, PROPERTIES_PATH)).version if data else None
        if found != to:
            message = (
                f"{self._storage.base} is of version {found} still: somebody wrote {PROPERTIES_PATH} at the same"
                " moment; do it once more"
            )
            raise TableError(message, path=self._storage.base, found=found)
