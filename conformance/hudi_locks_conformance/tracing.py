"""A provider whose calls are recorded, and may be made slow or wrong on purpose."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from hudi_locks import Lease, LockProvider, LockScope, Owner

__all__ = ["Calls", "trace"]

_RENEWAL_THREADS: Final = "hudi-locks-renewal-"


@dataclass
class Calls:
    """What a traced provider was asked, and how it is tampered with.

    Attributes:
        acquires: Time and timeout of each `try_acquire`, in seconds.
        renews: Time of each `renew`.
        renewers: The threads whose renewals are under way.
        others: The threads of others: what was running before.
        before_acquire: Called before the real call; may raise or let time pass.
        before_renew: Likewise.
        answers: What to answer instead of asking, one for each call; an exception is raised.
    """

    acquires: list[tuple[float, float]] = field(default_factory=list)
    renews: list[float] = field(default_factory=list)
    renewers: set[threading.Thread] = field(default_factory=set)
    others: frozenset[threading.Thread] = field(default_factory=lambda: frozenset(threading.enumerate()))
    before_acquire: Callable[[], None] = lambda: None
    before_renew: Callable[[], None] = lambda: None
    answers: list[BaseException | None] = field(default_factory=list)

    def find_threads(self) -> list[threading.Thread]:
        """The threads that renew: those that do so now, stand by, or have woken and are kept from running."""
        new = [thread for thread in threading.enumerate() if thread not in self.others]
        return [*self.renewers.copy(), *(thread for thread in new if thread.name.startswith(_RENEWAL_THREADS))]


def trace(kind: type[LockProvider], calls: Calls) -> type[LockProvider]:
    """A subclass of `kind` that tells `calls` of everything."""

    class Traced(kind):  # type: ignore[misc,valid-type]  # the base is known at run time only
        def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
            calls.acquires.append((self.clock.monotonic(), timeout_s))
            calls.before_acquire()
            if calls.answers:
                answer = calls.answers.pop(0)
                if answer is not None:
                    raise answer
                return None
            found: Lease | None = super().try_acquire(scope, owner, timeout_s)
            return found

        def renew(self, lease: Lease) -> Lease:
            calls.renews.append(self.clock.monotonic())
            calls.renewers.add(threading.current_thread())
            try:
                calls.before_renew()
                renewed: Lease = super().renew(lease)
            finally:
                calls.renewers.discard(threading.current_thread())
            return renewed

    Traced.__name__ = Traced.__qualname__ = kind.__name__
    found: Any = Traced
    return found  # type: ignore[no-any-return]
