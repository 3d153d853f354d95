"""What a person is told of waiting: how long it may take, and who waited in vain for what."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from hudi_locks.config import Options, find_key, lock_keys, table_keys
from hudi_locks.errors import AcquireTimeout, LockError
from hudi_locks.lock.acquisition import Acquisition, RetryPolicy
from hudi_locks.lock.held import Held
from hudi_locks.lock.lease import Holder, LockScope
from hudi_locks.lock.provider import LockProvider
from hudi_locks.redaction import hide_secrets

__all__ = ["explain_timeout", "explain_wait", "show_command"]

_WAITS = {
    *(key.name for key in lock_keys.WAIT_KEYS),
    lock_keys.HEARTBEAT_INTERVAL_MS.name,
    lock_keys.APP_ID.name,
    lock_keys.PROVIDER.name,
}
_PASSWORD = re.compile(r"//[^/@:]*:[^/@]*@")
"""The user and password that an address may carry."""
_MOST_ASKED = 10
_MINUTES_FROM_S = 120
_PLACES = (
    "hoodie.write.lock.",
    "hoodie.fs.atomic_creation.",
    "hudi_locks.filesystem.",
    "hudi_locks.storage.",
    "hudi_locks.chain.",
)


def explain_timeout(
    acquisition: Acquisition, provider: LockProvider, *, name: str, local: Held | None
) -> AcquireTimeout:
    """The error for a lock that was not acquired; asks the lock service who holds it, if it answered the last request.

    Args:
        acquisition: The one that ended in vain.
        provider: Whom it asked.
        name: How the provider was asked for.
        local: The hold of another thread of this process, if it is that which stood in the way.
    """
    waited_s = provider.clock.monotonic() - acquisition.started_s
    is_silent, scopes = acquisition.is_unanswered, acquisition.scopes
    scope, holder, error = (scopes[0], None, None) if is_silent else _find_held(provider, scopes)
    last_error = error or acquisition.last_error
    command = show_command(provider.options, name, scope)
    said = f"the lock on {acquisition} was not free within {waited_s:.1f} s and {acquisition.attempts} attempts; "
    said += _say_holder(holder, local, is_known=not is_silent and error is None)
    said += f"; the lock service last failed with: {last_error}" if last_error else ""
    return AcquireTimeout(
        f"{said}; to look again: {command}",
        scope=scope,
        key=holder.key if holder else str(scope),
        holder=holder.owner if holder else (local.owner if local else None),
        age_ms=holder.age_ms if holder else None,
        last_error=last_error,
        attempts=acquisition.attempts,
        waited_s=waited_s,
        command=command,
    )


def explain_wait(policy: RetryPolicy, *, waits_at_service: bool) -> str:
    """How long a writer waits for its lock at most, and how that comes about.

    Args:
        policy: Its waits.
        waits_at_service: Whether its provider claims TIMED_WAIT.
    """
    longest_s = policy.longest_wait_s(waits_at_service=waits_at_service)
    return (
        f"A writer gives up after at most {_say_duration(longest_s)}: {policy.attempts} attempts of up to"
        f" {policy.wait_s:g} s, with pauses of up to {policy.client_pause_s:g} s between them; "
        + _explain_attempt(policy, waits_at_service=waits_at_service)
        + " What the requests themselves take comes on top, and where other threads of the process want the lock too,"
        f" up to {_say_duration(policy.worst_case_s)} in their line."
    )


def _explain_attempt(policy: RetryPolicy, *, waits_at_service: bool) -> str:
    if waits_at_service:
        return f"one attempt waits at the lock service itself, so that {lock_keys.NUM_RETRIES.name} has no say."
    if not policy.num_retries:
        return "one attempt asks the lock service once, and does not wait."
    return (
        f"one attempt asks the lock service up to {policy.num_retries + 1} times, {policy.pause_s:g} to"
        f" {policy.max_pause_s:g} s apart."
    )


def _say_duration(duration_s: float) -> str:
    return f"{duration_s:g} s" if duration_s < _MINUTES_FROM_S else f"{duration_s / 60:.1f} minutes"


def _find_held(
    provider: LockProvider, scopes: Sequence[LockScope]
) -> tuple[LockScope, Holder | None, LockError | None]:
    """The first of the scopes that somebody holds, and who; else the very first one."""
    error = None
    for scope in scopes[:_MOST_ASKED]:
        holder, error = _ask_holder(provider, scope)
        if holder or error:
            return scope, holder, error
    return scopes[0], None, error


def _ask_holder(provider: LockProvider, scope: LockScope) -> tuple[Holder | None, LockError | None]:
    try:
        return provider.holder(scope), None
    except LockError as error:
        return None, error


def _say_holder(holder: Holder | None, local: Held | None, *, is_known: bool) -> str:
    if holder is not None:
        age = "" if holder.age_ms is None else f", last sign of life {holder.age_ms / 1000:.0f} s ago"
        return f"it is held by {holder.owner} at {holder.key}{age}"
    if local is not None:
        return f"it is held by {local.owner}, in this process"
    return "nobody seems to hold it now" if is_known else "who holds it is not known"


def show_command(options: Options, name: str, scope: LockScope) -> str:
    """The command that shows the holder of `scope`, ready to be typed; it repeats no secret."""
    words = ["hudi-locks", "show"]
    base = options.find(table_keys.BASE_PATH)
    words += [base] if base else []
    if not scope.is_table:
        words += ["--file-group", f"{scope.partition}/{scope.file_id}"]
    words += ["--provider", name]
    for option, value in options.items():
        if option.startswith((*_PLACES, table_keys.TABLE_NAME.name)) and not _is_left_out(option):
            words += ["--option", f"{option}={hide_secrets(_PASSWORD.sub('//', value))}"]
    return shlex.join(words)


def _is_left_out(option: str) -> bool:
    key = find_key(option)
    return key is None or key.secret or key.name in _WAITS
