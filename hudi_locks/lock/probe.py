"""What a truth probe found out about a lock service."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Finding"]


@dataclass(frozen=True)
class Finding:
    """One thing that a lock service was tried for.

    Attributes:
        name: What was tried, in words joined by hyphens; never changes, so that scripts may compare it.
        ok: Whether locks are safe as far as this goes.
        found: What the service did, with figures where there are any.
        advice: The next step for a person; empty when nothing has to be done.
    """

    name: str
    ok: bool
    found: str
    advice: str = ""
