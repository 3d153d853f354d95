"""What a writer of a table goes by, where each value comes from, and what the table tells of its other writers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_providers.filesystem import FileSystemLockProvider

from hudi_locks import LockManager, Owner, StorageError
from hudi_locks.format import CommitMetadata
from hudi_locks.storage import open_storage
from hudi_locks.table import Table, TableConfig
from hudi_locks.transaction import Transactions

Run = Callable[..., tuple[int, str, str]]
WAIT = "hoodie.write.lock.wait_time_ms"
INDEX = "hoodie.index.type"
FOREIGN = "hudi_locks.foreign_writers"
JAVA = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"


@pytest.fixture
def explain(hudi_locks: Run) -> Callable[..., tuple[int, dict[str, Any]]]:
    def run(*words: str) -> tuple[int, dict[str, Any]]:
        status, out, err = hudi_locks("explain", *words, "--json")
        assert err == ""
        return status, json.loads(out)

    return run


Explain = Callable[..., tuple[int, dict[str, Any]]]


def rows(told: Mapping[str, Any]) -> dict[str, Any]:
    return {key["key"]: key for key in told["keys"]}


def make_table(base: str, **extra: str) -> Table:
    names = {"index": INDEX, "buckets": "hoodie.bucket.index.num.buckets", "foreign": FOREIGN}
    return Table.create(
        open_storage(base), TableConfig("trips", ("id",), extra={names[key]: value for key, value in extra.items()})
    )


def write(table: Table, provider: str, *, job: str) -> None:
    options = {"hoodie.base.path": table.storage.base, "hoodie.write.lock.provider": provider}
    with LockManager.from_options(options) as locks:
        owner = Owner(job, host="h", pid=1, application=job)
        tx = Transactions(table, locks, options=options, owner=owner).begin("commit", "UPSERT")
        assert tx.publish(CommitMetadata.of((), "UPSERT", schema=None)).is_committed


def test_each_place_is_told_and_the_last_one_counts(
    explain: Explain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, job = tmp_path / "hudi-defaults.conf", tmp_path / "job.properties"
    machine.write_text(f"{WAIT} 1\nhoodie.write.lock.provider {JAVA}\nhoodie.write.lock.client.wait_time_ms 7\n")
    job.write_text(f"{WAIT}=2\n")
    monkeypatch.setenv("HUDI_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("HOODIE_WRITE_LOCK_WAIT_TIME_MS", "3")
    status, told = explain("/t", "--props", str(job), "-o", f"{WAIT}=4")
    assert (status, told["provider"], told["refusals"]) == (0, JAVA, [])
    row = rows(told)[WAIT]
    assert (row["value"], row["origin"], row["effect"]) == ("4", "--option", "honoured")
    assert [(one["origin"], one["value"]) for one in row["overruled"]] == [
        (str(machine), "1"),
        (str(job), "2"),
        ("HOODIE_WRITE_LOCK_WAIT_TIME_MS", "3"),
    ]
    alias = rows(told)["hoodie.write.lock.client.wait_time_ms_between_retry"]
    assert (alias["value"], alias["origin"]) == ("7", f"{machine}, as hoodie.write.lock.client.wait_time_ms")


def test_an_alias_is_overruled_by_the_name(explain: Explain, tmp_path: Path) -> None:
    job = tmp_path / "job.properties"
    job.write_text("hoodie.cleaner.policy.failed.writes=EAGER\n")
    _, told = explain("/t", "--props", str(job), "-o", "hoodie.clean.failed.writes.policy=NEVER")
    row = rows(told)["hoodie.clean.failed.writes.policy"]
    assert (row["value"], row["origin"]) == ("NEVER", "--option")
    assert [(one["name"], one["value"]) for one in row["overruled"]] == [
        ("hoodie.cleaner.policy.failed.writes", "EAGER")
    ]


def test_an_included_file_is_told_by_its_own_name(explain: Explain, tmp_path: Path) -> None:
    job, shared = tmp_path / "job.properties", tmp_path / "shared.properties"
    shared.write_text(f"{WAIT}=1\nhoodie.write.lock.num_retries=2\n")
    job.write_text(f"hoodie.write.lock.num_retries=1\ninclude=shared.properties\n{WAIT}=3\n")
    found = rows(explain("/t", "-p", "filesystem", "--props", str(job))[1])
    assert (found[WAIT]["value"], found[WAIT]["origin"]) == ("3", str(job))
    assert [(one["origin"], one["value"]) for one in found[WAIT]["overruled"]] == [(str(shared), "1")]
    retries = found["hoodie.write.lock.num_retries"]
    assert (retries["value"], retries["origin"]) == ("2", str(shared))


def test_two_names_of_one_key_in_a_file_contradict_each_other(explain: Explain, tmp_path: Path) -> None:
    job, shared = tmp_path / "job.properties", tmp_path / "shared.properties"
    shared.write_text("hoodie.cleaner.policy.failed.writes=EAGER\n")
    job.write_text("include=shared.properties\nhoodie.clean.failed.writes.policy=LAZY\n")
    status, told = explain("/t", "-p", "filesystem", "--props", str(job))
    assert status == 1
    assert "are names of one key and were given different values" in told["refusals"][0]


def test_secrets_are_hidden_wherever_they_are_given(
    hudi_locks: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, machine = tmp_path / "job.properties", tmp_path / "hudi-defaults.conf"
    job.write_text("hoodie.aws.secret.key=first\nacme.password=second\nacme.entrance=third\n")
    machine.write_text("hoodie.aws.secret.key=fifth\nacme.password=sixth\nacme.entrance=seventh\n")
    monkeypatch.setenv("HUDI_CONF_DIR", str(tmp_path))
    monkeypatch.setattr(FileSystemLockProvider, "secret_options", frozenset({"acme.entrance"}))
    words = ("explain", "/t", "-p", "filesystem", "--props", str(job), "-o", "hoodie.aws.secret.key=fourth")
    for out in (hudi_locks(*words)[1], hudi_locks(*words, "--json")[1]):
        assert not [word for word in ("first", "second", "third", "fourth") if word in out]
        assert not [word for word in ("fifth", "sixth", "seventh") if word in out]
        assert "***" in out


@pytest.mark.parametrize(
    ("option", "status", "effect", "note"),
    [
        ("hoodie.bulkinsert.sort.mode=GLOBAL_SORT", 1, "refused", "sort the DataFrame instead"),
        ("hoodie.write.lock.num_retrys=3", 1, "refused", "did you mean hoodie.write.lock.num_retries?"),
        ("hoodie.write.lock.num_retries=many", 1, "refused", "is no int"),
        ("hoodie.index.type=HBASE", 1, "refused", "is not offered: use GLOBAL_SIMPLE"),
        ("hoodie.metrics.lock.enable=true", 0, "no effect", "lock metrics are always kept"),
        ("hoodie.simple.index.update.partition.path=true", 0, "no effect", "it is of another index"),
        ("hoodie.bucket.index.max.num.buckets=8", 0, "no effect", "SIMPLE, which has no buckets"),
        ("hoodie.acme.thing=1", 0, "unknown", "is not read by this package"),
        ("hoodie.write.lock.app_id=etl", 0, "honoured", ""),
    ],
)
def test_what_an_option_does_is_told_with_the_way_out(
    explain: Explain, option: str, status: int, effect: str, note: str
) -> None:
    found, told = explain("/t", "-p", "filesystem", "-o", option)
    row = rows(told)[option.partition("=")[0]]
    assert (found, row["effect"], note in row["note"]) == (status, effect, True)


def test_a_key_of_nobody_and_one_of_the_providers_own(
    explain: Explain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = tmp_path / "job.properties"
    job.write_text("some.other=1\nacme.locks=2\n")
    monkeypatch.setattr(FileSystemLockProvider, "short_options", {"locks": "acme.locks"})
    _, told = explain("/t", "-p", "filesystem", "--props", str(job))
    assert rows(told)["some.other"]["effect"] == "unknown"
    assert rows(told)["acme.locks"]["effect"] == "honoured"


def test_all_that_cannot_hold_together_is_told_at_once(explain: Explain) -> None:
    status, told = explain(
        "/t",
        *("-p", "noop", "-o", "hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL"),
        *("-o", "hoodie.clean.failed.writes.policy=EAGER"),
    )
    assert status == 1
    assert ["would remove files of living writers" in told["refusals"][0], len(told["refusals"])] == [True, 2]
    assert "excludes nobody" in told["refusals"][1]


def test_a_provider_that_refuses_is_told_and_the_rest_explained(explain: Explain) -> None:
    status, told = explain("/t", "-p", "zookeeper", "-o", "url=h:1")
    assert (status, told["worst_case_s"]) == (1, None)
    assert "hoodie.write.lock.zookeeper.base_path is required" in told["refusals"][0]
    assert "zookeeper refuses these options" in told["waits"]
    assert rows(told)["hoodie.write.concurrency.mode"]["origin"] == "default"


def test_without_a_lock_provider_it_says_so(explain: Explain) -> None:
    status, told = explain("/t")
    assert (status, told["provider"], told["worst_case_s"]) == (0, "", None)
    assert told["waits"].startswith("No lock is taken")
    assert WAIT not in rows(told)
    status, told = explain("-o", "hoodie.write.concurrency.mode=optimistic_concurrency_control")
    assert (status, told["table"]) == (1, "")
    assert "needs a lock and no hoodie.write.lock.provider is given" in told["refusals"][0]


def test_defaults_that_follow_from_others_are_those_that_count(explain: Explain) -> None:
    words = ("/t", "-p", "filesystem", "-o", "hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL")
    policy = rows(explain(*words)[1])["hoodie.clean.failed.writes.policy"]
    assert (policy["value"], policy["origin"]) == ("LAZY", "default for this writer")
    skew = "hoodie.time.generator.max_expected_clock_skew_ms"
    assert rows(explain(*words)[1])[skew]["value"] == "200"
    assert rows(explain("/t")[1])[skew]["value"] == "1"


def test_waits_are_those_of_the_provider(explain: Explain) -> None:
    words = ("-o", f"{WAIT}=2000", "-o", "hoodie.write.lock.client.num_retries=1", "-o", "hoodie.base.path=/t")
    _, told = explain("-p", "filesystem", *words)
    assert told["worst_case_s"] == 9.0
    assert "gives up after at most 9 s: 2 attempts of up to 2 s" in told["waits"]
    _, told = explain("-p", "filesystem", *words, "-o", "hoodie.write.lock.num_retries=0")
    assert told["worst_case_s"] == 5.0
    assert "asks the lock service once, and does not wait" in told["waits"]
    assert "up to 9 s in their line" in told["waits"]
    place = ("-o", "url=h:1", "-o", "base_path=/l", "-o", "lock_key=k")
    _, told = explain("-p", "zookeeper", *words, *place, "-o", "hoodie.write.lock.num_retries=0")
    assert told["worst_case_s"] == 9.0
    assert "waits at the lock service itself" in told["waits"]
    retries = rows(told)["hoodie.write.lock.num_retries"]
    assert (retries["effect"], retries["note"]) == ("no effect", "the lock provider waits at the service itself")
    _, told = explain("-p", "dynamodb", *words, "-o", "key=k")
    heartbeat = rows(told)["hoodie.write.lock.heartbeat_interval_ms"]
    assert (heartbeat["effect"], "renews a hold every 0.666667 s" in heartbeat["note"]) == ("no effect", True)


def test_what_the_table_says_of_itself_is_compared(explain: Explain, tmp_path: Path) -> None:
    base = str(tmp_path / "t")
    make_table(base, index="BUCKET", buckets="4")
    words = ("-o", f"{INDEX}=BLOOM", "-o", f"{FOREIGN}=false", "-o", "hoodie.datasource.write.recordkey.field=uuid")
    status, told = explain(base, *words)
    found, file = rows(told), f"{base}/.hoodie/hoodie.properties"
    assert (status, told["table"]) == (1, f"trips at {base}, COPY_ON_WRITE, version 8")
    assert (found["hoodie.table.name"]["value"], found["hoodie.table.name"]["origin"]) == ("trips", file)
    assert found["hoodie.bucket.index.num.buckets"]["origin"] == file
    assert found[INDEX]["effect"] == "refused"
    assert found[INDEX]["overruled"] == [{"origin": file, "name": INDEX, "value": "BUCKET"}]
    assert "was made with id" in found["hoodie.datasource.write.recordkey.field"]["note"]
    assert (found[FOREIGN]["value"], found[FOREIGN]["effect"]) == ("true", "no effect")
    assert found[FOREIGN]["origin"] == f"{file}, by its default"
    assert "hoodie.table.checksum" not in found


def test_a_value_that_is_none_is_told_once(explain: Explain, tmp_path: Path) -> None:
    base = str(tmp_path / "t")
    make_table(base)
    status, told = explain(base, "-p", "filesystem", "-o", "hoodie.client.heartbeat.interval_in_ms=soon")
    assert (status, told["refusals"]) == (1, [])
    assert rows(told)["hoodie.client.heartbeat.interval_in_ms"]["effect"] == "refused"


def test_what_agrees_with_the_table_or_may_differ_is_honoured(explain: Explain, tmp_path: Path) -> None:
    base = str(tmp_path / "t")
    make_table(base, index="SIMPLE", foreign="false")
    words = ("-o", f"{INDEX}=BLOOM", "-o", f"{FOREIGN}=false", "-o", "hoodie.metadata.enable=true")
    status, told = explain(base, *words)
    found = rows(told)
    assert status == 0
    assert (found[INDEX]["value"], found[INDEX]["effect"]) == ("BLOOM", "honoured")
    assert found["hoodie.metadata.enable"]["value"] == "true"
    assert (found[FOREIGN]["value"], found[FOREIGN]["effect"]) == ("false", "honoured")
    assert [one["origin"] for one in found[FOREIGN]["overruled"]] == ["--option"]


def test_what_a_writer_of_this_table_cannot_do_is_refused(explain: Explain, tmp_path: Path) -> None:
    base = str(tmp_path / "t")
    make_table(base)
    mode = "hoodie.write.concurrency.mode=NON_BLOCKING_CONCURRENCY_CONTROL"
    status, told = explain(base, "-p", "filesystem", "-o", mode)
    assert status == 1
    assert "needs a MERGE_ON_READ table" in " ".join(told["refusals"])


def test_other_writers_are_compared_by_their_locks(explain: Explain, hudi_locks: Run, tmp_path: Path) -> None:
    base = str(tmp_path / "t")
    table = make_table(base)
    write(table, "in_process", job="backfill")
    write(table, JAVA, job="nightly etl")
    _, told = explain(base, "-p", "filesystem")
    jobs = [(one["job"], one["provider"], one["entries"], one["difference"]) for one in told["writers"]["jobs"]]
    assert jobs == [
        ("nightly etl", "filesystem", 1, ""),
        ("backfill", "in_process", 1, "it wrote under in_process, which does not keep out a writer with filesystem"),
    ]
    out = hudi_locks("explain", base, "-p", "filesystem")[1]
    assert "nightly etl" in out
    assert "Nothing tells where their lock lies" in out
    _, told = explain(base)
    assert {one["difference"] for one in told["writers"]["jobs"]} == {
        "it wrote under filesystem, and these options take no lock",
        "it wrote under in_process, and these options take no lock",
    }


def test_writers_that_nobody_expected_are_told(explain: Explain, hudi_locks: Run, tmp_path: Path) -> None:
    base = str(tmp_path / "t")
    write(make_table(base, foreign="false"), "filesystem", job="etl")
    folder = Path(base, ".hoodie", "timeline")
    [completed] = folder.glob("*.commit")
    for file in list(folder.glob(f"{completed.name.partition('_')[0]}*")):
        (folder / file.name.replace(completed.name[:17], "29990101000000000")).write_bytes(file.read_bytes())
    status, told = explain(base, "-p", "filesystem")
    assert (status, told["writers"]["unclaimed"]) == (0, ["29990101000000000"])
    [said] = told["writers"]["contradictions"]
    assert "was made with hudi_locks.foreign_writers=false" in said
    out = hudi_locks("explain", base, "-p", "filesystem")[1]
    assert "JVM writers, 1 writes" in out
    assert said in out


def test_a_table_that_is_not_there_yet_is_no_error(explain: Explain, hudi_locks: Run, tmp_path: Path) -> None:
    base = str(tmp_path / "t")
    status, told = explain(base, "-p", "filesystem")
    assert (status, told["table"]) == (0, f"{base} holds no table yet")
    assert told["writers"] == {"jobs": [], "unclaimed": [], "contradictions": []}
    assert list(tmp_path.iterdir()) == []
    out = hudi_locks("explain", base, "-p", "filesystem", "-o", "hoodie.bulkinsert.sort.mode=GLOBAL_SORT")[1]
    assert out.startswith(f"{base} holds no table yet\n")
    assert "→ hoodie.bulkinsert.sort.mode=GLOBAL_SORT is not offered" in out


def test_a_store_that_does_not_answer_is_told_and_the_options_explained(
    explain: Explain, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Table:
        raise StorageError("the store does not answer")

    monkeypatch.setattr(Table, "load", fail)
    status, told = explain("s3://explained/t", "-p", "storage")
    assert (status, told["table"]) == (1, "s3://explained/t cannot be looked at")
    assert told["refusals"] == ["the store does not answer"]
    assert rows(told)["hoodie.write.lock.storage.validity.timeout.secs"]["value"] == "300"


def test_a_wrong_command_line_is_status_2(hudi_locks: Run, tmp_path: Path) -> None:
    for words in (("-o", "path"), ("-p", "filesytem"), ("--props", str(tmp_path / "none"))):
        status, out, err = hudi_locks("explain", "/t", *words)
        assert (status, out) == (2, "")
        assert err
