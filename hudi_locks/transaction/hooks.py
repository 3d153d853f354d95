"""What others hang on the steps of a write: participants of a commit, and places where a test stops a writer.

The participants make durable what must be before a claim publishes a write: one list, which every publish goes through.
Where nobody asks, a stop point costs one call.
"""

from __future__ import annotations

import enum
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from hudi_locks.errors import ConfigError
from hudi_locks.format import CommitMetadata, Instant
from hudi_locks.timeline import Timeline

__all__ = ["STOP_AT", "CommitParticipant", "PreparedCommit", "StopPoint", "Tracer", "tracer_from"]

STOP_AT: Final = "HUDI_LOCKS_STOP_AT"
"""Environment variable `<point>` or `<point>:kill` (SIGKILL), `<point>:stop` (SIGSTOP)."""


@dataclass(frozen=True)
class PreparedCommit:
    """A commit that found no conflict, and is about to be claimed.

    Attributes:
        instant: Inflight.
        metadata: What its completed file will hold.
        timeline: On which was decided.
    """

    instant: Instant
    metadata: CommitMetadata
    timeline: Timeline


class CommitParticipant(Protocol):
    """A part of the table beside its timeline that readers look at as soon as a commit is completed.

    Whoever finds the claim completes the commit, perhaps in another process: nothing is prepared then any more.
    """

    def prepare(self, commit: PreparedCommit) -> None:
        """Make durable what readers of the commit will need. Runs inside the table lock, before the claim.

        It is asked again when another claim was first, and what it made may come to nothing: the write can be rolled
        back afterwards, by any process.

        Raises:
            WriteAborted: The commit must not be published.
            StorageError: The store failed; the write is rolled back.
        """


class StopPoint(enum.Enum):
    """Where a writer may be stopped; each names what has just been done."""

    BEGIN_LOCKED = "begin:locked"
    BEGIN_FORWARDED = "begin:forwarded"
    BEGIN_LISTED = "begin:listed"
    BEGIN_HEARTBEAT = "begin:heartbeat"
    BEGIN_REQUESTED = "begin:requested"
    BEGIN_UNLOCKED = "begin:unlocked"
    BEGIN_INFLIGHT = "begin:inflight"
    PUBLISH_LOCKED = "publish:locked"
    PUBLISH_FORWARDED = "publish:forwarded"
    PUBLISH_CHECKED = "publish:checked"
    PUBLISH_PREPARED = "publish:prepared"
    PUBLISH_TIMED = "publish:timed"
    PUBLISH_CLAIMED = "publish:claimed"
    PUBLISH_SETTLING = "publish:settling"
    PUBLISH_METADATA_BEGUN = "publish:metadata-begun"
    PUBLISH_NAMED = "publish:named"
    PUBLISH_METADATA_COMPLETED = "publish:metadata-completed"
    PUBLISH_STAGED = "publish:staged"
    PUBLISH_LOOKED = "publish:looked"
    PUBLISH_COMPLETED = "publish:completed"
    PUBLISH_LOOKED_AGAIN = "publish:looked-again"
    PUBLISH_CLEANED = "publish:cleaned"
    PUBLISH_UNLOCKED = "publish:unlocked"
    PLAN_STAGED = "plan:staged"
    PLAN_LOOKED = "plan:looked"
    VERSION_CLAIMED = "version:claimed"
    VERSION_CONVERTED = "version:converted"
    VERSION_SAID = "version:said"
    SCHEDULE_PLANNED = "schedule:planned"
    SCHEDULE_CLAIMED = "schedule:claimed"
    SCHEDULE_REQUESTED = "schedule:requested"
    RESUME_HEARTBEAT = "resume:heartbeat"
    RESUME_INFLIGHT = "resume:inflight"
    ROLLBACK_CLAIMED = "rollback:claimed"
    ROLLBACK_CANCELLED = "rollback:cancelled"
    ROLLBACK_METADATA_TAKEN_BACK = "rollback:metadata-taken-back"
    ROLLBACK_PLANNED = "rollback:planned"
    ROLLBACK_FILES_DELETED = "rollback:files-deleted"
    ROLLBACK_INFLIGHT_DELETED = "rollback:inflight-deleted"
    ROLLBACK_REQUESTED_DELETED = "rollback:requested-deleted"
    ROLLBACK_COMPLETED = "rollback:completed"
    SERVICE_PLANNED = "service:planned"
    SERVICE_CLAIMED = "service:claimed"
    SERVICE_REQUESTED = "service:requested"
    SERVICE_INFLIGHT = "service:inflight"
    SERVICE_DONE = "service:done"
    SERVICE_STAGED = "service:staged"
    SERVICE_LOOKED = "service:looked"
    SERVICE_COMPLETED = "service:completed"
    RESTORE_UNDONE = "restore:undone"


Tracer = Callable[[StopPoint], None]
_SIGNALS: Final = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def tracer_from(environment: Mapping[str, str]) -> Tracer | None:
    """The tracer that the environment asks for; None unless `STOP_AT` is set.

    Raises:
        ConfigError: `STOP_AT` names no point or no way to stop.
    """
    asked = environment.get(STOP_AT, "")
    if not asked:
        return None
    name, _, way = asked.rpartition(":")
    name, way = (name, way) if way in _SIGNALS else (asked, "kill")
    if name not in {point.value for point in StopPoint}:
        names = ", ".join(point.value for point in StopPoint)
        raise ConfigError(f"{STOP_AT}={asked} names no stop point; known are {names}", key=STOP_AT)
    return lambda point: os.kill(os.getpid(), _SIGNALS[way]) if point.value == name else None
