"""What `hudi-locks timeline` prints, for people and for programs."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_locks.format import CommitMetadata, WriteStat, avro_schema
from hudi_locks.lock import LockManager
from hudi_locks.storage import open_storage
from hudi_locks.table import Table, TableConfig
from hudi_locks.transaction import Transactions

Run = Callable[..., tuple[int, str, str]]
SCHEMA = avro_schema(pa.schema([("id", pa.string())]), "t")
MAIN = "import sys; from hudi_locks.cli import main; main(sys.argv[1:])"


@pytest.fixture
def put(tmp_path: Path) -> Callable[[], str]:
    """One more write of a table."""
    table = Table.create(open_storage(str(tmp_path / "table")), TableConfig("t", ("id",)))
    options = {"hoodie.base.path": str(tmp_path / "table")}

    def make() -> str:
        with LockManager("filesystem", options, application="nightly etl") as locks:
            tx = Transactions(table, locks).begin("commit", "UPSERT")
            stats = [WriteStat("", "g-0", None, num_inserts=3, num_update_writes=1)]
            assert tx.publish(CommitMetadata.of(stats, "UPSERT", schema=SCHEMA)).is_committed
            return tx.instant

    return make


def test_a_person_reads_who_wrote_what(hudi_locks: Run, put: Callable[[], str], tmp_path: Path) -> None:
    instants = [put() for _ in range(3)]
    status, out, err = hudi_locks("timeline", str(tmp_path / "table"), "-n", "2")
    assert (status, err) == (0, "")
    head, *lines = out.splitlines()
    assert head.split() == [
        "instant",
        "begun",
        "action",
        "operation",
        "rows",
        "file",
        "groups",
        "took",
        "lock",
        "writer",
    ]
    assert [line.split()[0] for line in lines] == instants[1:]
    assert all("commit  UPSERT     +3 ~1" in line and "pid" in line and "token" in line for line in lines)
    assert all(re.search(r"waited \d+\.\d\d s, held \d+\.\d\d s", line) for line in lines)


def test_a_program_gets_an_object_on_each_line(hudi_locks: Run, put: Callable[[], str], tmp_path: Path) -> None:
    instant = put()
    (line,) = hudi_locks("timeline", str(tmp_path / "table"), "--json")[1].splitlines()
    told = json.loads(line)
    assert (told["requested"], told["operation"], told["rows_inserted"]) == (instant, "UPSERT", 3)
    assert told["lock_wait_ms"] >= 0
    assert told["lock_held_ms"] >= 0


def test_it_follows_what_happens_until_it_is_interrupted(
    start: Callable[..., subprocess.Popen[str]], put: Callable[[], str], tmp_path: Path
) -> None:
    first = put()
    following = start(MAIN, "timeline", str(tmp_path / "table"), "--follow", "--json")
    assert following.stdout
    assert json.loads(following.stdout.readline())["requested"] == first
    second = put()
    seen = json.loads(following.stdout.readline())
    while seen["state"] != "COMPLETED":
        seen = json.loads(following.stdout.readline())
    assert seen["requested"] == second
    following.send_signal(signal.SIGINT)
    assert following.communicate(timeout=60)[0] == ""
    assert following.returncode == 0


def test_a_folder_without_a_table_is_an_error(hudi_locks: Run, tmp_path: Path) -> None:
    status, _, err = hudi_locks("timeline", str(tmp_path))
    assert (status, "holds no Hudi table" in err) == (1, True)


def test_a_table_is_shown_on_one_screen(hudi_locks: Run, put: Callable[[], str], tmp_path: Path) -> None:
    put()
    status, out, err = hudi_locks("table", str(tmp_path / "table"))
    assert (status, err) == (0, "")
    told = dict(line.strip().split(maxsplit=1) for line in out.splitlines() if line.strip())
    assert told["type"].strip() == "COPY_ON_WRITE, version 8"
    assert "1 active, 0 pending" in told["instants"]
    found = json.loads(hudi_locks("table", str(tmp_path / "table"), "--json")[1])
    assert (found["settings"]["name"], found["files"]["logs"], found["pending"]) == ("t", 0, [])


def test_a_picture_is_written_to_a_file(hudi_locks: Run, put: Callable[[], str], tmp_path: Path) -> None:
    instants, page = [put() for _ in range(2)], tmp_path / "page.html"
    status, out, err = hudi_locks("timeline", str(tmp_path / "table"), "--html", str(page))
    assert (status, err) == (0, "")
    assert out.split() == ["The", "picture", "is", "in", str(page)]
    shown = page.read_text(encoding="utf-8")
    assert all(f'href="#commit-{instant}"' in shown for instant in instants)
    assert re.search(r"<h2>pid \d+ on ", shown)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--html", "page.html", "--follow"), "leave --follow and --json out"),
        (("--html", "page.html", "--json"), "leave --follow and --json out"),
        (("--html", "/nowhere/page.html"), "name a file in a folder that you may write to"),
    ],
)
def test_a_picture_that_cannot_be_written_is_an_error(
    hudi_locks: Run, put: Callable[[], str], tmp_path: Path, given: tuple[str, ...], message: str
) -> None:
    put()
    status, out, err = hudi_locks("timeline", str(tmp_path / "table"), *given)
    assert (status != 0, out, message in " ".join(err.split())) == (True, "", True)
    assert "Traceback" not in err
