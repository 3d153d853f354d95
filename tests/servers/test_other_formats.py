"""A lock around writers of other table formats: what each adds to a counter is there at the end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.servers
WRITERS = 2
TURNS = 4
DELTA = """
from deltalake import DeltaTable, write_deltalake

def read():
    return DeltaTable(f"{place}/table").to_pyarrow_table()["n"][0].as_py()

def write(n):
    write_deltalake(f"{place}/table", pa.table({"n": [n]}), mode="overwrite")

def make():
    write(0)
"""
ICEBERG = """
from pyiceberg.catalog.sql import SqlCatalog

catalog = SqlCatalog("c", uri=f"sqlite:///{place}/catalog.db", warehouse=f"file://{place}/table")

def read():
    return catalog.load_table("d.t").scan().to_arrow()["n"][0].as_py()

def write(n):
    catalog.load_table("d.t").overwrite(pa.table({"n": [n]}))

def make():
    catalog.create_namespace("d")
    catalog.create_table("d.t", schema=pa.schema([("n", pa.int64())]))
    write(0)
"""
BEGIN = """
import os, sys
import pyarrow as pa
from hudi_locks import table_lock

place, action = sys.argv[1:]
"""
END = f"""
def add_guarded():
    for _ in range({TURNS}):
        with table_lock(f"{{place}}/table", provider="filesystem"):
            write(read() + 1)

def add_alone():
    seen = read()
    print(seen, flush=True)
    sys.stdin.readline()
    write(seen + 1)

{{"make": make, "guarded": add_guarded, "alone": add_alone, "read": lambda: print(read())}}[action]()
sys.stdout.flush()
os._exit(0)  # threads of the libraries may abort an exit in order
"""
FORMATS = pytest.mark.parametrize("written_by", [DELTA, ICEBERG], ids=["deltalake", "pyiceberg"])


def begin(written_by: str, folder: Path, action: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-W", "ignore", "-c", BEGIN + written_by + END, str(folder), action]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, text=True, stdin=pipe, stdout=pipe, stderr=pipe)


def finish(process: subprocess.Popen[str], typed: str = "") -> str:
    told, failed = process.communicate(typed, timeout=300)
    assert process.returncode == 0, failed
    return told


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "table").mkdir()
    return tmp_path


@FORMATS
def test_no_increment_is_lost(written_by: str, folder: Path) -> None:
    finish(begin(written_by, folder, "make"))
    for writer in [begin(written_by, folder, "guarded") for _ in range(WRITERS)]:
        finish(writer)
    assert finish(begin(written_by, folder, "read")) == f"{WRITERS * TURNS}\n"


def test_without_the_lock_one_is(folder: Path) -> None:
    finish(begin(DELTA, folder, "make"))
    both = [begin(DELTA, folder, "alone") for _ in range(WRITERS)]
    for writer in both:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "0\n"
    for writer in both:
        finish(writer, "go on\n")
    assert finish(begin(DELTA, folder, "read")) == "1\n"
