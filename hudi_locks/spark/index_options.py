"""Which index a writer's options and its table name, and what they say of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from hudi_locks.config import Key, Options, clustering_keys, index_keys
from hudi_locks.errors import ConfigError, NoEffectWarning
from hudi_locks.format import BucketCounts
from hudi_locks.format.key_filter import FilterSize
from hudi_locks.spark.table_options import LAYOUT_KEYS
from hudi_locks.table import TableConfig

__all__ = [
    "MOVING",
    "hashes_consistently",
    "read_bucket_counts",
    "read_index_type",
    "read_key_filter",
    "refuse_rings",
    "take_index_of",
    "warn_of_other_indexes",
]

_INDEXES = (
    "SIMPLE",
    "BLOOM",
    "BUCKET",
    "GLOBAL_SIMPLE",
    "GLOBAL_BLOOM",
    "RECORD_INDEX",
    "GLOBAL_RECORD_LEVEL_INDEX",
    "RECORD_LEVEL_INDEX",
)
MOVING: Final[Mapping[str, Key[bool]]] = {
    "GLOBAL_SIMPLE": index_keys.SIMPLE_INDEX_UPDATE_PARTITION_PATH,
    "GLOBAL_BLOOM": index_keys.BLOOM_INDEX_UPDATE_PARTITION_PATH,
    "RECORD_INDEX": index_keys.RECORD_INDEX_UPDATE_PARTITION_PATH,
    "GLOBAL_RECORD_LEVEL_INDEX": index_keys.RECORD_INDEX_UPDATE_PARTITION_PATH,
}
"""Whether a row moves whose key lies in another partition than its columns say, by the index that finds it there."""
_BY_RING: Final = "CONSISTENT_HASHING"
_IN_PARTITIONS: Final = ("SIMPLE", "BLOOM", "RECORD_LEVEL_INDEX")
_BY_RECORD_INDEX: Final = ("RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX")
_SIZES_FILTER: Final[Mapping[str, Key[int]]] = MappingProxyType(
    {"SIMPLE": index_keys.BLOOM_NUM_ENTRIES, "DYNAMIC_V0": index_keys.BLOOM_DYNAMIC_MAX_ENTRIES}
)
"""Which limit a filter has, by its kind."""
_OF_FILTERS: Final[tuple[Key[Any], ...]] = (
    index_keys.BLOOM_FPP,
    index_keys.BLOOM_FILTER_TYPE,
    *_SIZES_FILTER.values(),
)
_OF_BUCKETS: Final[tuple[Key[Any], ...]] = (
    index_keys.BUCKET_INDEX_NUM_BUCKETS,
    index_keys.BUCKET_INDEX_HASH_FIELD,
    index_keys.BUCKET_INDEX_PARTITION_EXPRESSIONS,
)
_OF_RINGS: Final[tuple[Key[Any], ...]] = (
    index_keys.BUCKET_INDEX_MAX_NUM_BUCKETS,
    index_keys.BUCKET_INDEX_MIN_NUM_BUCKETS,
    index_keys.BUCKET_INDEX_SPLIT_THRESHOLD,
    index_keys.BUCKET_INDEX_MERGE_THRESHOLD,
)
_OF_SIZES: Final[tuple[Key[Any], ...]] = (
    clustering_keys.SMALL_FILE_LIMIT,
    clustering_keys.TARGET_FILE_MAX_BYTES,
    clustering_keys.MAX_BYTES_PER_GROUP,
    clustering_keys.SINGLE_GROUP,
)
"""How clustering joins small files, which it does not do with buckets."""


def take_index_of(config: TableConfig, options: Options) -> Options:
    """The options, with what the table remembers of its index.

    Raises:
        ConfigError: They name an index that would not find the table's rows, or other settings of it.
    """
    kept = {key.name: config.extra[key.name] for key in LAYOUT_KEYS if key.name in config.extra}
    index = index_keys.INDEX_TYPE
    if (
        options.has(index)
        and index.name in kept
        and _finds_the_same(options.get_value(index), kept[index.name], config)
    ):
        del kept[index.name]
    for key in LAYOUT_KEYS:
        name = options.name_used(key)
        if name and key.name in kept and options[name].lower() != kept[key.name].lower():
            raise ConfigError(
                f"{name}={options[name]}, but the table was made with {kept[key.name]}, and its rows lie accordingly;"
                " leave the option out",
                key=key.name,
                asked=options[name],
                table=kept[key.name],
            )
    return options | kept


def _finds_the_same(asked: str, kept: str, config: TableConfig) -> bool:
    """Whether rows that were written under one index are found by the other.

    Where there is a record index, each key was in one row alone when it was made.
    """
    asked, kept = asked.upper(), kept.upper()
    if asked in _BY_RECORD_INDEX and config.has_record_index:
        return kept in (*_IN_PARTITIONS, *MOVING)
    return any({asked, kept} <= {*family} for family in (_IN_PARTITIONS, MOVING))


def read_bucket_counts(options: Options) -> BucketCounts:
    """Buckets of each partition."""
    expressions = options.find(index_keys.BUCKET_INDEX_PARTITION_EXPRESSIONS) or ""
    return BucketCounts.parse(expressions, options.get_value(index_keys.BUCKET_INDEX_NUM_BUCKETS))


def read_index_type(options: Options) -> str:
    """The index, as Hudi names it.

    Raises:
        ConfigError: It is not offered.
    """
    key = index_keys.INDEX_TYPE
    asked = options.get_value(key).upper()
    if asked not in _INDEXES:
        message = (
            f"{key.name}={asked} is not offered: use GLOBAL_SIMPLE, if a key is to have one row in the whole table,"
            " SIMPLE, if it is to have one in each partition, or BUCKET, which computes the file group of a key"
        )
        raise ConfigError(message, key=key.name, value=asked)
    return asked


def read_key_filter(options: Options, index: str) -> FilterSize | None:
    """Of the bloom filters of base files; None for none: they cost time, and help who looks keys up by them alone.

    Raises:
        ConfigError: A value cannot be used.
    """
    key = index_keys.BLOOM_FPP
    text = options.get_value(key)
    try:
        error_rate = float(text)
    except ValueError:
        error_rate = 0.0
    if not 0 < error_rate < 1:
        raise ConfigError(f"{key.name}={text} is no number above 0 and below 1", key=key.name, value=text)
    if not _has_filters(options, index):
        return None
    return FilterSize(options.get_value(_SIZES_FILTER[_read_filter_kind(options)]), error_rate)


def _has_filters(options: Options, index: str) -> bool:
    asked = options.find(index_keys.BLOOM_FILTER_ENABLED)
    return index.endswith("BLOOM") if asked is None else asked


def _read_filter_kind(options: Options) -> str:
    return options.get_value(index_keys.BLOOM_FILTER_TYPE).upper()


def hashes_consistently(options: Options) -> bool:
    """Whether a bucket index goes by a ring in each partition, whose file groups may be split and joined."""
    is_bucketed = options.get_value(index_keys.INDEX_TYPE).upper() == "BUCKET"
    return is_bucketed and options.get_value(index_keys.BUCKET_INDEX_ENGINE).upper() == _BY_RING


def refuse_rings(options: Options) -> None:
    """Whether the index of a copy-on-write table has no rings: JVM Hudi makes none of that kind.

    Raises:
        ConfigError: It has.
    """
    if hashes_consistently(options):
        key = index_keys.BUCKET_INDEX_ENGINE.name
        message = (
            f"{key}={_BY_RING} is for MERGE_ON_READ tables alone, as in JVM Hudi: use SIMPLE, or make such a table"
        )
        raise ConfigError(message, key=key, value=_BY_RING)


def warn_of_other_indexes(given: Options, options: Options) -> None:
    """Warn of settings of an index that a writer does not have, so that its owner does not wait for what they ask for.

    Args:
        given: What the owner said.
        options: The same, with what the table remembers of its index.
    """
    for key, why in _list_idle(options, read_index_type(options)):
        if name := given.name_used(key):
            warnings.warn(f"{name} has no effect here: {why}", NoEffectWarning, stacklevel=4)


def _list_idle(options: Options, index: str) -> Iterator[tuple[Key[Any], str]]:
    """Keys that do not count under an index, each with the reason."""
    chosen = f"{index_keys.INDEX_TYPE.name} is {index}"
    if index != "BUCKET":
        yield from ((key, f"{chosen}, which has no buckets") for key in (*_OF_BUCKETS, *_OF_RINGS))
    else:
        yield from _list_idle_of_buckets(options)
    others = (key for key in dict.fromkeys(MOVING.values()) if key is not MOVING.get(index))
    yield from ((key, f"{chosen}, and it is of another index") for key in others)
    if not _has_filters(options, index):
        way_out = f"give {index_keys.BLOOM_FILTER_ENABLED.name}=true, or a bloom index, if they are to have one"
        yield from ((key, f"{chosen}, and base files get no bloom filter; {way_out}") for key in _OF_FILTERS)
        return
    kind = _read_filter_kind(options)
    limits = (key for name, key in _SIZES_FILTER.items() if name != kind)
    yield from ((key, f"{index_keys.BLOOM_FILTER_TYPE.name} is {kind}, which has another limit") for key in limits)


def _list_idle_of_buckets(options: Options) -> Iterator[tuple[Key[Any], str]]:
    """The same of a bucket index: clustering splits and merges buckets of a ring, and leaves others alone."""
    engine = index_keys.BUCKET_INDEX_ENGINE.name
    if not hashes_consistently(options):
        yield from ((key, f"{engine} is not {_BY_RING}, and the number of buckets stays") for key in _OF_RINGS)
        return
    first = index_keys.BUCKET_INDEX_NUM_BUCKETS.name
    yield index_keys.BUCKET_INDEX_PARTITION_EXPRESSIONS, f"{engine} is {_BY_RING}: all partitions begin with {first}"
    way_out = f"{_OF_RINGS[2].name} and {_OF_RINGS[3].name} say which"
    yield from ((key, f"{engine} is {_BY_RING}: clustering splits and merges buckets; {way_out}") for key in _OF_SIZES)
