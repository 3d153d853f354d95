"""What each flow may pass through today, and what it is to come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from .passage import Passage

__all__ = ["LIMITS", "Limit"]


@dataclass(frozen=True)
class Limit:
    """Of one flow.

    Attributes:
        now: What a test holds it to: the most that several runs passed through, and a hundredth for a busy machine;
            lower it when the code gets there.
        aim_files: How many files it should enter.
        aim_depth: How deep its calls should be; None if that is not the matter.
    """

    now: Passage
    aim_files: int
    aim_depth: int | None = None

    def find_excess(self, found: Passage) -> str:
        """What of a passage is above the limit, in words; "" if nothing is."""
        pairs = {name: (getattr(found, name), getattr(self.now, name)) for name in ("files", "functions", "depth")}
        return ", ".join(f"{value} {name} (limit {most})" for name, (value, most) in pairs.items() if value > most)


LIMITS: Final[Mapping[str, Limit]] = MappingProxyType(
    {
        "upsert": Limit(Passage(63, 666, 19), aim_files=45, aim_depth=14),
        "compact": Limit(Passage(53, 576, 17), aim_files=40, aim_depth=14),
        "read": Limit(Passage(29, 175, 13), aim_files=20),
        "lock": Limit(Passage(12, 106, 10), aim_files=12),
        "check": Limit(Passage(13, 69, 11), aim_files=12),
    }
)
