"""Bringing catalogs up to date with a table, as JVM Hudi's sync tools do."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from hudi_locks.catalog.catalog import Catalog, CatalogEntry, cut, open_catalog
from hudi_locks.catalog.description import CatalogTable, describe_table
from hudi_locks.catalog.settings import SyncSettings, choose_tools
from hudi_locks.config import Options, catalog_keys
from hudi_locks.errors import BackendRefused, HudiLocksError, NoEffectWarning
from hudi_locks.format import Instant
from hudi_locks.redaction import open_log
from hudi_locks.table import Table, list_partitions, read_commit
from hudi_locks.timeline import Timeline

__all__ = ["CatalogSync", "SyncResult"]

_logger = open_log(__name__)
LAST_SYNC: Final = "last_commit_time_sync"
LAST_COMPLETION: Final = "last_commit_completion_time_sync"
_DELETED: Final = "DELETE_PARTITION"
_ONE_PLACE: Final = ("", "file", "hdfs", "webhdfs", "swebhdfs")
"""Schemes of which the host is no part of the place: this machine, or the one cluster."""


@dataclass(frozen=True)
class SyncResult:
    """What a sync did.

    Attributes:
        tables: Names of the tables in the catalog, `database.name`.
        partitions_told: How many partitions it added, or found there when it asked to add them.
        partitions_dropped: How many it took out.
    """

    tables: tuple[str, ...] = ()
    partitions_told: int = 0
    partitions_dropped: int = 0


@dataclass(frozen=True)
class _Changes:
    """Folders of partitions that the catalog must be told of, and those that are gone."""

    present: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    is_all: bool = False


@dataclass(frozen=True)
class CatalogSync:
    """Syncs one table with one catalog. Runs on the driver; each sync opens a connection of its own.

    Mirrors `org.apache.hudi.hive.HiveSyncTool` and `org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool`. Two syncs at the
    same time leave the catalog right once either ran again, or the next write did.

    Attributes:
        table: The table.
        settings: What the catalog calls it, and the options of the writer.
    """

    table: Table
    settings: SyncSettings

    @classmethod
    def of(cls, options: Options, table: Table) -> tuple[CatalogSync, ...]:
        """The syncs that the options of a writer ask for; it warns of each that is not offered.

        Raises:
            ConfigError: An option cannot be used.
        """
        kinds, said = choose_tools(options)
        for text in said:
            warnings.warn(text, NoEffectWarning, stacklevel=2)
        return tuple(cls(table, SyncSettings.of(options, table.config, kind=kind)) for kind in kinds)

    def follow_write(self) -> tuple[str, ...]:
        """Sync after a write, and return what to warn of: the write is completed, and no catalog undoes it."""
        try:
            self.run()
        except Exception as error:  # whatever it is, the write has to tell that it was completed
            kind, said = self.settings.kind, str(error) if isinstance(error, HudiLocksError) else repr(error)
            _logger.warning("sync with the catalog (%s)", kind, exc_info=error)
            return (f"the catalog ({kind}) was not brought up to date, and the next write tries again: {said}",)
        return ()

    def run(self) -> SyncResult:
        """Bring the catalog up to date.

        Raises:
            BackendUnavailable: The catalog cannot be reached.
            BackendRefused: It refuses, or has another table of that name.
        """
        timeline = self.table.timeline()
        described = describe_table(self.table, timeline, self.settings)
        if not described:
            return SyncResult()
        with closing(open_catalog(self.settings.kind, self.settings.options)) as catalog:
            if self.settings.options.get_value(catalog_keys.CREATE_DATABASE):
                catalog.create_database(self.settings.database)
            changes = [self._sync(catalog, one, timeline) for one in described]
        names = tuple(f"{one.database}.{one.name}" for one in described)
        told, gone = max(len(one.present) for one in changes), max(len(one.gone) for one in changes)
        return SyncResult(names, told, gone)

    def _sync(self, catalog: Catalog, described: CatalogTable, timeline: Timeline) -> _Changes:
        entry = catalog.find(described.database, described.name)
        if entry is None:
            catalog.create(described)
        else:
            _refuse_other(entry, described)
        changes = self._find_changes(timeline, entry) if described.partition_columns else _Changes()
        self._tell_partitions(catalog, described, changes)
        if self._is_news(entry, described, changes):
            catalog.alter(described, _tell_time(timeline))
        return changes

    def _is_news(self, entry: CatalogEntry | None, described: CatalogTable, changes: _Changes) -> bool:
        if entry is None or not self.settings.options.get_value(catalog_keys.CONDITIONAL):
            return True
        # Catalogs spell names of columns in small letters.
        columns = [(column.name.lower(), column.hive_type.lower()) for column in described.columns]
        known = [(name.lower(), kind.lower()) for name, kind in entry.columns]
        return bool(changes.present or changes.gone) or known != columns

    def _find_changes(self, timeline: Timeline, entry: CatalogEntry | None) -> _Changes:
        """All partitions, or those of the writes since the last sync where the timeline has them all."""
        since = entry.properties.get(LAST_COMPLETION) if entry else None
        last = timeline.get(entry.properties.get(LAST_SYNC, "")) if entry else None
        is_all = not (since and last and self.settings.options.get_value(catalog_keys.INCREMENTAL))
        state: dict[str, bool] = {}
        for instant in timeline.completed_between("" if is_all else since or ""):
            state |= self._read_states(timeline, instant)
        # A deleted partition has its folder until it is cleaned.
        folders = list_partitions(self.table.storage) if is_all else sorted(state)
        present = tuple(folder for folder in folders if state.get(folder, True))
        return _Changes(present, tuple(sorted(state.keys() - set(present))), is_all)

    def _read_states(self, timeline: Timeline, instant: Instant) -> Mapping[str, bool]:
        """Whether each partition that a write touched is there after it."""
        commit = read_commit(self.table.storage, timeline, requested=instant.requested)
        deleted = commit.replaced_file_ids if (commit.operation or "").upper() == _DELETED else {}
        return {**dict.fromkeys(commit.partition_to_write_stats, True), **dict.fromkeys(deleted, False)}

    def _tell_partitions(self, catalog: Catalog, described: CatalogTable, changes: _Changes) -> None:
        wanted = {self._read_values(folder): self._locate(folder) for folder in changes.present}
        gone = {self._read_values(folder) for folder in changes.gone}
        if changes.is_all:
            known = catalog.list_partitions(described)
            gone = known.keys() - wanted.keys()
            wanted = {values: place for values, place in wanted.items() if values not in known}
        for batch in cut(wanted.items(), self.settings.options.get_value(catalog_keys.BATCH_SIZE)):
            catalog.add_partitions(described, dict(batch))
        if gone:
            catalog.drop_partitions(described, sorted(gone))

    def _read_values(self, folder: str) -> tuple[str, ...]:
        return self.settings.read_values(folder, self.table.config)

    def _locate(self, folder: str) -> str:
        return f"{self.table.storage.base.rstrip('/')}/{folder}"


def _refuse_other(entry: CatalogEntry, described: CatalogTable) -> None:
    """A table of that name whose files lie elsewhere is somebody else's."""
    there, ours = (_find_place(one.location) for one in (entry, described))
    if there != ours:
        name = f"{described.database}.{described.name}"
        message = (
            f"{name} is there with files in {entry.location}, and this table is in {described.location}: drop it, or"
            f" give {catalog_keys.TABLE.name}"
        )
        raise BackendRefused(message, table=name, location=entry.location)


def _find_place(location: str) -> str:
    """The bucket and path, whatever scheme a client calls them by: `s3a` is `s3`, and a cluster has many names."""
    parts = urlsplit(location)
    return f"{'' if parts.scheme in _ONE_PLACE else parts.netloc}{parts.path.rstrip('/')}"


def _tell_time(timeline: Timeline) -> Mapping[str, str]:
    by_completion = timeline.completed_between("")
    last = max(instant.requested for instant in by_completion)
    return {LAST_SYNC: last, LAST_COMPLETION: by_completion[-1].completion or last}
