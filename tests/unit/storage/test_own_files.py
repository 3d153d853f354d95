"""Nothing but a storage opens a file of a table: what does by itself would pass an object store by."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import hudi_locks

ROOT: Final = Path(hudi_locks.__file__).parent
OPENERS: Final = re.compile(
    r"(io\.|os\.)?open|(pathlib\.)?Path\(.*\)\.open|.*\.(read|write)_(bytes|text)|pa\.(OSFile|memory_map)"
    r"|pq\.(read_table|read_metadata|read_schema|write_table|write_metadata|ParquetDataset)|.*\bLocalFileSystem"
)
"""Calls that open a path."""
BY_SOURCE: Final = re.compile(r"pq\.(ParquetFile|ParquetWriter)")
"""Calls that take a path too, and are to get what a storage opened, or bytes."""
SOURCES: Final = re.compile(r"(self\._)?(source|sink|out)|pa\.BufferReader\(.*\)")
ELSEWHERE: Final = {
    "cli/demo": "plays with files of its own",
    "cli/serve.py": "a token",
    "cli/timeline.py": "a page for the user",
    "config/option_files.py": "properties files of the user, and of the machine",
    "ingest/source_files.py": "files of a source, and the checkpoint of Spark",
    "ingest/schemas.py": "schemas of the user",
    "table/row_buffer.py": "rows that are set aside on the disk of an executor",
    "timeline/heartbeat.py": "what Linux tells of processes",
}
"""What opens files that are no table's."""


def find_opened(code: str) -> list[str]:
    """The calls in some code that open a path."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return [ast.unparse(call) for call in calls if _opens(ast.unparse(call.func), call)]


def _opens(called: str, call: ast.Call) -> bool:
    if BY_SOURCE.fullmatch(called):
        return not (call.args and SOURCES.fullmatch(ast.unparse(call.args[0])))
    return OPENERS.fullmatch(called) is not None


def modules() -> Iterator[tuple[str, str]]:
    """Every module of the package outside the storages, as (path, code)."""
    for file in sorted(ROOT.rglob("*.py")):
        path = str(file.relative_to(ROOT))
        if not path.startswith("storage/"):
            yield path, file.read_text(encoding="utf-8")


def elsewhere(path: str) -> str | None:
    return next((place for place in ELSEWHERE if path.startswith(place)), None)


def test_no_module_opens_a_file_of_a_table_by_itself() -> None:
    found = {path: opened for path, code in modules() if not elsewhere(path) and (opened := find_opened(code))}
    assert found == {}


def test_what_opens_other_files_asks_for_no_address() -> None:
    asking = [path for path, code in modules() if elsewhere(path) and re.search(r"\.(address|native)\b", code)]
    assert asking == []


def test_every_exception_is_needed() -> None:
    assert {elsewhere(path) for path, code in modules() if find_opened(code)} - {None} == set(ELSEWHERE)


@pytest.mark.parametrize(
    "code",
    [
        "open(path)",
        "with open(storage.address(path), 'rb') as file: pass",
        "os.open(path, 0)",
        "Path(storage.address(path)).open()",
        "Path(place).read_bytes()",
        "file.write_text('x')",
        "pa.OSFile(path, 'wb')",
        "pa.memory_map(path)",
        "pq.read_table(path)",
        "pq.ParquetFile(path)",
        "pq.ParquetFile(storage.address(path), read_dictionary=names)",
        "pq.ParquetWriter(self._path, schema)",
        "pq.ParquetWriter(where=path, schema=schema)",
        "fs.LocalFileSystem().open_input_file(path)",
    ],
)
def test_what_opens_a_path_is_found(code: str) -> None:
    assert find_opened(code) != []


@pytest.mark.parametrize(
    "code",
    [
        "storage.open_input(path)",
        "staged.open()",
        "pq.ParquetFile(source)",
        "pq.ParquetFile(pa.BufferReader(data)).read()",
        "pq.ParquetWriter(self._sink, schema)",
        "writer.write_table(rows)",
        "self.host.open(transaction)",
    ],
)
def test_what_a_storage_opened_is_not(code: str) -> None:
    assert find_opened(code) == []
