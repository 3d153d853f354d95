"""What is private in PySpark is touched in one place alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import hudi_locks

PRIVATE: Final = re.compile(r"\._(jvm|jdf|jsc|jsparkSession|jrdd|gateway)\b")


def test_private_parts_of_pyspark_are_touched_in_one_place() -> None:
    root = Path(hudi_locks.__file__).parent
    touching = [file for file in root.rglob("*.py") if PRIVATE.search(file.read_text(encoding="utf-8"))]
    assert [str(file.relative_to(root)) for file in touching] == ["spark/_compat.py"]
