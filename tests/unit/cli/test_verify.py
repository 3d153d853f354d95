"""`hudi-locks verify` on a folder of this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_locks.storage import LocalStorage

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def path(golden: Callable[[str], LocalStorage]) -> Path:
    return Path(golden("v8_mor").base)


def test_a_sound_table_is_said_to_be_sound_with_what_was_looked_at(hudi_locks: Run, path: Path) -> None:
    status, told, _ = hudi_locks("verify", str(path))
    assert status == 0
    assert told.startswith("not checked: the values in base files")
    assert f"{path}: sound; looked at 5 base files, 9 instant files, 4 log blocks, 4 logs" in told


def test_damage_is_one_line_each_and_a_status(hudi_locks: Run, path: Path) -> None:
    [log, *_] = sorted(path.glob("region=us_east/.*.log.*"))
    log.write_bytes(b"")
    status, told, _ = hudi_locks("verify", str(path))
    assert status == 1
    [line] = [line for line in told.splitlines() if line.startswith("DAMAGE")]
    assert line.startswith(f"DAMAGE log region=us_east/{log.name}: expected the file of ")
    assert "; found 0 bytes; next: bring the file back" in line
    assert f"{path}: 1 damaged; looked at" in told


def test_json_is_one_object(hudi_locks: Run, path: Path) -> None:
    (path / "region=us_east/stray-0_0-0-0_20991231000000000.parquet").write_bytes(b"rows")
    status, told, _ = hudi_locks("verify", str(path), "--json")
    record = json.loads(told)
    assert (status, record["format"], record["sound"]) == (0, 1, True)
    assert [finding["kind"] for finding in record["findings"]] == ["stray"]
    assert record["checked"]["logs"] == 4


def test_damaged_properties_are_damage_and_no_table_is_a_wrong_command_line(
    hudi_locks: Run, path: Path, tmp_path: Path
) -> None:
    properties = path / ".hoodie/hoodie.properties"
    properties.write_bytes(properties.read_bytes().replace(b"timeline.path=timeline", b"timeline.path=timelinf"))
    status, told, _ = hudi_locks("verify", str(path))
    assert status == 1
    assert "DAMAGE properties" in told
    assert "not checked: everything else" in told
    status, _, told = hudi_locks("verify", str(tmp_path / "none"))
    assert (status, "holds no Hudi table" in told) == (2, True)
    assert hudi_locks("verify")[0] == 2
