"""In which file group the row of each key is, as a table's files show it, for a record index that is made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format.key_groups import KeyGroups, name_key_group
from hudi_locks.metadata_table.record_index import encode_record_base
from hudi_locks.storage import Storage
from hudi_locks.table import RECORD_KEY, FileSlice, MergeRule, add_meta_schema, read_slice

__all__ = ["KeyPlaces", "KeySpread", "read_keys"]

_RECORD_BYTES: Final = 48
"""What JVM Hudi reckons with for a key."""
_GROUP_BYTES: Final = 1 << 30
_GROWTH: Final = 2
_SHOWN: Final = 3


@dataclass(frozen=True)
class KeySpread:
    """Over how many file groups a record index is spread (Hudi's estimateFileGroupCount).

    Attributes:
        least: Never fewer.
        most: Never more.
        is_partitioned: Whether the keys of each partition are spread over file groups of its own.
    """

    least: int = 10
    most: int = 10_000
    is_partitioned: bool = False

    def choose(self, keys: Mapping[str, int]) -> KeyGroups:
        """The file groups for so many keys, by partition path; each partition that is named gets some."""
        if self.is_partitioned:
            counts = {path: self.count_groups(number) for path, number in keys.items()}
            return KeyGroups(is_partitioned=True, counts=counts, fresh=self.least)
        total = self.count_groups(sum(keys.values()))
        return KeyGroups(tuple(name_key_group(number) for number in range(total)))

    def count_groups(self, keys: int) -> int:
        """How many there are for so many keys, with room for twice as many: their number never changes."""
        wanted = _GROWTH * keys // (_GROUP_BYTES // _RECORD_BYTES)
        return max(self.least, min(wanted, self.most))


class KeyOwner(NamedTuple):
    """A file group of a record index that is made.

    Attributes:
        group: Its id.
        number: Its place among those over which the same keys are spread.
        slices: Numbers of the slices that may have some of its keys.
    """

    group: str
    number: int
    slices: tuple[int, ...]


@dataclass(frozen=True)
class KeyPlaces:
    """The record keys of a table by the file slice in which their rows are.

    Attributes:
        slices: The newest slice of each file group.
        keys: The record keys of each, text without nulls.
        groups: The file groups of the index, over which they are spread.
    """

    slices: tuple[FileSlice, ...]
    keys: tuple[pa.Array, ...]
    groups: KeyGroups

    @cached_property
    def owners(self) -> tuple[KeyOwner, ...]:
        """The file groups of the index in their order."""
        mine: dict[str, tuple[int, ...]] = dict.fromkeys(
            self.groups.counts if self.groups.is_partitioned else ("",), ()
        )
        for place, piece in enumerate(self.slices):
            path = piece.partition if self.groups.is_partitioned else ""
            mine[path] = (*mine[path], place)
        return tuple(
            KeyOwner(one, number, places)
            for path, places in sorted(mine.items())
            for number, one in enumerate(self.groups.list_ids(path))
        )

    @cached_property
    def numbers(self) -> list[pa.Array]:
        """Of each key the number of its file group, among those of its partition."""
        return [
            self.groups.number(keys, pa.repeat(piece.partition, len(keys)))
            for piece, keys in zip(self.slices, self.keys, strict=True)
        ]

    @property
    def count(self) -> int:
        """How many keys there are."""
        return sum(map(len, self.keys))

    def encode(self, owner: KeyOwner, version: int) -> bytes | None:
        """The base file of one of `owners`; None if it has no key."""
        keys, indices = self._pick(owner)
        if not len(keys):
            return None
        places = [(piece.partition, piece.file_id, _find_instant(piece)) for piece in self.slices]
        return encode_record_base(keys, indices, places, version)

    def refuse_doubles(self) -> None:
        """Whether each key is in one row alone: an index has one place for it, and updates would miss the others.

        By an index by partition it may be in one row of each.

        Raises:
            UnsupportedTable: One is in several rows.
        """
        for owner in self.owners:
            counted = pc.value_counts(self._pick(owner)[0])
            twice = counted.field("values").filter(pc.greater(counted.field("counts"), 1))
            if len(twice):
                some = [key.decode() for key in twice[:_SHOWN].to_pylist()]
                named = ", ".join(map(repr, some))
                where = " of a partition" if self.groups.is_partitioned else ""
                message = (
                    f"no record index can be made: the key {named} is in more than one row{where}, and the index would"
                    " know one of them alone; delete such keys and insert each once, or go without a record index"
                )
                raise UnsupportedTable(message, keys=some)

    def _pick(self, owner: KeyOwner) -> tuple[pa.Array, pa.Array]:
        """The keys of one file group of the index as bytes, and of each the number of its slice."""
        chosen = [
            self.keys[place].filter(pc.equal(self.numbers[place], owner.number)).cast(pa.binary())
            for place in owner.slices
        ]
        indices = np.repeat(np.array(owner.slices, np.int32), [len(keys) for keys in chosen])
        return pa.concat_arrays([pa.array([], pa.binary()), *chosen]), pa.array(indices)


def read_keys(storage: Storage, piece: FileSlice, schema: pa.Schema, rule: MergeRule) -> pa.Array:
    """The record keys of the rows that a slice shows.

    Args:
        storage: Of the table.
        piece: The slice.
        schema: The user's columns.
        rule: Of the table: which of two rows with one key is there.

    Raises:
        DamagedTable: A file is gone, or cannot be read.
        UnsupportedTable: A log has a block of a kind that is not read here.
    """
    columns = [one for one in add_meta_schema(schema) if one.name in (RECORD_KEY, *rule.deciding)]
    found: Iterable[pa.Table] = read_slice(storage, piece, pa.schema(columns), rule=rule)
    chunks = [chunk for rows in found for chunk in rows.column(RECORD_KEY).chunks]
    return pa.concat_arrays([pa.array([], pa.string()), *chunks])


def _find_instant(piece: FileSlice) -> str:
    """Of the newest of its files, which all are of completed writes."""
    return max([piece.barrier, *(log.instant for log in piece.logs)])
