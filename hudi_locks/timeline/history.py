"""The history of a timeline as one who adds to it sees it: parts, manifests, the version that counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from hudi_locks.errors import DamagedTable
from hudi_locks.format import (
    ArchiveRow,
    PartName,
    add_ms,
    decode_manifest,
    decode_rows,
    encode_manifest,
    encode_rows,
    manifest_name,
    parse_manifest_name,
)
from hudi_locks.storage import Storage
from hudi_locks.timeline import TimelineLayout

__all__ = ["ArchivedHistory"]

_VERSION_FILE: Final = "_version_"
_PATIENCE_MS: Final = 3_600_000
"""A part that no manifest names may be somebody's who is about to name it; after so long it is nobody's."""


@dataclass(frozen=True)
class ArchivedHistory:
    """Adds to the archived timeline. Every step may be repeated, and a crash between two of them harms no reader.

    A part comes first, then a manifest that names it, then the version file that points to the manifest. Readers of
    this package look at all parts; the JVM follows the version file, and without one the highest manifest.

    Nor does it harm if somebody who lost the lock sleeps between two steps, for hours, while others go on: no part
    takes a name that is there, so that whoever drops a part after its sleep drops no other one; and who adds looks in
    the end whether the manifest that counts has it. What is dropped is never named later: a part is dropped only where
    others of its level or a higher one hold its rows in one manifest, and that stays so; a part is named only by the
    manifest after one that lacks its rows, or, if it is merged, after one that names all that went into it.

    Attributes:
        storage: The table's files.
        layout: Of the timeline.
    """

    storage: Storage
    layout: TimelineLayout

    def add(self, rows: list[ArchiveRow]) -> None:
        """Make `rows`, by requested time, part of the history.

        Rows that are there already, since an archiver died before it removed their instants, are passed over.

        Raises:
            DamagedTable: A part or manifest cannot be read.
            StorageError: The store failed; the same call goes on.
        """
        while missing := self._list_missing(rows, self.read_manifest()[1]):
            data = encode_rows(missing)
            name = self._write_part(PartName(missing[0].requested, missing[-1].requested), data)
            self._switch(name, data, partial(self._lack, missing))

    def read_manifest(self) -> tuple[int, dict[str, int]]:
        """The version that counts, 0 at the start, and names and sizes of its parts.

        A manifest above the version file was made by somebody who died before pointing to it: it counts.

        Raises:
            DamagedTable: A manifest cannot be read.
        """
        while version := max(self._versions(), default=0):
            path = self._path(manifest_name(version))
            if (data := self.storage.read(path)) is not None:
                return version, decode_manifest(data, path)
        return 0, {}

    def compact(self, *, batch: int, keep_versions: int) -> None:
        """Merge the oldest `batch` parts of each level that has so many, and drop what only old versions name.

        Raises:
            DamagedTable: A part or manifest cannot be read.
            StorageError: The store failed; another call goes on.
        """
        level = 0
        while merged := self._find_batch(level, batch):
            self._merge(merged)
            level += 1
        self._drop_old(keep_versions + level)

    def _lack(self, rows: list[ArchiveRow], names: Iterable[str]) -> bool:
        """Whether none of the parts `names` has any of `rows`."""
        return self._list_missing(rows, names) == rows

    def _list_missing(self, rows: list[ArchiveRow], names: Iterable[str]) -> list[ArchiveRow]:
        """Those of `rows` that are in none of the parts `names`."""
        parts = map(PartName.parse, names)
        first, last = rows[0].requested, rows[-1].requested
        overlapping = [part for part in parts if part is not None and part.first <= last and first <= part.last]
        known = {(row.requested, row.action) for part in overlapping for row in self._read(part) or ()}
        return [row for row in rows if (row.requested, row.action) not in known]

    def _read(self, part: PartName) -> list[ArchiveRow] | None:
        """None if it was dropped, by somebody who merged it."""
        path = self._path(str(part))
        data = self.storage.read(path)
        return None if data is None else decode_rows(data, path)

    def _find_batch(self, level: int, batch: int) -> list[PartName]:
        parts = (PartName.parse(name) for name in self.read_manifest()[1])
        found = sorted(part for part in parts if part is not None and part.level == level)
        return found[:batch] if len(found) >= batch else []

    def _merge(self, parts: list[PartName]) -> None:
        rows: dict[tuple[str, str], ArchiveRow] = {}
        for part in parts:
            if (found := self._read(part)) is None:
                self._require_dropped(part)
                return
            rows |= {(row.requested, row.action): row for row in found}
        target = PartName(min(p.first for p in parts), max(p.last for p in parts), parts[0].level + 1)
        data = encode_rows(row for _, row in sorted(rows.items()))
        merged = frozenset(map(str, parts))
        self._switch(self._write_part(target, data), data, lambda named: merged <= named.keys(), merged=merged)

    def _require_dropped(self, part: PartName) -> None:
        if str(part) in self.read_manifest()[1]:
            path = self._path(str(part))
            raise DamagedTable(f"{path} is gone, and the archived timeline names it: bring the file back", path=path)

    def _switch(
        self,
        name: str,
        data: bytes,
        may_be_named: Callable[[Mapping[str, int]], bool],
        *,
        merged: Set[str] = frozenset(),
    ) -> None:
        """Make the next version, with a new part in place of those merged; if somebody else makes one, the one after.

        Not at all if the parts of the one before it make the new part needless: others have seen to its rows.
        """
        while True:
            version, sizes = self.read_manifest()
            if not may_be_named(sizes):
                return
            wanted = {known: size for known, size in sizes.items() if known not in merged} | {name: len(data)}
            if self.storage.create_if_absent(self._path(manifest_name(version + 1)), encode_manifest(wanted)):
                break
        self._point()
        self.storage.create_if_absent(self._path(name), data)  # a JVM archiver drops what no manifest names

    def _point(self) -> None:
        """Let the version file name the highest manifest, also if another archiver makes one meanwhile."""
        version = 0
        while (highest := max(self._versions(), default=0)) > version:
            version = highest
            self.storage.replace(self._path(_VERSION_FILE), str(version).encode())

    def _write_part(self, part: PartName, data: bytes) -> str:
        """Under a name that nobody has used: the last time in it may be later than that of the last instant."""
        while not self.storage.create_if_absent(self._path(str(part)), data):
            if not self._is_readable(part):
                self.storage.replace(self._path(str(part)), data)
                break
            part = replace(part, last=add_ms(part.last, 1))
        return str(part)

    def _is_readable(self, part: PartName) -> bool:
        """Whether it is whole: a JVM that dies may leave half of one."""
        try:
            self._read(part)
        except DamagedTable:
            return False
        return True

    def _drop_old(self, keep: int) -> None:
        """Drop manifests, then parts that were there before and that no manifest names which is there now."""
        oldest_ms = self.storage.now_ms() - _PATIENCE_MS
        listed = self.storage.list(self.layout.archive)
        parts = {entry.name: part for entry in listed if (part := PartName.parse(entry.name))}
        old = [parts[e.name] for e in listed if e.name in parts and e.modified_ms < oldest_ms]
        versions = sorted(self._versions(), reverse=True)
        kept = {name for version in versions[:keep] for name in self._names(version)}
        for version in versions[keep:]:
            self.storage.delete_all([self._path(manifest_name(version))])
        self.storage.delete_all(self._path(str(part)) for part in old if str(part) not in kept and self._is_spare(part))

    def _is_spare(self, part: PartName) -> bool:
        """Whether no manifest names a part, and none ever will: others hold its rows, or nobody can read it."""
        rows = self._read(part) if self._is_readable(part) else None
        named = self.read_manifest()[1]
        if str(part) in named:
            return False
        levels = {name: found.level for name in named if (found := PartName.parse(name))}
        return not (rows and self._list_missing(rows, [n for n, level in levels.items() if level >= part.level]))

    def _names(self, version: int) -> Iterable[str]:
        path = self._path(manifest_name(version))
        data = self.storage.read(path)
        return decode_manifest(data, path) if data else ()

    def _versions(self) -> list[int]:
        names = (parse_manifest_name(entry.name) for entry in self.storage.list(self.layout.archive))
        return [version for version in names if version is not None]

    def _path(self, name: str) -> str:
        return f"{self.layout.archive}/{name}"
