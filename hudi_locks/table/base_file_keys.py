"""Record keys of base files: which of some a file has, by its footer as far as that tells it, and one of each file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_locks.format.key_filter import KeyFilter
from hudi_locks.storage import Storage
from hudi_locks.table.base_file import (
    FILTER,
    FILTER_TYPE,
    count_rows,
    open_base_file,
    read_base_file,
    refuse_other_count,
)
from hudi_locks.table.meta_columns import RECORD_KEY
from hudi_locks.table.virtual_keys import VirtualKeys

__all__ = ["read_first_key", "search_base_file"]

_ASKED_KEYS: Final = 10_000
"""A filter is asked for so many in the time that a request to a store takes."""
_ROWS_READ_PER_KEY_ASKED: Final = 8
"""To hash one key for a filter takes as long as to read so many."""


def read_first_key(storage: Storage, path: str, *, virtual_keys: VirtualKeys | None = None) -> str | None:
    """The record key of the first row; None for a file without rows. The footer's range may be wider than the keys."""
    columns = [RECORD_KEY] if virtual_keys is None else list(virtual_keys.columns)
    with open_base_file(storage, path) as (_, file):
        for batch in file.iter_batches(batch_size=1, columns=columns):
            keys = batch.column(0) if virtual_keys is None else virtual_keys.make(pa.Table.from_batches([batch]))
            return str(keys[0].as_py())
        return None


def search_base_file(
    storage: Storage, path: str, keys: pa.Array, *, by_filter: bool, virtual_keys: VirtualKeys | None = None
) -> Iterator[pa.ChunkedArray]:
    """Those of some record keys that a base file has, as often as it has them.

    Of row groups whose range has none of them nothing is read.

    Args:
        storage: Of the table.
        path: Of the file.
        keys: Texts, none of them null.
        by_filter: Whether to believe the bloom filter of the footer, if there is one, which spares whole files.
        virtual_keys: See `BaseFileFormat`; such a file is read whole, as far as its keys are made of it.

    Raises:
        DamagedTable: See `read_base_file`.
        StorageError: The store failed.
    """
    if virtual_keys is not None:
        made = map(virtual_keys.make, read_base_file(storage, path, columns=virtual_keys.columns))
        yield from (present.filter(pc.is_in(present, value_set=keys)) for present in made)
        return
    with open_base_file(storage, path) as (_, file):
        places = {group: found for group, found in _find_places(file.metadata, keys) if found.any()}
        told = _ask_filter(file.metadata, keys, places) if by_filter else None
        for group, found in places.items():
            wanted = keys.filter(pa.array(found if told is None else found & told))
            if not len(wanted):
                continue
            present = file.read_row_group(group, columns=[RECORD_KEY]).column(RECORD_KEY).cast(pa.string())
            refuse_other_count(file.metadata, path, len(present), [group])
            yield present.filter(pc.is_in(present, value_set=wanted))


def _find_places(metadata: pq.FileMetaData, keys: pa.Array) -> Iterator[tuple[int, npt.NDArray[np.bool_]]]:
    """By row group, which of the keys are in its range; Parquet's own order of texts is that of their bytes."""
    texts, column = pc.cast(keys, pa.binary()), metadata.schema.names.index(RECORD_KEY)
    for group in range(metadata.num_row_groups):
        told = metadata.row_group(group).column(column).statistics
        if told is None or not told.has_min_max:
            yield group, np.ones(len(keys), dtype=np.bool_)
        else:
            within = pc.and_(pc.greater_equal(texts, told.min_raw), pc.less_equal(texts, told.max_raw))
            yield group, within.to_numpy(zero_copy_only=False)


def _ask_filter(
    metadata: pq.FileMetaData, keys: pa.Array, places: Mapping[int, npt.NDArray[np.bool_]]
) -> npt.NDArray[np.bool_] | None:
    """Which keys the footer's filter does not rule out; None if it has none that can be read, or one costs too much."""
    every = np.zeros(len(keys), dtype=np.bool_)
    wanted = np.logical_or.reduce([every, *places.values()])
    if not 0 < wanted.sum() <= max(_ASKED_KEYS, count_rows(metadata, places) // _ROWS_READ_PER_KEY_ASKED):
        return None
    told: dict[bytes, bytes] = metadata.metadata or {}
    key_filter = KeyFilter.decode(*(told.get(name.encode(), b"").decode() for name in (FILTER_TYPE, FILTER)))
    if key_filter is None:
        return None
    every[wanted] = key_filter.may_hold(pa.chunked_array([keys.filter(pa.array(wanted))]))
    return every
