"""What a metadata table keeps, as far as those who write to it must know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_locks.format import LogFileName, LogPlace, MetadataPartition
from hudi_locks.format.key_groups import KeyGroups

__all__ = ["Indexed", "MetadataShape"]


@dataclass(frozen=True)
class MetadataShape:
    """What a metadata table keeps, as far as its delta commits depend on it.

    Attributes:
        version: Of the metadata table.
        groups: Ids of the file groups of each part, in the order over which keys are spread.
        columns: Those of which it keeps statistics.
        newest: The newest time on its timeline; "" if that is empty.
        places: Of the next log of each file group, in version 6.
    """

    version: int
    groups: Mapping[MetadataPartition, tuple[str, ...]]
    columns: tuple[str, ...] = ()
    newest: str = ""
    places: Mapping[str, LogPlace] = field(default_factory=dict)

    def name_log(self, group: str, requested: str) -> LogFileName:
        """The log that a delta commit adds to a file group."""
        return _name_log(self.places, group, requested)


@dataclass(frozen=True)
class Indexed:
    """What the tasks of a write must report for a metadata table.

    Attributes:
        columns: Those whose ranges it keeps.
        key_groups: The file groups of its record index; none without it.
        has_filters: Whether it has the bloom filters of base files.
        key_places: In version 6 where the next log of each file group of the record index belongs.
    """

    columns: tuple[str, ...] = ()
    key_groups: KeyGroups = field(default_factory=KeyGroups)
    has_filters: bool = False
    key_places: Mapping[str, LogPlace] = field(default_factory=dict, compare=False)

    def name_key_log(self, group: str, requested: str) -> LogFileName:
        """The log that a write adds to a file group of the record index."""
        return _name_log(self.key_places, group, requested)


def _name_log(places: Mapping[str, LogPlace], group: str, requested: str) -> LogFileName:
    place = places.get(group)
    return LogFileName(group, requested) if place is None else place.name(group, requested)
