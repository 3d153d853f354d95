"""What a lock protects: a store that can tell a late holder from the present one, if it is shown tokens."""

from __future__ import annotations

__all__ = ["FencedRegister"]


class FencedRegister:
    """A store that remembers the greatest token it has seen and refuses a write with a smaller one."""

    def __init__(self) -> None:
        self.greatest: int = -1

    def write(self, token: int | None) -> bool:
        """Whether the write was taken; one without a token always is."""
        if token is None:
            return True
        taken = token >= self.greatest
        self.greatest = max(self.greatest, token)
        return taken
