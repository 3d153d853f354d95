"""The file groups of a record index, and which of them tells where a key lies (Hudi's record level index).

An index of the whole table spreads all keys over its file groups. An index by partition spreads the keys of each
partition over file groups of that partition alone, whose ids name it: a key may be in several partitions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format.metadata_keys import hash_keys

__all__ = ["KeyGroups", "name_key_group", "parse_key_group"]

_GROUP: Final = re.compile(r"record-index-(?:([^-]*)-)?(\d{4,})-0")
_ESCAPED: Final = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^_-]")
"""As Hive escapes names of folders, and what divides the name of a file."""


def name_key_group(number: int, partition: str | None = None) -> str:
    """Id of a file group of a record index; with the path of the partition where it belongs to one."""
    owner = "" if partition is None else _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", partition) + "-"
    return f"record-index-{owner}{number:04}-0"


def parse_key_group(file_id: str) -> tuple[str | None, int] | None:
    """The partition path of such a file group, None for one of the whole table, and its number.

    Returns:
        None if the id is none of a record index.
    """
    match = _GROUP.fullmatch(file_id)
    return (None if match[1] is None else unquote(match[1]), int(match[2])) if match else None


def _find_owner(file_id: str) -> str | None:
    """The partition path in an id."""
    found = parse_key_group(file_id)
    if found is None or name_key_group(found[1], found[0]) != file_id:
        raise _refuse_name(file_id, "which is no name that JVM Hudi gives it")
    return found[0]


def _refuse_name(file_id: str, why: str) -> UnsupportedTable:
    message = (
        f"the record index of the metadata table has the file group {file_id!r}, {why}: drop it with"
        " hudi-locks metadata drop --part record_index"
    )
    return UnsupportedTable(message, file_id=file_id)


@dataclass(frozen=True)
class KeyGroups:
    """Those of one index; false if there is none. Two are equal if a key that both know is in the same file group.

    Attributes:
        ids: Of an index of the whole table, in the order over which keys are spread.
        is_partitioned: Whether each partition has its own instead.
        counts: Then how many each partition has, by its path.
        fresh: Then how many a partition gets that has none.
    """

    ids: tuple[str, ...] = ()
    is_partitioned: bool = False
    counts: Mapping[str, int] = field(default_factory=dict, compare=False)
    fresh: int = field(default=1, compare=False)

    @classmethod
    def of(cls, ids: Iterable[str], *, fresh: int = 1) -> KeyGroups:
        """That of these file groups; an index by partition if they belong to partitions.

        Raises:
            UnsupportedTable: One has another name than JVM Hudi gives it.
        """
        named = tuple(sorted(set(ids)))
        counts = Counter(map(_find_owner, named))
        if None in counts and len(counts) > 1:
            raise _refuse_name(named[0], "beside those of the other kind of index")
        is_partitioned = bool(named) and None not in counts
        known = {owner: number for owner, number in counts.items() if owner is not None}
        return cls(() if is_partitioned else named, is_partitioned, known, fresh)

    def __bool__(self) -> bool:
        return self.is_partitioned or bool(self.ids)

    @property
    def total(self) -> int:
        """How many there are; at least one."""
        return max(1, sum(self.counts.values()) if self.is_partitioned else len(self.ids))

    def count(self, partition: str) -> int:
        """Over how many the keys of a partition are spread."""
        return self.counts.get(partition, self.fresh) if self.is_partitioned else len(self.ids)

    def list_ids(self, partition: str) -> tuple[str, ...]:
        """Those over which the keys of a partition are spread, in order."""
        if not self.is_partitioned:
            return self.ids
        return tuple(sorted(name_key_group(number, partition) for number in range(self.count(partition))))

    def name(self, partition: str, number: int) -> str:
        """The one of a number that `number` gave for a key of a partition."""
        return self.list_ids(partition)[number]

    def number(self, keys: pa.Array, partitions: pa.Array) -> pa.Array:
        """Of each key, text without nulls, the number of its file group among those of its partition."""
        hashed = hash_keys(keys)
        if not self.is_partitioned:
            return pa.array(hashed % len(self.ids), pa.int32())
        found = partitions.dictionary_encode()
        counts = np.array([self.count(path) for path in found.dictionary.to_pylist()], np.int64)
        spread = counts[found.indices.to_numpy(zero_copy_only=False)] if len(counts) else np.ones(0, np.int64)
        return pa.array(hashed % spread, pa.int32())

    def spread(self, keys: pa.Array, partition: str) -> Iterator[tuple[str, pa.Array]]:
        """Keys of one partition, text without nulls, by the id of their file group."""
        ids, numbers = self.list_ids(partition), self.number(keys, pa.repeat(partition, len(keys)))
        for number in pc.unique(numbers).to_pylist():
            yield ids[number], keys.filter(pc.equal(numbers, number))
