"""Named places in begin, publish and rollback where a test may stop a writer. A seam for tests; costs one call."""

from __future__ import annotations

import enum
import os
import signal
from collections.abc import Callable, Mapping
from typing import Final

from hudi_locks.errors import ConfigError

__all__ = ["STOP_AT", "StopPoint", "Tracer", "tracer_from"]

STOP_AT: Final = "HUDI_LOCKS_STOP_AT"
"""Environment variable `<point>` or `<point>:kill` (SIGKILL), `<point>:stop` (SIGSTOP)."""


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
    PUBLISH_RECONCILED = "publish:reconciled"
    PUBLISH_TIMED = "publish:timed"
    PUBLISH_CLAIMED = "publish:claimed"
    PUBLISH_STAGED = "publish:staged"
    PUBLISH_LOOKED = "publish:looked"
    PUBLISH_COMPLETED = "publish:completed"
    PUBLISH_LOOKED_AGAIN = "publish:looked-again"
    PUBLISH_CLEANED = "publish:cleaned"
    PUBLISH_UNLOCKED = "publish:unlocked"
    PLAN_STAGED = "plan:staged"
    PLAN_LOOKED = "plan:looked"
    SCHEDULE_PLANNED = "schedule:planned"
    SCHEDULE_CLAIMED = "schedule:claimed"
    SCHEDULE_REQUESTED = "schedule:requested"
    RESUME_HEARTBEAT = "resume:heartbeat"
    RESUME_INFLIGHT = "resume:inflight"
    ROLLBACK_CLAIMED = "rollback:claimed"
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


def tracer_from(environment: Mapping[str, str]) -> Tracer:
    """The tracer that the environment asks for: it does nothing unless `STOP_AT` is set.

    Raises:
        ConfigError: `STOP_AT` names no point or no way to stop.
    """
    asked = environment.get(STOP_AT, "")
    if not asked:
        return lambda _point: None
    name, _, way = asked.rpartition(":")
    name, way = (name, way) if way in _SIGNALS else (asked, "kill")
    if name not in {point.value for point in StopPoint}:
        names = ", ".join(point.value for point in StopPoint)
        raise ConfigError(f"{STOP_AT}={asked} names no stop point; known are {names}", key=STOP_AT)
    return lambda point: os.kill(os.getpid(), _SIGNALS[way]) if point.value == name else None
