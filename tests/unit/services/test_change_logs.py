"""Change logs go when the files go whose changes they tell, and stay as long as those."""

from __future__ import annotations

import pytest
from service_harness import ServiceHarness

from hudi_locks.format import CommitMetadata
from hudi_locks.services import Janitor, Restorer, Savepoints
from hudi_locks.table import read_commit


@pytest.fixture
def logging(harness: ServiceHarness) -> ServiceHarness:
    harness.logs_changes = True
    return harness


def test_a_commit_names_its_change_logs_as_hudi_does(logging: ServiceHarness) -> None:
    logging.put("p/g-0")
    second = logging.put("p/g-0")
    commit = read_commit(logging.storage, logging.timeline(), requested=second)
    assert [(log.path, log.size_bytes) for log in commit.change_logs] == [
        (f"p/.g-0_{second}.log.1_0-0-0.cdc", len(b"changes"))
    ]
    assert commit.paths == {f"p/g-0_0-0-0_{second}.parquet"}
    again = commit.encode("commit", layout_version=1)
    assert b'"cdcStats": {\n' in again
    assert CommitMetadata.decode(again, "it") == commit


def test_a_clean_takes_the_change_logs_of_the_files_that_it_takes(logging: ServiceHarness) -> None:
    times = [logging.put("p/g-0", *(["p/h-0"] if n < 2 else [])) for n in range(5)]
    logging.cleaner(commits__retained=2).run()
    kept = [file for file in logging.files() if "g-0" in file]
    assert kept == [f"p/g-0@{time}" for time in times[2:]]
    assert logging.change_logs() == [*kept, f"p/h-0@{times[1]}"]


def test_a_clean_by_versions_takes_them_too_and_leaves_none_behind_in_replaced_file_groups(
    logging: ServiceHarness,
) -> None:
    times = [logging.put("p/g-0", "q/k-0") for _ in range(3)]
    logging.put("p/n-0", replaces=("p/g-0",))
    logging.put("p/n-0")
    logging.cleaner(policy="KEEP_LATEST_FILE_VERSIONS", fileversions__retained=1).run()
    assert logging.change_logs() == [f"p/n-0@{logging.timeline().completed()[-2].requested}", f"q/k-0@{times[2]}"]
    assert not [file for file in logging.files() if "g-0" in file]


def test_a_restore_takes_the_change_logs_of_what_it_undoes(logging: ServiceHarness) -> None:
    times = [logging.put("p/g-0") for _ in range(2)]
    Savepoints(logging.open().coordinator).create(times[1])
    logging.clock.advance(1)
    logging.put("p/g-0")
    Restorer(logging.open().coordinator).run(times[1])
    assert logging.change_logs() == [f"p/g-0@{times[1]}"]


def test_an_aborted_write_leaves_no_change_log(logging: ServiceHarness) -> None:
    first = logging.put("p/g-0")
    tx = logging.open().begin("commit", "UPSERT")
    logging.rewrite(tx, "p/g-0")
    tx.abort("enough")
    assert logging.change_logs() == []
    logging.storage.replace(f"p/.g-0_{tx.instant}.log.1_0-0-0.cdc", b"late")
    logging.clock.advance(1)
    logging.put("q/k-0")
    assert Janitor(logging.open().coordinator).sweep(everywhere=True).data_files == (
        f"p/.g-0_{tx.instant}.log.1_0-0-0.cdc",
    )
    assert logging.files()[0] == f"p/g-0@{first}"
