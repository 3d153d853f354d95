"""A job's options as far as the splits and merges of buckets read them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hudi_locks.config import Key, Options, clustering_keys, file_keys, index_keys
from hudi_locks.errors import ConfigError

__all__ = ["ResizeSettings", "choose_resizing"]

_ENGINE = index_keys.BUCKET_INDEX_ENGINE
_STRATEGY = clustering_keys.PLAN_STRATEGY_CLASS


@dataclass(frozen=True)
class ResizeSettings:
    """When the buckets of a partition are split and merged.

    Attributes:
        first_buckets: With how many a partition begins.
        most_buckets: Up to how many.
        least_buckets: Down to how many.
        split_bytes: A larger file group is split.
        merge_bytes: Neighbours up to this are merged.
    """

    first_buckets: int
    most_buckets: int
    least_buckets: int
    split_bytes: int
    merge_bytes: int

    @classmethod
    def of(cls, options: Options) -> ResizeSettings:
        """Read the options; bounds that leave out the first number of buckets give way to that, as in JVM Hudi.

        Raises:
            ConfigError: A value is malformed.
        """
        first = options.get_value(index_keys.BUCKET_INDEX_NUM_BUCKETS)
        most = options.find(index_keys.BUCKET_INDEX_MAX_NUM_BUCKETS) or first
        least = options.find(index_keys.BUCKET_INDEX_MIN_NUM_BUCKETS) or first
        size = options.get_value(file_keys.PARQUET_MAX_FILE_SIZE)
        split = int(size * _read_factor(options, index_keys.BUCKET_INDEX_SPLIT_THRESHOLD))
        merge = int(size * _read_factor(options, index_keys.BUCKET_INDEX_MERGE_THRESHOLD))
        return cls(first, max(most, first), min(least, first), split, merge)


def choose_resizing(options: Options) -> ResizeSettings | None:
    """How buckets are resized, where the table has such that can be; None for another index.

    Args:
        options: Of the job, with what the table remembers of its index.

    Raises:
        ConfigError: The plan strategy is not for such a table, or a value is malformed.
    """
    is_bucketed = options.get_value(index_keys.INDEX_TYPE).upper() == "BUCKET"
    has_rings = is_bucketed and options.get_value(_ENGINE).upper() == "CONSISTENT_HASHING"
    asked = (options.find(_STRATEGY) or "").rpartition(".")[2].lower()
    wanted = (clustering_keys.BY_BUCKET if has_rings else clustering_keys.BY_SIZE).rpartition(".")[2]
    if asked not in ("", wanted.lower()):
        rings = f"{index_keys.INDEX_TYPE.name}=BUCKET and {_ENGINE.name}=CONSISTENT_HASHING"
        message = (
            f"{_STRATEGY.name}={options[_STRATEGY.name]} is not for this table: a table with {rings} is clustered by"
            f" {clustering_keys.BY_BUCKET}, and no other by that; leave the option out"
        )
        raise ConfigError(message, key=_STRATEGY.name, value=options[_STRATEGY.name])
    return ResizeSettings.of(options) if has_rings else None


def _read_factor(options: Options, key: Key[str]) -> float:
    text = options.get_value(key)
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not 0 <= factor < math.inf:
        raise ConfigError(f"{key.name}={text} is no number from 0 on: {key.doc}", key=key.name, value=text)
    return factor
