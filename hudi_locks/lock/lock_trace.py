"""The spans of one acquisition: what was asked for, who stood in the way, and how long the lock was held."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from hudi_locks.errors import LockError
from hudi_locks.lock.lease import LockScope, Owner
from hudi_locks.lock.provider import LockProvider
from hudi_locks.observe import NO_SPAN, Metrics, Span, SpanName

__all__ = ["LockTrace"]

_MOST_NAMED: Final = 10


class LockTrace:
    """Two spans: `hudi.lock`, from the asking to the release, and in it `hudi.lock.acquire`, the block of this context.

    The record of the lock names the first one, where it has room. So whoever waits for the lock can link to it.

    Args:
        whole: The first.
        acquire: The second.
    """

    def __init__(self, whole: Span = NO_SPAN, acquire: Span = NO_SPAN) -> None:
        self._whole = whole
        self._acquire = acquire
        self._has_met = not acquire.is_on
        self._holds = 0

    @classmethod
    def start(cls, metrics: Metrics, scopes: Sequence[LockScope], provider: str) -> LockTrace:
        """The spans of what is asked for now; `provider` is how its provider was asked for."""
        if metrics.tracing is None:
            return _OFF
        named = [str(scope) for scope in scopes[:_MOST_NAMED]]
        whole = metrics.span(SpanName.LOCK, lock_scopes=named, lock_provider=provider)
        acquire = metrics.span(SpanName.LOCK_ACQUIRE, within=whole, lock_scopes=named, lock_provider=provider)
        return cls(whole, acquire)

    def mark(self, owner: Owner) -> Owner:
        """The owner, with what its record is to tell of the trace."""
        return replace(owner, trace=self._whole.traceparent) if self._whole.traceparent else owner

    def meet(self, owner: Owner, token: str = "") -> None:
        """Somebody holds it: link to the first of them."""
        if not self._has_met:
            self._has_met = True
            self._acquire.note(lock_holder=str(owner), lock_holder_token=token or None)
            self._acquire.link(owner.trace)

    def ask_holder(self, provider: LockProvider, scopes: Sequence[LockScope]) -> None:
        """Ask the lock service who stands in the way, once, and only where somebody sees it."""
        if not self._has_met:
            with suppress(LockError):
                holder = next((found for scope in scopes[:_MOST_NAMED] if (found := provider.holder(scope))), None)
                if holder is not None:
                    self.meet(holder.owner, holder.token)

    def note_attempts(self, attempts: int, *, requests: int) -> None:
        """How often it was asked for."""
        if self._whole.is_on:
            for span in (self._whole, self._acquire):
                span.note(lock_attempts=attempts, lock_requests=requests)

    def grant(self, tokens: Sequence[int | None]) -> None:
        """It is held: by so many holds as there are tokens."""
        if self._whole.is_on:
            self._holds = len(tokens)
            told = [str(token) for token in tokens[:_MOST_NAMED] if token is not None]
            for span in (self._whole, self._acquire):
                span.note(lock_tokens=told)

    def release(self, outcome: str) -> None:
        """One of the holds ended; with the last one the trace of them."""
        if self._whole.is_on:
            self._holds -= 1
            self._whole.note(lock_outcome=outcome)
            if not self._holds:
                self._whole.end()

    def __enter__(self) -> LockTrace:
        if self._whole.is_on:
            self._acquire.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if not self._whole.is_on:
            return
        outcome = "failed" if error else "acquired" if self._holds else "not acquired"
        self._acquire.note(lock_outcome=outcome)
        self._acquire.__exit__(kind, error, trace)
        if error or not self._holds:
            self._whole.note(lock_outcome=outcome)
            self._whole.end()


_OFF: Final = LockTrace()
