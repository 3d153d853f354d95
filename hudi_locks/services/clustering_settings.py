"""A job's options as far as clustering reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hudi_locks.config import Options, clustering_keys, has_buckets, index_keys
from hudi_locks.errors import ConfigError
from hudi_locks.services.resize_settings import ResizeSettings, choose_resizing

__all__ = ["ClusteringSettings"]

_OF_INDEX = tuple(
    key.name for key in (index_keys.INDEX_TYPE, index_keys.BUCKET_INDEX_ENGINE, index_keys.BUCKET_INDEX_NUM_BUCKETS)
)


@dataclass(frozen=True)
class ClusteringSettings:
    """What is clustered, when, and how.

    Attributes:
        sort_columns: Columns that order the rows; none to only join small files.
        small_file_bytes: Base files below this are taken.
        target_bytes: About the size of the files written.
        group_bytes: How much is sorted together.
        most_groups: How many such groups a plan has.
        sorts_single_files: Whether a file that is alone in its group is taken too.
        inline_commits: How many commits make inline clustering due; 0 if it is off.
        async_commits: The same of asynchronous clustering.
        is_bucketed: Whether the table has a bucket index.
        resizing: When buckets are split and merged; None if the table has none of consistent hashing.
        filter_mode: NONE, RECENT_DAYS or SELECTED_PARTITIONS.
        lookback: How many partitions RECENT_DAYS takes.
        skipped: How many of the last ones it leaves out first.
        bounds: First and last partition of SELECTED_PARTITIONS; "" where there is no bound.
        selected: Partitions that alone are taken; all if empty.
        pattern: Matches the whole path of every partition that is taken; "" for any.
    """

    sort_columns: tuple[str, ...]
    small_file_bytes: int
    target_bytes: int
    group_bytes: int
    most_groups: int
    sorts_single_files: bool
    inline_commits: int
    async_commits: int
    is_bucketed: bool
    resizing: ResizeSettings | None
    filter_mode: str
    lookback: int
    skipped: int
    bounds: tuple[str, str]
    selected: frozenset[str]
    pattern: str

    @classmethod
    def of(
        cls,
        options: Mapping[str, object],
        *,
        table_properties: Mapping[str, object],
        sort_by: Sequence[str] | None = None,
    ) -> ClusteringSettings:
        """Read the options.

        Args:
            options: Hudi's keys.
            table_properties: Of the table, for its index.
            sort_by: In place of the option for the columns to sort by.

        Raises:
            ConfigError: A value is malformed.
        """
        given, table = Options(options), Options(table_properties)
        columns = _split(given.find(clustering_keys.SORT_COLUMNS)) if sort_by is None else tuple(sort_by)
        return cls(
            sort_columns=columns,
            small_file_bytes=given.get_value(clustering_keys.SMALL_FILE_LIMIT),
            target_bytes=given.get_value(clustering_keys.TARGET_FILE_MAX_BYTES),
            group_bytes=given.get_value(clustering_keys.MAX_BYTES_PER_GROUP),
            most_groups=given.get_value(clustering_keys.MAX_NUM_GROUPS),
            sorts_single_files=bool(columns) and given.get_value(clustering_keys.SINGLE_GROUP),
            inline_commits=_due(given, inline=True),
            async_commits=_due(given, inline=False),
            is_bucketed=has_buckets(table, given),
            resizing=choose_resizing(given | {key: value for key, value in table.items() if key in _OF_INDEX}),
            filter_mode=given.get_value(clustering_keys.PARTITION_FILTER_MODE).upper(),
            lookback=given.get_value(clustering_keys.LOOKBACK_PARTITIONS),
            skipped=given.get_value(clustering_keys.SKIP_PARTITIONS),
            bounds=(
                given.find(clustering_keys.BEGIN_PARTITION) or "",
                given.find(clustering_keys.END_PARTITION) or "",
            ),
            selected=frozenset(_split(given.find(clustering_keys.PARTITION_SELECTED))),
            pattern=_check_pattern(given.find(clustering_keys.PARTITION_REGEX) or ""),
        )

    def select(self, partitions: Iterable[str]) -> list[str]:
        """Those of the partitions that are clustered, in order."""
        found = sorted(path for path in partitions if not self.selected or path in self.selected)
        found = [path for path in found if not self.pattern or re.fullmatch(self.pattern, path)]
        if self.filter_mode == "SELECTED_PARTITIONS":
            first, last = self.bounds
            return [path for path in found if path >= first and (not last or path <= last)]
        if self.filter_mode == "RECENT_DAYS":
            latest = sorted(found, reverse=True)
            return sorted(latest[self.skipped : self.skipped + self.lookback])
        return found


def _split(names: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (names or "").split(",") if name.strip())


def _due(options: Options, *, inline: bool) -> int:
    switch = clustering_keys.INLINE if inline else clustering_keys.ASYNC_ENABLED
    count = clustering_keys.INLINE_MAX_COMMITS if inline else clustering_keys.ASYNC_MAX_COMMITS
    return options.get_value(count) if options.get_value(switch) else 0


def _check_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        key = clustering_keys.PARTITION_REGEX.name
        raise ConfigError(f"{key}={pattern} is no regular expression: {error}", key=key) from error
    return pattern
