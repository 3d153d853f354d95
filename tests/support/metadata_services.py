"""Services of the metadata table of a harness, and what there is before and after them."""

from __future__ import annotations

from typing import Any

from metadata_harness import MetadataHarness
from transaction_harness import OPEN_LOCK

from hudi_locks.format import CompactionPlan, Instant, State
from hudi_locks.format.compaction_plan import CompactionOperation
from hudi_locks.services.metadata_services import MetadataServices
from hudi_locks.services.settings import ArchiveSettings, CleanSettings

__all__ = ["HOUR_S", "logs", "plan_wrongly", "put", "records", "services"]

HOUR_S = 3_700.0


def services(
    kept: MetadataHarness, *, trace: Any = None, commits: int = 3, options: dict[str, str] | None = None
) -> MetadataServices:
    given = options or {}
    return MetadataServices(
        kept.open(trace=trace, locks=OPEN_LOCK).coordinator,
        compact_commits=commits,
        clean=CleanSettings.of(given),
        archive=ArchiveSettings.of(given),
    )


def records(kept: MetadataHarness) -> dict[str, Any]:
    view = kept.metadata_table.view(kept.timeline())
    return {part.value: view.read(part) for part in kept.parts}


def logs(kept: MetadataHarness) -> int:
    """How many logs are merged with each read."""
    view = kept.metadata_table.view(kept.timeline())
    return sum(len(piece.logs) for part in kept.parts for piece in view.list_slices(part))


def put(kept: MetadataHarness, count: int) -> list[str]:
    return [kept.put(f"p/g-{number % 3}") for number in range(count)]


def plan_wrongly(kept: MetadataHarness, *groups: str) -> Instant:
    """A plan that names file groups of `files` and none of their logs, of somebody who died an hour ago."""
    newest = kept.own_timeline().newest_time() or ""
    begun = Instant(f"{newest[:-1]}9", "compaction", State.REQUESTED)
    operations = tuple(CompactionOperation("files", group, "", "", ()) for group in groups)
    kept.storage.replace(kept.own_layout.path(begun), CompactionPlan(operations).encode())
    kept.storage.replace(kept.own_layout.path(begun.as_inflight()), b"")
    kept.clock.advance(HOUR_S)
    return begun
