"""Where the lock file lies, and what stands in it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_providers._wire.lock_file import decode_lock_file

from hudi_locks import LockManager, Owner
from hudi_locks.storage import open_storage

Make = Callable[..., Any]


def test_the_file_lies_where_the_jvm_looks(make: Make, tmp_path: Path, table: Any, ada: Owner) -> None:
    make().try_acquire(table, ada, 0)
    assert (tmp_path / "table/.hoodie/lock").is_file()
    make(path=str(tmp_path / "locks/")).try_acquire(table, ada, 0)
    assert (tmp_path / "locks/lock").is_file()
    make(path=(tmp_path / "by url").as_uri()).try_acquire(table, ada, 0)
    assert (tmp_path / "by url/lock").is_file()


def test_the_other_default_folder_is_a_choice(tmp_path: Path) -> None:
    options = {"hoodie.base.path": tmp_path, "hudi_locks.filesystem.default_folder": ".hoodie/.aux"}
    with LockManager("filesystem", options) as manager, manager.lock():
        assert (tmp_path / ".hoodie/.aux/lock").is_file()


@pytest.mark.parametrize("name", ["plain", "with space", "ünï", "a#b", "a?b", "one%20two", "gl*b[1]"])
@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "file://localhost{}", "{}/"])
def test_the_lock_lies_in_the_folder_of_the_table_however_it_is_written(tmp_path: Path, form: str, name: str) -> None:
    base = form.format(tmp_path / name)
    options = {"hoodie.write.lock.provider": "filesystem", "hoodie.base.path": base}
    with LockManager.from_options(options) as manager, manager.lock():
        assert Path(open_storage(base).address(".hoodie/lock")).is_file()


def test_the_record_has_the_fields_of_the_jvm_and_ours(make: Make, lock_file: Path, table: Any, ada: Owner) -> None:
    make(expire=2).try_acquire(table, ada, 0)
    record = json.loads(lock_file.read_bytes())
    created_s = time.mktime(time.strptime(record["lockCreateTime"][:-4], "%Y-%m-%d %H:%M:%S"))
    assert (created_s, record["lockThreadName"], record["lockStacksInfo"]) == (1_700_000_000, "main", [])
    assert (record["owner"]["pid"], record["scope"], record["leaseMs"]) == (11, "table", 120_000)
    assert decode_lock_file(lock_file.read_bytes()).owner == ada


@pytest.fixture
def move_to() -> Iterator[Callable[[str], None]]:
    """Take this process to another time zone, until the test has ended."""
    with pytest.MonkeyPatch.context() as patch:

        def move(zone: str) -> None:
            patch.setenv("TZ", zone)
            time.tzset()

        yield move
    time.tzset()


def test_the_record_is_in_the_zone_that_the_process_is_in_now(
    make: Make, lock_file: Path, table: Any, ada: Owner, move_to: Callable[[str], None]
) -> None:
    told = []
    for zone in ("UTC0", "<+14>-14"):
        move_to(zone)
        make().try_acquire(table, ada, 0)
        told.append(json.loads(lock_file.read_bytes())["lockCreateTime"])
        lock_file.unlink()
    assert told == ["2023-11-14 22:13:20.000", "2023-11-15 12:13:20.000"]
