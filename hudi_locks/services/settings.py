"""A process's options as far as table services read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hudi_locks.config import Options, compaction_keys, service_keys

__all__ = ["ArchiveSettings", "CleanSettings"]

_AGE_MS: Final = 3_600_000


@dataclass(frozen=True)
class CleanSettings:
    """What a clean keeps, and when it runs.

    Attributes:
        policy: `hoodie.clean.policy`, upper case.
        commits: How many commits can still be read, under KEEP_LATEST_COMMITS.
        hours: For how long back, under KEEP_LATEST_BY_HOURS.
        versions: How many versions of a file group stay, under KEEP_LATEST_FILE_VERSIONS.
        is_incremental: Whether only partitions that changed are looked into.
        threads: How many files are removed side by side.
        is_automatic: Whether a clean follows each write.
        is_async: Whether it does so on a thread of its own.
        trigger_commits: How many commits there must be since the last one.
    """

    policy: str
    commits: int
    hours: int
    versions: int
    is_incremental: bool
    threads: int
    is_automatic: bool
    is_async: bool
    trigger_commits: int

    @classmethod
    def of(cls, options: Mapping[str, object]) -> CleanSettings:
        """Read the options.

        Raises:
            ConfigError: A value is malformed.
        """
        given = Options(options)
        return cls(
            policy=given.get_value(service_keys.CLEAN_POLICY).upper(),
            commits=given.get_value(service_keys.CLEAN_COMMITS_RETAINED),
            hours=given.get_value(service_keys.CLEAN_HOURS_RETAINED),
            versions=given.get_value(service_keys.CLEAN_FILE_VERSIONS_RETAINED),
            is_incremental=given.get_value(service_keys.CLEAN_INCREMENTAL),
            threads=given.get_value(service_keys.CLEAN_PARALLELISM),
            is_automatic=given.get_value(service_keys.CLEAN_AUTOMATIC),
            is_async=given.get_value(service_keys.CLEAN_ASYNC),
            trigger_commits=given.get_value(service_keys.CLEAN_TRIGGER_MAX_COMMITS),
        )

    @property
    def counts_versions(self) -> bool:
        """Whether the policy knows no point in time."""
        return self.policy == service_keys.KEEP_VERSIONS


@dataclass(frozen=True)
class ArchiveSettings:
    """How long the active timeline may grow, and how its history is kept.

    Attributes:
        min_commits: So many commits stay active.
        max_commits: With more than so many, the surplus is archived.
        batch: How many parts of one level of the history are merged into one of the next.
        keep_versions: How many versions of the history stay readable.
        is_automatic: Whether archival follows each write.
        is_async: Whether it does so on a thread of its own.
        delta_commits: So many delta commits that wait for compaction stay active, since they make it due.
        min_age_ms: How long ago an instant must have been completed, ms. A writer that slept since then, or whose
            clock is off, must still find the instant where it was.
    """

    min_commits: int
    max_commits: int
    batch: int
    keep_versions: int
    is_automatic: bool
    is_async: bool
    delta_commits: int
    min_age_ms: int = _AGE_MS

    @classmethod
    def of(cls, options: Mapping[str, object]) -> ArchiveSettings:
        """Read the options.

        Raises:
            ConfigError: A value is malformed.
        """
        given = Options(options)
        return cls(
            min_commits=given.get_value(service_keys.KEEP_MIN_COMMITS),
            max_commits=given.get_value(service_keys.KEEP_MAX_COMMITS),
            batch=given.get_value(service_keys.TIMELINE_COMPACTION_BATCH),
            keep_versions=given.get_value(service_keys.MANIFEST_RETAINED_VERSIONS),
            is_automatic=given.get_value(service_keys.ARCHIVE_AUTOMATIC),
            is_async=given.get_value(service_keys.ARCHIVE_ASYNC),
            delta_commits=given.get_value(compaction_keys.INLINE_MAX_DELTA_COMMITS),
        )
