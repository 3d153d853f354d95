"""Whether this process is the one that an object was made in."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["generation"]


class _Generation:
    number = 0

    def advance(self) -> None:
        self.number += 1


_GENERATION: Final = _Generation()
os.register_at_fork(after_in_child=_GENERATION.advance)


def generation() -> int:
    """A number that is another one in every forked child: what was made under a different one is not ours to use."""
    return _GENERATION.number
