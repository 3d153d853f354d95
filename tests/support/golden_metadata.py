"""Files of metadata tables that each bundle of JVM Hudi made.

They are of small tables of both types after an insert, an upsert and a delete; and base files of one with 38 commits.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from hudi_locks.format.hfile import HFile
from hudi_locks.format.log_block import BlockType, decode_blocks

__all__ = ["BUNDLES", "list_expected", "list_hfiles", "read_golden", "read_old_golden"]

BUNDLES: Mapping[str, int] = {"1.0.2": 8, "1.1.1": 9, "1.2.0": 9}
"""Each with the version of the tables that it makes."""
_GOLDEN = Path(__file__).parents[1] / "golden"


@lru_cache(maxsize=len(BUNDLES))
def read_golden(bundle: str) -> dict[str, bytes]:
    """Every file of the archive by its path."""
    with tarfile.open(_GOLDEN / f"metadata_table_{bundle}.tar.gz") as archive:
        files = [member for member in archive if member.isfile()]
        return {member.name.split("/", 1)[1]: archive.extractfile(member).read() for member in files}  # type: ignore[union-attr]


def read_old_golden() -> dict[str, bytes]:
    """Those of a table of version 6, under the names that the others have."""
    with tarfile.open(_GOLDEN / "v6_metadata_table.tar.gz") as archive:
        files = [member for member in archive if member.isfile() and "/.hoodie/" in member.name]
        read = {member.name: archive.extractfile(member).read() for member in files}  # type: ignore[union-attr]
    found = {name.split("/", 2)[2]: data for name, data in read.items()}
    own = {
        f"cow/{path.removeprefix('metadata/')}": data for path, data in found.items() if path.startswith("metadata/")
    }
    return {**own, "cow.index_defs/index.json": found[".index_defs/index.json"]}


def list_expected(bundle: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Path of each file of the metadata table, and its records as another decoder read them."""
    for line in read_golden(bundle)["expected.jsonl"].splitlines():
        told = json.loads(line)
        yield told["file"], told["records"]


def list_hfiles(bundle: str) -> Iterator[tuple[str, HFile, str]]:
    """Path, content and schema of every base file, and of every block of a log that is an HFile."""
    for path, data in read_golden(bundle).items():
        if path.endswith(".hfile"):
            found = HFile(data, path)
            yield path, found, found.info["schema"].decode()
        elif ".log." in path and not path.endswith(".crc"):
            for block in decode_blocks(data, path):
                if block.kind is BlockType.HFILE:
                    yield path, HFile(block.content, path), block.schema
