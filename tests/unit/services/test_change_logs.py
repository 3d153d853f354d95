"""Change logs go when the files go whose changes they tell, and stay as long as those."""

from __future__ import annotations

import pytest
from metadata_harness import MetadataHarness
from service_harness import ServiceHarness

from hudi_locks.format import CommitMetadata, Instant, State, WriteStat, add_ms
from hudi_locks.metadata_table import plan_delta_commit
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


def restore_by_jvm(kept: MetadataHarness, undone: str) -> str:
    """Undo a commit as JVM Hudi 0.15 does: its change log stays, and the metadata table names it anew; its path."""
    timeline, delta_commits = kept.timeline(), kept.open().coordinator.delta_commits
    [log] = read_commit(kept.storage, timeline, requested=undone).change_logs
    delta_commits.take_back(undone)
    own = [one for one in timeline.instants if one.requested == undone]
    for path in [f"p/g-0_0-0-0_{undone}.parquet", *(timeline.paths[one] for one in own)]:
        kept.storage.delete(path)
    at = add_ms(undone, 500)
    there = CommitMetadata.of([WriteStat("p", "g-0", None, change_logs=(log,))], "UPSERT", schema=None)
    told = plan_delta_commit(at, there, kept.metadata_table.view(kept.timeline()).describe())
    delta_commits.begin(at, told.logs)
    delta_commits.make_logs(told)
    content = told.metadata.encode("deltacommit", layout_version=kept.own_layout.version)
    name = kept.own_layout.path(Instant(at, "deltacommit", State.COMPLETED, add_ms(at, 1))).rpartition("/")[2]
    assert delta_commits.complete(name, content, logs=told.logs)
    return log.path


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_change_log_that_a_restore_of_the_jvm_left_stays_while_the_metadata_table_names_it(
    harness: ServiceHarness, version: int
) -> None:
    kept = MetadataHarness.of(harness, version)
    kept.logs_changes = True
    first, undone = kept.put("p/g-0"), kept.put("p/g-0")
    left = restore_by_jvm(kept, undone)
    kept.put("p/h-0")
    assert kept.storage.exists(left)
    assert Janitor(kept.open().coordinator).sweep(everywhere=True).data_files == ()
    named = kept.metadata_table.view(kept.timeline()).data_files(["p"])
    assert [log.path for log in named.change_logs] == [left]
    assert f"p/g-0_0-0-0_{first}.parquet" in {file.path for file in named.bases}
