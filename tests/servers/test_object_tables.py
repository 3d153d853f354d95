"""Tables in buckets of real object stores: what a storage gives, and what a writer is told."""

from __future__ import annotations

import pickle
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_locks_conformance.servers import Server
from real_servers import copy_table

from hudi_locks import ConfigError, SystemClock
from hudi_locks.cli import main
from hudi_locks.errors import NoSuchFile, StorageError
from hudi_locks.format import CommitMetadata
from hudi_locks.services import TableWriter, downgrade_table, upgrade_table
from hudi_locks.storage import LocalStorage, Storage, check_service, map_in_threads, open_storage
from hudi_locks.table import Table, TableConfig

pytestmark = pytest.mark.servers
SERVICES = ("versitygw", "fake_gcs", "azurite")


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest) -> Server:
    server: Server = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def base(service: Server) -> str:
    return f"{service.options['hoodie.base.path']}/tables/{uuid.uuid4().hex}"


@pytest.fixture
def storage(service: Server, base: str) -> Storage:
    return open_storage(base, service.options)


def test_nothing_is_there_at_first(storage: Storage) -> None:
    assert storage.list("") == []
    assert list(storage.walk("a")) == []
    assert storage.read("a/b") is None
    assert storage.stat("a") is None
    assert not storage.touch("a/b")
    assert not storage.delete("a/b")
    storage.delete_folder("a")
    with pytest.raises(NoSuchFile):
        storage.open_input("a/b")


def test_what_is_known_of_a_file_is_what_the_listing_says(storage: Storage) -> None:
    storage.create_if_absent("x/b", b"content")
    assert storage.list("x") == [storage.stat("x/b")]


@pytest.mark.parametrize("data", [b"", b"content"])
def test_a_file_is_created_once(storage: Storage, data: bytes) -> None:
    assert storage.create_if_absent("a/b c/ü=1", data)
    assert not storage.create_if_absent("a/b c/ü=1", b"other")
    assert storage.read("a/b c/ü=1") == data
    storage.replace("a/b c/ü=1", b"new")
    assert storage.read("a/b c/ü=1") == b"new"


def test_of_eight_that_create_one_file_one_is_told_that_it_did(storage: Storage) -> None:
    made = map_in_threads(lambda number: storage.create_if_absent("race", b"%d" % number), range(8))
    assert made.count(True) == 1
    assert storage.read("race") == b"%d" % made.index(True)


def test_children_are_listed_by_name_and_all_that_is_below_is_walked(storage: Storage) -> None:
    for path in ("x/b", "x/a/deep/file", "x/a/file", "y", "xy/z"):
        storage.create_if_absent(path, path.encode())
    assert [(entry.name, entry.size, entry.is_folder) for entry in storage.list("x")] == [
        ("a", 0, True),
        ("b", 3, False),
    ]
    assert [entry.name for entry in storage.list("")] == ["x", "xy", "y"]
    assert [path for path, _ in storage.walk("x")] == ["x/a/deep/file", "x/a/file", "x/b"]
    folder = storage.stat("x/a")
    assert folder is not None
    assert folder.is_folder
    storage.delete_folder("x")
    assert [path for path, _ in storage.walk("")] == ["xy/z", "y"]


def test_more_files_than_a_page_has_are_listed(storage: Storage) -> None:
    names = [f"many/{number:04}" for number in range(1100)]
    map_in_threads(lambda name: storage.create_if_absent(name, b""), names)
    assert [f"many/{entry.name}" for entry in storage.list("many")] == names
    assert [path for path, _ in storage.walk("")] == names


def test_a_beat_renews_what_is_there_and_brings_nothing_back(storage: Storage) -> None:
    storage.create_if_absent("beat", b"who")
    before = storage.stat("beat")
    assert storage.touch("beat")
    after = storage.stat("beat")
    assert before is not None
    assert after is not None
    assert after.modified_ms >= before.modified_ms
    assert storage.read("beat") == b"who"
    assert storage.delete("beat")
    assert not storage.touch("beat")
    assert storage.read("beat") is None


def test_arrow_reads_parts_of_a_file(storage: Storage) -> None:
    rows, sink = (
        pa.table({"id": list(range(50_000)), "text": [f"row {n}" for n in range(50_000)]}),
        pa.BufferOutputStream(),
    )
    pq.write_table(rows, sink, row_group_size=5_000)
    storage.create_if_absent("a/file.parquet", sink.getvalue().to_pybytes())
    travelled: Storage = pickle.loads(pickle.dumps(storage))
    with travelled.open_input("a/file.parquet") as source:
        file = pq.ParquetFile(source)
        assert file.read_row_group(7, columns=["id"])["id"].to_pylist() == list(range(35_000, 40_000))
        assert file.read().equals(rows)


def test_the_clock_is_that_of_the_service(storage: Storage) -> None:
    storage.create_if_absent("now", b"")
    made = storage.stat("now")
    assert made is not None
    assert abs(storage.now_ms() - made.modified_ms) < 60_000
    assert abs(storage.now_ms() - SystemClock().wall_ms()) < 60_000


def test_folders_that_others_mark_are_folders(storage: Storage) -> None:
    """As Spark and Hudi mark them on S3: by an empty object whose name ends in a slash, or in an old way."""
    storage.create_if_absent("p/file", b"1")
    storage.create_if_absent("q_$folder$", b"")
    assert [entry.name for entry in storage.list("")] == ["p"]
    assert [path for path, _ in storage.walk("")] == ["p/file"]


def test_a_table_is_made_loaded_and_tried_once(storage: Storage, base: str, service: Server) -> None:
    Table.create(storage, TableConfig("t", ("id",)))
    assert Table.load(storage).config.name == "t"
    check_service(storage)
    assert storage.exists(".hoodie/.hudi_locks/probed")
    assert not storage.stat(".hoodie/.hudi_locks/probe")
    assert [entry.name for entry in storage.list(".hoodie")][-2:] == ["hoodie.properties", "timeline"]
    assert open_storage(base, service.options).place == storage.place


def test_secrets_travel_to_executors_and_are_shown_by_nothing(versitygw: Server) -> None:
    options = {**versitygw.options, "hoodie.aws.secret.key": "very-secret", "hive_sync.password": "another"}
    storage = open_storage(f"{options['hoodie.base.path']}/t", options)
    pickled = pickle.dumps(storage)
    assert b"very-secret" in pickled
    assert b"another" not in pickled
    assert "secret" not in f"{storage!r} {storage} {storage.address('x')} {storage.place}"
    with pytest.raises(StorageError) as caught:
        storage.read("x")
    assert "very-secret" not in f"{caught.value!r} {caught.value.__cause__!r}"
    assert "check the credentials" in str(caught.value)


def test_what_cannot_be_reached_is_one_clear_error(versitygw: Server) -> None:
    options = versitygw.options
    with pytest.raises(StorageError, match="there is no such bucket"):
        open_storage("s3a://no-such-bucket/t", options).list("")
    with pytest.raises(ConfigError, match="without TLS"):
        open_storage(options["hoodie.base.path"], {**options, "hudi_locks.storage.allow_http": "false"})
    with pytest.raises(ConfigError, match="names no bucket"):
        open_storage("s3a:///t", options)


def test_the_command_line_reads_what_options_or_the_environment_lead_to(
    versitygw: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options, local = versitygw.options, LocalStorage(str(tmp_path))
    base = f"s3://locks/conformance/tables/{uuid.uuid4().hex}"
    Table.create(local, TableConfig("t", ("id",)))
    local.create_if_absent(".hoodie/timeline/20260101000000000.commit.requested", b"")
    copy_table(local, open_storage(base, options))
    reached = {key: value for key, value in options.items() if key.startswith(("hoodie.aws.", "hudi_locks.storage."))}
    given = [word for key, value in reached.items() for word in ("-o", f"{key}={value}")]
    with pytest.raises(SystemExit) as ended:
        main(["verify", base, *given])
    assert ended.value.code == 0
    assert f"{base}: sound" in capsys.readouterr().out
    told = {
        "AWS_ACCESS_KEY_ID": options["hoodie.aws.access.key"],
        "AWS_SECRET_ACCESS_KEY": options["hoodie.aws.secret.key"],
        "AWS_ENDPOINT_URL": options["hudi_locks.storage.endpoint_url"],
        "AWS_ALLOW_HTTP": "true",
    }
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    for path, status, said in ((base, 0, f"{base}: sound"), (f"{base}/elsewhere", 2, "Hudi table")):
        with pytest.raises(SystemExit) as ended:
            main(["verify", path])
        assert ended.value.code == status
        assert said in "".join(capsys.readouterr())


def test_a_table_becomes_one_of_another_version_and_goes_back(storage: Storage, base: str, service: Server) -> None:
    extra = {"hudi_locks.foreign_writers": "false"}
    Table.create(storage, TableConfig("t", ("id",), (), version=6, extra=extra))
    storage.create_if_absent(".hoodie_partition_metadata", b"")
    options = {**service.options, "hoodie.write.lock.provider": "storage"}
    written = [_commit(base, options)]
    for change, to in ((upgrade_table, 9), (downgrade_table, 8), (downgrade_table, 6), (upgrade_table, 9)):
        assert change(base, options, to=to).after == to
        written.append(_commit(base, options))
        timeline = Table.load(storage).timeline()
        assert [instant.requested for instant in timeline.completed_between("")] == written
    assert not [name for name in storage.list_names(".hoodie") if name[:1].isdigit()]
    assert not storage.set_modified(".hoodie/hoodie.properties", 0), "such a store gives files their own times"


def _commit(base: str, options: dict[str, str]) -> str:
    with TableWriter.open(base, options) as writer:
        tx = writer.transactions.begin("commit", "UPSERT")
        assert tx.publish(CommitMetadata.of([], "UPSERT", schema=None)).is_committed
        return tx.instant
