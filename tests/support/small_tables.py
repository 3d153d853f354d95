"""Options by which both kinds of writers keep a table small, and a look at what was archived."""

from __future__ import annotations

from dataclasses import replace

from hudi_locks.spark import HoodieTable
from hudi_locks.timeline.archive import list_archived_since

KEEP = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
THEIR_SERVICES = {
    **{key.replace(".", "__"): value for key, value in KEEP.items()},
    "hoodie__clean__automatic": "true",
    "hoodie__archive__automatic": "true",
    "hoodie__commits__archival__batch": "1",
    "hoodie__timeline__compaction__batch__size": "3",
}


def archive_now(table: HoodieTable) -> int:
    """Archive what was completed a moment ago."""
    archiver = table.services._archiver
    archiver._settings = replace(archiver._settings, min_age_ms=0)
    return table.services.archive().archived


def archived(table: HoodieTable) -> list[list[str]]:
    """Requested time, completion time and action of each archived instant."""
    found = list_archived_since(table.table.storage, table.table.layout, completed_after="20200101000000000")
    return sorted([instant.requested, instant.completion, instant.action] for instant in found)
