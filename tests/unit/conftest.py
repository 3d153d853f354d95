from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_locks.storage import LocalStorage

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str], LocalStorage]:
    """Unpacks a table that the JVM wrote."""

    def unpack(name: str) -> LocalStorage:
        with tarfile.open(GOLDEN / f"{name}.tar.gz") as archive:
            if hasattr(tarfile, "data_filter"):  # not in the first releases of 3.10 and 3.11, which Debian still has
                archive.extraction_filter = tarfile.data_filter
            archive.extractall(tmp_path)
        return LocalStorage(str(tmp_path / name))

    return unpack


@pytest.fixture
def golden_rows() -> Callable[[str], str]:
    """The rows that both of Hudi's readers saw in a golden table, as JSON lines."""
    return lambda name: (GOLDEN / f"{name}.expected.jsonl").read_text(encoding="utf-8")
