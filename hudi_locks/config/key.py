"""One configuration key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Key"]

T = TypeVar("T", str, int, bool)


@dataclass(frozen=True)
class Key(Generic[T]):
    """A key that this package understands, declared once in `hudi_locks.config`.

    Attributes:
        name: As Hudi's documentation writes it.
        kind: Python type of its value: str, int or bool.
        default: Value when the key is absent; None if there is none.
        doc: One sentence for a person.
        aliases: Older or alternative names, accepted with the same meaning; `name` wins over them.
        since: Release of Hudi that brought it; "" for keys of our own.
        secret: Whether the value must never be shown.
        minimum: Smallest value allowed for an int.
        choices: Allowed values for a str, compared without case; empty for any.
        accepted: Values, compared without case, that ask for what happens anyway.
        refusal: Why a writer refuses every other value, and the way out; "" if it does not.
        no_effect: Why every other value changes nothing here, as a writer warns; "" if it does.
    """

    name: str
    kind: type[T]
    default: T | None
    doc: str
    aliases: tuple[str, ...] = ()
    since: str = ""
    secret: bool = False
    minimum: int | None = None
    choices: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    refusal: str = ""
    no_effect: str = ""

    @property
    def effect(self) -> str:
        """What giving it does: "honoured", "refused" or "no effect"."""
        return "refused" if self.refusal else "no effect" if self.no_effect else "honoured"
