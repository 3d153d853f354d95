"""Each kind of damage is found by its file, and nothing else is called so: no work of the JVM, nothing under way."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from damages import WAYS
from whole_table import WholeTable

from hudi_locks.clock import SystemClock
from hudi_locks.errors import HudiLocksError
from hudi_locks.format.claim import PRIVATE_FOLDER, claim_path, decode_claim, encode_claim, encode_tickets
from hudi_locks.format.metadata_keys import KEY_CHANGES
from hudi_locks.metadata_table import encode_record_log
from hudi_locks.storage import LocalStorage, MemoryStorage, Storage
from hudi_locks.table import RECORD_KEY, Table, add_meta_schema, latest_file_slices, read_slice
from hudi_locks.verification import VerificationReport, verify_table

GOLDEN = [
    "v6_cow", "v8_cow", "v8_cow_bucket", "v8_cow_unpartitioned", "v8_mor", "v8_mor_compacted", "v8_mor_nbcc", "v9_cow",
    "v9_mor",
]  # fmt: skip
CLAIMS = f"{PRIVATE_FOLDER}/claims"
DAMAGES = int(os.environ.get("HUDI_LOCKS_DAMAGES", "4"))
"""Of each file."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeTable]:
    """A table that no test changes for good."""
    table = WholeTable(str(tmp_path_factory.mktemp("sound") / "t")).fill()
    yield table
    table.close()


@pytest.fixture
def copy(sound: WholeTable, tmp_path: Path) -> LocalStorage:
    shutil.copytree(sound.storage.base, tmp_path / "t")
    return LocalStorage(str(tmp_path / "t"))


def one(storage: LocalStorage, words: str) -> str:
    """The last file whose path has all of these words."""
    found = [path for path, _ in storage.walk("") if all(word in path for word in words.split())]
    assert found, words
    return max(found)


def lose(storage: LocalStorage, path: str) -> None:
    assert storage.delete(path)


def empty(storage: LocalStorage, path: str) -> None:
    storage.replace(path, b"")


def cut(storage: LocalStorage, path: str) -> None:
    storage.replace(path, (storage.read(path) or b"")[:-3])


def spoil(storage: LocalStorage, path: str) -> None:
    """Other bytes in the last third, and as many."""
    data = storage.read(path) or b""
    storage.replace(path, data[: -len(data) // 3] + b"\xff" * (len(data) - len(data[: -len(data) // 3])))


def name_another(storage: LocalStorage, path: str) -> None:
    storage.replace(path, b"")
    storage.move_if_absent(path, path.replace(".CREATE", ".REMOVE"))


Harm = Callable[[LocalStorage, str], None]


def test_a_sound_table_is_sound_and_all_of_it_was_looked_at(sound: WholeTable) -> None:
    report = verify_table(sound.storage)
    assert report.findings == ()
    counted = {name: number for name, number in report.checked.items() if number}
    assert set(counted) == {
        "archive parts", "archived instants", "base files", "claims", "heartbeats", "instant files", "log blocks",
        "logs", "marker folders", "partitions", "properties",
    }  # fmt: skip
    assert report.not_checked


@pytest.mark.parametrize(
    ("words", "harm", "kind"),
    [
        ("region=eu/h-0 .parquet", lose, "base-file"),
        ("region=eu/h-0 .parquet", empty, "base-file"),
        ("region=eu/h-0 .parquet", cut, "base-file"),
        ("region=eu/h-0 .parquet", spoil, "base-file"),
        ("region=eu/.h-0 .log", lose, "log"),
        ("region=eu/.h-0 .log", empty, "log"),
        ("region=eu/.h-0 .log", cut, "log"),
        ("region=eu/.h-0 .log", spoil, "log"),
        (".hoodie_partition_metadata", lose, "partition"),
        ("timeline/2 .deltacommit", lose, "timeline"),
        ("timeline/2 .commit", empty, "timeline"),
        ("timeline/2 .commit", spoil, "timeline"),
        ("timeline/2 .commit", cut, "timeline"),
        ("timeline/2 .compaction.requested", spoil, "timeline"),
        ("timeline/2 .compaction.requested", lose, "timeline"),
        ("timeline/2 .compaction.inflight", lose, "timeline"),
        ("timeline/2 .clean.requested", cut, "timeline"),
        ("timeline/2 .clean.inflight", lose, "timeline"),
        ("timeline/2 _2 .clean", spoil, "timeline"),
        ("timeline/2 _2 .savepoint", spoil, "timeline"),
        ("history/2 .parquet", lose, "archive"),
        ("history/2 .parquet", spoil, "archive"),
        ("history/2 .parquet", cut, "archive"),
        ("history/manifest", spoil, "archive"),
        ("history/_version_", lose, "archive"),
        ("history/_version_", spoil, "archive"),
        ("claims/ 5.json", lose, "claim"),
        ("claims/ 5.json", cut, "claim"),
        ("claims/ 5.json", spoil, "claim"),
        ("claims/", spoil, "claim"),
        ("hoodie.properties", spoil, "properties"),
        (".temp/ .marker", name_another, "marker"),
    ],
)
def test_damage_is_found_by_its_file(copy: LocalStorage, words: str, harm: Harm, kind: str) -> None:
    path = one(copy, words)
    harm(copy, path)
    report = verify_table(copy)
    assert not report.is_sound
    first = [finding for finding in report.damages if finding.kind == kind]
    assert first, report.damages
    assert any(_stem(finding.path) in path or finding.path in path for finding in first), (path, first)
    assert all(finding.expected and finding.found and finding.advice for finding in report.findings)


def _stem(path: str) -> str:
    """Without what tells the state of an instant: that a file is gone is seen beside it."""
    name = path.rpartition("/")[2]
    return name.split("_")[0].split(".")[0] if "/timeline/2" in path else path


def test_tickets_of_files_that_the_commit_does_not_name_are_damage(copy: LocalStorage) -> None:
    claims = [decode_claim(copy.read(claim_path(n)) or b"", n) for n in range(1, len(copy.list(CLAIMS)) + 1)]
    claim = next(claim for claim in claims if claim.tickets is not None)
    other = encode_tickets({f"region=eu/other-0_0-0-0_{claim.instant}.parquet": "ticket"})
    copy.replace(claim_path(claim.number), encode_claim(replace(claim, tickets=other)))
    found = [finding for finding in verify_table(copy).damages if finding.found == "tickets of others"]
    assert [finding.path for finding in found] == [claim_path(claim.number)]


def test_what_harms_nobody_is_a_note(copy: LocalStorage) -> None:
    stray = "region=eu/z-0_0-0-0_20991231000000000.parquet"
    copy.replace(stray, b"rows")
    copy.replace(".hoodie/.hudi_locks/head", b"no number")
    copy.replace(".hoodie/.temp/20260101000000000/MARKERS0", b"")
    copy.replace(f".hoodie/.heartbeat/{copy.list('.hoodie/.heartbeat')[0].name}", b"nobody")
    report = verify_table(copy)
    assert report.is_sound
    assert {finding.kind for finding in report.findings} == {"stray", "claim", "marker", "heartbeat"}
    assert stray in {finding.path for finding in report.findings}


def test_the_checksums_that_hadoop_keeps_beside_markers_are_no_damage(copy: LocalStorage) -> None:
    folder, _, name = one(copy, ".temp/ .marker").rpartition("/")
    copy.replace(f"{folder}/.{name}.crc", b"crc")
    assert verify_table(copy).is_sound


def test_a_savepoint_whose_file_is_lost_and_an_endangered_update_are_damage(copy: LocalStorage) -> None:
    path = one(copy, "region=eu/g-0 .parquet")
    lose(copy, path)
    copy.replace(".hoodie/.hudi_locks/notices/endangered-20260101000000000.json", b"{}")
    found = {(finding.kind, finding.path) for finding in verify_table(copy).damages}
    assert {("savepoint", path), ("base-file", path)} <= found
    assert any(kind == "notice" for kind, _ in found)


def test_a_key_that_is_a_slip_and_a_column_that_is_none_are_damage(copy: LocalStorage) -> None:
    path = ".hoodie/hoodie.properties"
    text = (copy.read(path) or b"").decode()
    for before, after in (
        ("hoodie.table.recordkey.fields=v", "hoodie.table.recordkey.fields=w"),
        ("hoodie.table.base.file.format", "hoodie.table.basf.file.format"),
        ("timeline.timezone=UTC", "timeline.timezone=UTB"),
    ):
        assert before in text
        copy.replace(path, text.replace(before, after).encode())
        assert [finding.kind for finding in verify_table(copy).damages] == ["properties"], after


def test_json_has_what_the_page_promises(copy: LocalStorage) -> None:
    lose(copy, one(copy, "region=eu/h-0 .parquet"))
    record = verify_table(copy).to_record()
    assert set(record) == {"format", "table", "sound", "findings", "checked", "not_checked"}
    assert (record["format"], record["sound"]) == (1, False)
    assert set(record["findings"][0]) == {"severity", "kind", "path", "expected", "found", "advice"}


# ---- tables of the JVM ----
@pytest.mark.parametrize("name", GOLDEN)
def test_tables_of_the_jvm_are_sound(golden: Callable[[str], LocalStorage], name: str) -> None:
    assert verify_table(golden(name)).findings == ()


@pytest.mark.parametrize("name", ["v9_record_index", "v9_mor_record_index"])
def test_the_record_index_of_the_jvm_is_sound_and_read_on_demand(
    golden: Callable[[str], LocalStorage], name: str
) -> None:
    storage = golden(name)
    report = verify_table(storage, reads_keys=True)
    assert (report.findings, report.checked["record keys in the metadata table"]) == ((), 5)
    assert any("the record index" in left for left in verify_table(storage).not_checked)


def test_a_record_key_that_the_index_has_nowhere_or_elsewhere_is_damage(golden: Callable[[str], LocalStorage]) -> None:
    storage = golden("v9_record_index")
    [path] = [path for path in list_paths(storage, ".hoodie/metadata/record_index") if "-0007-0_2026" in path]
    storage.replace(path, encode_record_log("20261126212210216", located("a", "region=eu", "other-0"), 9)[0])
    [damage] = verify_table(storage, reads_keys=True).damages
    assert damage.path.startswith("region=eu/")
    assert "for 1 of them, such as 'a'" in damage.found
    storage.replace(path, encode_record_log("20261126212210216", located("z", "region=eu", "other-0"), 9)[0])
    assert verify_table(storage, reads_keys=True).damages == (damage,)


def list_paths(storage: LocalStorage, folder: str) -> list[str]:
    return [f"{folder}/{name}" for name in storage.list_names(folder)]


def located(key: str, path: str, file_id: str) -> pa.Table:
    return pa.table([[key], [path], [file_id], [False]], schema=KEY_CHANGES)


@pytest.mark.parametrize("name", ["services_v8", "services_v9"])
def test_timelines_of_the_jvm_with_services_lack_the_files_that_were_left_out_of_them(
    golden: Callable[[str], LocalStorage], name: str
) -> None:
    assert {finding.kind for finding in verify_table(golden(name)).damages} == {"base-file", "savepoint"}


def test_a_table_that_no_path_leads_to_is_written_read_and_looked_at_by_its_storage_alone(sound: WholeTable) -> None:
    """Whatever opened a path by itself would find nothing: the files are in memory."""
    made = WholeTable(MemoryStorage(SystemClock())).fill()
    made.close()
    report = verify_table(made.storage, reads_values=True)
    assert report.is_sound, report.damages
    assert report.checked == verify_table(sound.storage, reads_values=True).checked
    found = [(row[RECORD_KEY], row["v"]) for row in rows_of(made.storage)]
    assert found == [(row[RECORD_KEY], row["v"]) for row in rows_of(sound.storage)]
    assert len(found) > 3


# ---- beside writers ----
class BusyStorage(LocalStorage):
    """Lets something be done to the table at every few of its calls."""

    def __init__(self, root: str, acts: Iterator[Callable[[], object]], every: int) -> None:
        super().__init__(root)
        self._acts, self._every, self._calls = acts, every, 0

    def _pass(self) -> None:
        self._calls += 1
        if self._calls % self._every == 0:
            next(self._acts)()

    def list(self, folder: str) -> Any:
        self._pass()
        return super().list(folder)

    def list_names(self, folder: str) -> Any:
        self._pass()
        return super().list_names(folder)

    def stat(self, path: str) -> Any:
        self._pass()
        return super().stat(path)


@pytest.mark.parametrize("every", [1, 2, 3, 5])
def test_writers_and_services_at_work_are_no_damage(tmp_path: Path, every: int) -> None:
    made = WholeTable(str(tmp_path / "t"))
    made.put_base("g-0")
    made.put_log("g-0")

    def work() -> Iterator[Callable[[], object]]:
        while True:
            yield lambda: made.put_log("g-0")
            yield made.compact
            yield made.services.clean
            yield made.services.archive

    busy = BusyStorage(made.storage.base, work(), every)
    for _ in range(2):
        report = verify_table(busy)
        assert report.is_sound, report.damages
    assert verify_table(made.storage).is_sound


def test_a_base_file_that_is_cleaned_while_it_is_looked_at_is_no_damage(tmp_path: Path) -> None:
    made = WholeTable(str(tmp_path / "t"))
    made.put_base("g-0")
    path = made.put_base("h-0")
    opened = list[str]()

    class Cleaned(LocalStorage):
        def open_input(self, path: str) -> pa.NativeFile:
            opened.append(path)
            self.delete(path)
            return super().open_input(path)

    assert verify_table(Cleaned(made.storage.base)).is_sound
    assert path in opened


# ---- any damage ----
def rows_of(storage: Storage) -> Any:
    table = Table.load(storage)
    timeline = table.timeline()
    columns = table.schema(timeline)
    schema = add_meta_schema(pa.schema([]) if columns is None else columns)
    slices = latest_file_slices(storage, timeline)
    read = (read_slice(storage, piece, schema, rule=table.config.merge_rule) for piece in slices)
    return sorted((row for pieces in read for rows in pieces for row in rows.to_pylist()), key=str)


def complain(storage: LocalStorage, path: str, data: bytes, rows: Any) -> str | None:
    """What is wrong if a file holds `data`: rows are others, or cannot be read, and nothing says so."""
    before = storage.read(path)
    assert before is not None
    storage.replace(path, data)
    try:
        report: VerificationReport = verify_table(LocalStorage(storage.base))
        if report.is_sound and rows_of(LocalStorage(storage.base)) != rows:
            return f"{path}: it is called sound, and shows other rows; {data[:200]!r}"
    except HudiLocksError as error:
        return None if str(error) else f"{path}: an error that says nothing"
    except Exception as error:  # whatever comes out is judged
        return f"{path}: {type(error).__name__}: {error}"
    finally:
        storage.replace(path, before)
    return None


def fuzz(storage: LocalStorage, paths: list[str]) -> list[str]:
    rows = rows_of(storage)
    assert rows
    found = []
    for path in paths:
        rng, data = random.Random(path.rpartition("/")[2][17:]), storage.read(path)
        assert data
        found += [complain(storage, path, rng.choice(WAYS)(rng, data), rows) for _ in range(DAMAGES)]
    return [complaint for complaint in found if complaint]


@pytest.mark.damages
def test_any_damage_of_metadata_is_found_or_changes_no_row(sound: WholeTable, copy: LocalStorage) -> None:
    assert fuzz(copy, [path for path in sound.paths() if path.startswith(".hoodie/")]) == []


@pytest.mark.damages
@pytest.mark.parametrize("name", ["v8_mor_compacted", "v9_mor", "v8_cow_bucket", "v6_cow"])
def test_any_damage_of_metadata_of_the_jvm_is_found_or_changes_no_row(
    golden: Callable[[str], LocalStorage], name: str
) -> None:
    storage = golden(name)
    paths = [path for path, entry in storage.walk(".hoodie") if entry.size and not path.endswith(".parquet")]
    assert fuzz(storage, paths) == []


def flip_a_value(storage: LocalStorage, path: str) -> None:
    """The last byte of a page: the footer, the size and the number of rows stay as they were."""
    chunk = pq.read_metadata(storage.address(path)).row_group(0).column(0)
    data = bytearray(storage.read(path) or b"")
    start = chunk.data_page_offset if chunk.dictionary_page_offset is None else chunk.dictionary_page_offset
    data[start + chunk.total_compressed_size - 1] ^= 1
    storage.replace(path, bytes(data))


def test_a_value_that_was_changed_is_found_when_all_values_are_asked_for(copy: LocalStorage) -> None:
    assert verify_table(copy, reads_values=True).is_sound
    path = one(copy, ".parquet")
    flip_a_value(copy, path)
    quick = verify_table(copy)
    assert (quick.is_sound, [what for what in quick.not_checked if "--values" in what]) == (True, [*quick.not_checked])
    found = verify_table(copy, reads_values=True)
    assert [finding.path for finding in found.damages] == [path]
    assert not [what for what in found.not_checked if "--values" in what]
