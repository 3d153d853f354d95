"""What a lock service needs before the first lock, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hudi_locks.errors import HudiLocksError

__all__ = ["SetupStep", "SetupTerms"]

_THERE: Final = "there"
_MADE: Final = "made"
_TO_MAKE: Final = "to make"
_NOT_NEEDED: Final = "not needed"
_ADVISED: Final = "advised"
_FAILED: Final = "failed"


@dataclass(frozen=True)
class SetupTerms:
    """What `LockProvider.set_up` may do.

    Attributes:
        dry_run: Whether it only looks, and says what it would make.
        make_bucket: Whether a bucket that is missing may be made; its name may be a slip of the pen.
        set_lifecycle: Whether the lifecycle rules of a bucket may be added to that was there before.
    """

    dry_run: bool = False
    make_bucket: bool = False
    set_lifecycle: bool = False


@dataclass(frozen=True)
class SetupStep:
    """One thing that a lock service needs.

    Attributes:
        name: What is needed, in words joined by hyphens; never changes, so that scripts may compare it.
        outcome: `there`: it was there already; `made`; `to make`: a dry run would have made it; `not needed`: the first
            lock, or the first write, makes it by itself; `advised`: locks do without it, and a person should see to it;
            `failed`: locks need it, and it cannot be made.
        found: What it is, and where.
        advice: The next step for a person; empty when nothing has to be done.
    """

    name: str
    outcome: str
    found: str
    advice: str = ""

    @classmethod
    def there(cls, name: str, found: str, advice: str = "") -> SetupStep:
        """It was there already."""
        return cls(name, _THERE, found, advice)

    @classmethod
    def made(cls, name: str, found: str) -> SetupStep:
        """It was made."""
        return cls(name, _MADE, found)

    @classmethod
    def to_make(cls, name: str, found: str) -> SetupStep:
        """It would have been made, had this been no dry run."""
        return cls(name, _TO_MAKE, found)

    @classmethod
    def not_needed(cls, name: str, found: str) -> SetupStep:
        """Nothing has to be made before the first lock."""
        return cls(name, _NOT_NEEDED, found)

    @classmethod
    def advised(cls, name: str, found: str, advice: str) -> SetupStep:
        """Locks do without it, and a person should see to it."""
        return cls(name, _ADVISED, found, advice)

    @classmethod
    def failed(cls, name: str, found: str | HudiLocksError, advice: str = "") -> SetupStep:
        """Locks need it, and it cannot be made; an error says why by itself."""
        return cls(name, _FAILED, str(found), advice)

    @property
    def has_failed(self) -> bool:
        """Whether locks cannot be had without it."""
        return self.outcome == _FAILED

    @property
    def was_made(self) -> bool:
        """Whether it was made just now."""
        return self.outcome == _MADE

    @property
    def is_to_make(self) -> bool:
        """Whether a dry run left it to be made."""
        return self.outcome == _TO_MAKE
