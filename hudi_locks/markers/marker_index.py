"""What one server file may announce, in a form that is quick to ask and small to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hudi_locks.format import IOType, MarkerName
from hudi_locks.format.claim import BUCKET_LENGTH, FileGroupId

__all__ = ["Hashes", "MarkerIndex"]

Hashes = npt.NDArray[np.int64]
"""Of "partition/file id", by the hash function of this process."""
_MARKER: Final = ".marker"
_ENDS: Final = tuple(f"{_MARKER}.{kind.value}\n" for kind in IOType)


@dataclass(frozen=True, eq=False)
class MarkerIndex:
    """File groups that a text of marker names may announce: never fewer than it does, others hardly ever.

    Its hashes are those of this process: not to be pickled.

    Attributes:
        hashes: Of "partition/file id", in order; the name of a log file begins with its dot.
    """

    hashes: Hashes

    @classmethod
    def of(
        cls, text: str, parse_line: Callable[[str], Iterable[MarkerName]], *, is_bucketed: bool = False
    ) -> MarkerIndex:
        """The index of a server file.

        Args:
            text: Its content.
            parse_line: Reads a line of which nothing is certain.
            is_bucketed: Whether it is to be asked for buckets, as `FileGroupId.bucket` names them.
        """
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        try:
            hashes = _hash_regular(text, lines, is_bucketed=is_bucketed)
        except ValueError:
            names = [name for line in lines for name in parse_line(line)]
            length = BUCKET_LENGTH if is_bucketed else None
            hashes = [hash(_join(name.partition_path, name.file_id[:length])) for name in names]
        return cls(np.sort(np.array(hashes, np.int64)))

    @classmethod
    def merge(cls, indexes: Sequence[MarkerIndex]) -> MarkerIndex:
        """What any of them holds."""
        return cls(np.unique(np.concatenate([index.hashes for index in indexes])))

    def __len__(self) -> int:
        return self.hashes.size

    @staticmethod
    def hash_groups(groups: Iterable[FileGroupId]) -> Hashes:
        """What `may_hold` takes."""
        found = [hash(_join(group.partition, f"{dot}{group.file_id}")) for group in groups for dot in ("", ".")]
        return np.array(found, np.int64)

    def may_hold(self, hashes: Hashes) -> bool:
        """Whether one of the file groups may be announced; False is certain."""
        if not self.hashes.size:
            return False
        places = self.hashes.searchsorted(hashes)
        places[places == self.hashes.size] = 0
        return bool((self.hashes[places] == hashes).any())


def _hash_regular(text: str, lines: Sequence[str], *, is_bucketed: bool) -> list[int]:
    """What comes before the first underscore of each file's name: two searches a line cost a tenth of parsing it.

    Raises:
        ValueError: A line may hold other than one name.
    """
    if "," in text or text.count(_MARKER) != sum(map(text.count, _ENDS)):
        raise ValueError("some lines hold more than one marker, or a partition that looks like one")
    if is_bucketed:
        return [hash(_cut_bucket(line)) for line in lines]
    return [hash(line[: line.index("_", line.rfind("/") + 1)]) for line in lines]


def _cut_bucket(line: str) -> str:
    start = line.rfind("/") + 1
    return line[: min(line.index("_", start), start + line.startswith(".", start) + BUCKET_LENGTH)]


def _join(partition: str, file_id: str) -> str:
    return f"{partition}/{file_id}" if partition else file_id
