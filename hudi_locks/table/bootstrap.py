"""Bootstrapped tables: skeletons have the meta columns of rows whose other columns stayed in the files of a source.

Row for row, by its place in the file. A skeleton is a base file of the commit 00000000000001; the bootstrap index of
the table says which file of the source has the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_locks.errors import DamagedTable, NoSuchFile
from hudi_locks.format import META_COLUMNS, BaseFileName, reading_parquet
from hudi_locks.format.bootstrap_index import (
    BOOTSTRAP_INDEX,
    SourceFile,
    decode_sources,
    source_key,
)
from hudi_locks.format.hfile import HFile
from hudi_locks.format.instant import METADATA_BOOTSTRAP
from hudi_locks.storage import Storage, map_in_threads, open_beside, reporting
from hudi_locks.table.data_files import BaseFile

__all__ = [
    "describe_source",
    "find_source",
    "is_skeleton",
    "lies_in_source",
    "read_source_schema",
    "read_with_source",
    "refuse_lost_sources",
]

_META: Final = frozenset(META_COLUMNS)
_MOST: Final = 4_096
"""Of so many partitions the sources are remembered."""
_SKELETON: Final = "a skeleton"
_WAY_OUT: Final = "bring it back from a copy: without it nobody knows which rows belong to the skeletons of this table"
_PLAIN: Final[Mapping[pa.DataType, pa.DataType]] = {
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
}
"""Types in which Arrow reads files of its own, and how the rows of a table have them."""


def is_skeleton(path: str) -> bool:
    """Whether a base file, by its name, has meta columns alone."""
    name = path.rpartition("/")[2]
    if METADATA_BOOTSTRAP not in name:
        return False
    found = BaseFileName.parse(name)
    return found is not None and found.instant == METADATA_BOOTSTRAP


def lies_in_source(path: str, columns: Collection[str] | None) -> bool:
    """Whether these columns of a base file, all if None, are not all in the file itself."""
    return is_skeleton(path) and (columns is None or not _META.issuperset(columns))


@dataclass(frozen=True)
class _Place:
    """The index of a table. Whichever storage reads it makes no difference."""

    table: Hashable
    partition: str
    storage: Storage = field(compare=False)


@dataclass(frozen=True)
class _Source:
    """A file of the source, and the skeleton that it belongs to."""

    folder: Storage
    name: str
    told: SourceFile
    skeleton: str

    @contextmanager
    def open(self, *, decodes: bool = False) -> Iterator[pq.ParquetFile]:
        """Its Parquet.

        Raises:
            DamagedTable: It is gone, or no Parquet.
            StorageError: The store failed.
        """
        try:
            source = self.folder.open_input(self.name)
        except NoSuchFile as error:
            raise self.damage("is gone") from error
        with reading_parquet(self._what, self.told.address), source:
            yield pq.ParquetFile(source, coerce_int96_timestamp_unit="us", page_checksum_verification=decodes)

    @property
    def _what(self) -> str:
        return f"the source of the skeleton {self.skeleton}"

    def choose(self, file: pq.ParquetFile, columns: Collection[str] | None) -> list[str]:
        """The columns that are wanted of it, and that it has."""
        names = (name for name in file.schema_arrow.names if name not in _META)
        return [name for name in names if columns is None or name in columns]

    def choose_texts(self, file: pq.ParquetFile, columns: Collection[str] | None) -> list[tuple[str, str | None]]:
        """What its folder tells of wanted columns that it lacks."""
        there = file.schema_arrow.names
        return [pair for pair in self.told.values if pair[0] not in there and (columns is None or pair[0] in columns)]

    def read(self, file: pq.ParquetFile, names: list[str], *, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Some of its columns. What is amiss is told of this file, not of the skeleton that is read with it."""
        with reading_parquet(self._what, self.told.address):
            yield from file.iter_batches(batch_size=batch_rows, columns=names)

    def refuse_other_count(self, rows: int, expected: int) -> None:
        """Refuse a source that has other rows than its skeleton: they belong together by their places.

        Raises:
            DamagedTable: It has more or less.
        """
        if rows != expected:
            raise self.damage(f"has {rows} rows, and the skeleton {expected}")

    def damage(self, what: str) -> DamagedTable:
        """The error that names both files."""
        message = (
            f"{self.told.address} {what}: it is the source of the skeleton {self.skeleton} of a bootstrapped table,"
            " and has all but the meta columns of its rows. Bring the file back as it was when the table was made"
        )
        return DamagedTable(message, path=self.told.address, skeleton=self.skeleton)


def _find_source(storage: Storage, path: str) -> _Source:
    """The source of a skeleton.

    Raises:
        DamagedTable: The index is gone, cannot be read, or does not know it.
        UnsupportedTable: The source lies in another store.
        StorageError: The store failed.
    """
    partition, _, name = path.rpartition("/")
    parsed = BaseFileName.parse(name)
    file_id = "" if parsed is None else parsed.file_id
    place = _Place(storage.place, partition, storage)
    told = _read_sources(place).get(file_id) or _read_sources.__wrapped__(place).get(file_id)  # made anew since
    if told is None:
        message = f"the bootstrap index {BOOTSTRAP_INDEX} names no source of the skeleton {path}; {_WAY_OUT}"
        raise DamagedTable(message, path=BOOTSTRAP_INDEX, skeleton=path)
    folder, _, source = told.address.rpartition("/")
    return _Source(open_beside(storage, folder), source, told, path)


@lru_cache(maxsize=_MOST)
def _read_sources(place: _Place) -> Mapping[str, SourceFile]:
    """By file id; a bootstrap index never changes."""
    try:
        opened = place.storage.open_input(BOOTSTRAP_INDEX)
    except NoSuchFile as error:
        message = f"the bootstrap index {BOOTSTRAP_INDEX} is gone; {_WAY_OUT}"
        raise DamagedTable(message, path=BOOTSTRAP_INDEX) from error
    with reporting("read", BOOTSTRAP_INDEX), opened:
        data = HFile(opened, BOOTSTRAP_INDEX, way_out=_WAY_OUT).get(source_key(place.partition))
    return {} if data is None else decode_sources(data, BOOTSTRAP_INDEX)


def read_with_source(
    storage: Storage, path: str, *, columns: Collection[str] | None, batch_rows: int
) -> Iterator[pa.Table]:
    """The rows of a skeleton with the columns of its source, in bounded pieces, in file order.

    A partition column that the source lacks has the text that its folder tells.

    Args:
        storage: Of the table.
        path: Of the skeleton.
        columns: Only these, as far as the two have them; all if None.
        batch_rows: The bound.

    Raises:
        DamagedTable: A file, or the index, is gone or cannot be read; or the two have not as many rows.
        UnsupportedTable: The source lies in another store.
        StorageError: The store failed.
    """
    told = _find_source(storage, path)
    with told.open() as file, reading_parquet(_SKELETON, path), storage.open_input(path) as source:
        yield from _join_files(told, pq.ParquetFile(source), file, columns=columns, batch_rows=batch_rows)


def _join_files(
    source: _Source, skeleton: pq.ParquetFile, file: pq.ParquetFile, *, columns: Collection[str] | None, batch_rows: int
) -> Iterator[pa.Table]:
    """The rows of both."""
    rows, count = skeleton.metadata.num_rows, 0
    source.refuse_other_count(file.metadata.num_rows, rows)
    meta = [name for name in META_COLUMNS if columns is None or name in columns]
    names, texts = source.choose(file, columns), source.choose_texts(file, columns)
    heads = skeleton.iter_batches(batch_size=batch_rows, columns=meta or META_COLUMNS[:1])
    tails = source.read(file, names, batch_rows=batch_rows) if names else None
    for head, tail in _cut_alike(heads, tails):
        count += len(head)
        yield _join(head.select(meta), tail, texts)
    source.refuse_other_count(count, rows)


def _cut_alike(
    heads: Iterator[pa.RecordBatch], tails: Iterator[pa.RecordBatch] | None
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch | None]]:
    """Pieces of the same length of both, whose row groups may end in different places; heads alone without tails."""
    if tails is None:
        yield from ((head, None) for head in heads)
        return
    head, tail = next(heads, None), next(tails, None)
    while head is not None and tail is not None:
        size = min(len(head), len(tail))
        if size:
            yield head.slice(0, size), tail.slice(0, size)
        head = head.slice(size) if len(head) > size else next(heads, None)
        tail = tail.slice(size) if len(tail) > size else next(tails, None)


def _join(head: pa.RecordBatch, tail: pa.RecordBatch | None, texts: Iterable[tuple[str, str | None]]) -> pa.Table:
    columns = dict(zip(head.schema.names, head.columns, strict=True))
    if tail is not None:
        columns |= {name: _make_plain(tail.column(name)) for name in tail.schema.names}
    return pa.table({**columns, **{name: pa.repeat(pa.scalar(text, pa.string()), len(head)) for name, text in texts}})


def _make_plain(column: pa.Array) -> pa.Array:
    kind = _find_plain(column.type)
    return column if kind == column.type else column.cast(kind)


def _find_plain(kind: pa.DataType) -> pa.DataType:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return _PLAIN.get(value, value)


def read_source_schema(storage: Storage, path: str) -> pa.Schema:
    """The columns that a skeleton has in its source, with their types; raises what `read_with_source` raises."""
    source = _find_source(storage, path)
    with source.open() as file:
        named = set(source.choose(file, None))
        return pa.schema([pa.field(f.name, _find_plain(f.type)) for f in file.schema_arrow if f.name in named])


def describe_source(storage: Storage, path: str, *, rows: int, decodes: bool = False) -> tuple[str, ...]:
    """The columns that a skeleton of so many rows has in its source, and by the folder of that.

    Args:
        storage: Of the table.
        path: Of the skeleton.
        rows: That it has.
        decodes: Whether to decode every value of the source too.

    Raises:
        DamagedTable: See `read_with_source`; or a page of the source cannot be decoded.
    """
    source = _find_source(storage, path)
    with source.open(decodes=decodes) as file:
        source.refuse_other_count(file.metadata.num_rows, rows)
        for group in range(file.num_row_groups if decodes else 0):
            file.read_row_group(group)
        return (*source.choose(file, None), *(name for name, _ in source.choose_texts(file, None)))


def find_source(storage: Storage, base: BaseFile | None) -> SourceFile | None:
    """The source of a base file, as the index tells it; None of one that is no skeleton, or of none.

    Raises:
        DamagedTable: The index is gone, cannot be read, or does not know it.
        StorageError: The store failed.
    """
    return None if base is None or not base.is_skeleton else _find_source(storage, base.path).told


def refuse_lost_sources(storage: Storage, paths: Iterable[str]) -> None:
    """Refuse skeletons, among these base files, whose sources are gone or were changed. Each folder is listed once.

    Raises:
        DamagedTable: One is; it is named.
        UnsupportedTable: A source lies in another store.
        StorageError: The store failed.
    """
    folders: dict[str, list[_Source]] = {}
    for path in paths:
        if is_skeleton(path):
            source = _find_source(storage, path)
            folders.setdefault(source.folder.base, []).append(source)
    map_in_threads(_refuse_lost, folders.values())


def _refuse_lost(sources: Sequence[_Source]) -> None:
    """Of one folder."""
    listed = {entry.name: entry for entry in sources[0].folder.list("")}
    for source in sources:
        found = listed.get(source.name) or source.folder.stat(source.name)  # a listing leaves links out
        if found is None:
            raise source.damage("is gone")
        if found.size != source.told.size:
            raise source.damage(f"has {found.size} bytes, and had {source.told.size} then")
