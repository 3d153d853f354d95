"""Secrets are planted in all options that may hold one, and looked for in all that comes out of a process."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spans import keep_spans
from transaction_harness import write_file

from hudi_locks import AcquireTimeout, LockManager
from hudi_locks.cli.ui.panels import PANELS, WatchedTable
from hudi_locks.clock import SystemClock
from hudi_locks.config import KEYS
from hudi_locks.errors import HudiLocksError
from hudi_locks.format import BaseFileName, CommitMetadata, IOType, WriteStat
from hudi_locks.lock import available_providers, load_provider_class
from hudi_locks.services import TableWriter
from hudi_locks.storage import open_storage
from hudi_locks.table import PARTITION_METADATA, Table, TableConfig

pytestmark = pytest.mark.filterwarnings("default")

Run = Callable[..., tuple[int, str, str]]
Shown = dict[str, str]
CLOSED = "127.0.0.1:1"
"""Where nobody answers."""
FORMS = {
    "hoodie.write.lock.hivemetastore.uris": f"thrift://etl:{{}}@{CLOSED}",
    "hoodie.datasource.hive_sync.metastore.uris": f"thrift://etl:{{}}@{CLOSED}",
    "hoodie.datasource.hive_sync.jdbcurl": "jdbc:hive2://h:10000/d;user=etl;password={}",
    "hoodie.write.lock.dynamodb.endpoint_url": f"http://etl:{{}}@{CLOSED}",
    "hudi_locks.storage.endpoint_url": f"http://etl:{{}}@{CLOSED}",
    "hoodie.write.lock.zookeeper.url": f"etl:{{}}@{CLOSED}",
    "hoodie.write.lock.azure.connection.string": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};",
    "hoodie.write.lock.azure.sas.token": "sv=2024-11-04&se=2030-01-01&sp=rw&sig={}%3D",
    "hoodie.aws.glue.endpoint": f"http://etl:{{}}@{CLOSED}",
}
"""Where a secret is a part of a value."""
NAMED = (
    "hoodie.datasource.hive_sync.password",
    "hoodie.write.lock.zookeeper.auth",
    "fs.s3a.secret.key",
    "fs.s3a.session.token",
    "fs.azure.account.key.mine.dfs.core.windows.net",
    "sasl.jaas.config",
    "basic.auth.user.info",
    "acme.password",
)
"""Keys of others, whose names tell of a secret."""


def plant() -> tuple[dict[str, str], dict[str, str]]:
    """Options, and the secret in the value of each."""
    names = sorted({*(key.name for key in KEYS.values() if key.secret), *FORMS, *NAMED})
    secrets = {name: f"pl4nted{number:02}s3cret" for number, name in enumerate(names)}
    return {name: FORMS.get(name, "{}").format(secret) for name, secret in secrets.items()}, secrets


OPTIONS, SECRETS = plant()


def find_shown(shown: Mapping[str, str]) -> set[tuple[str, str]]:
    """What shows a secret, and of which key."""
    return {(where, name) for where, text in shown.items() for name, secret in SECRETS.items() if secret in text}


def show_error(error: BaseException) -> str:
    told = "".join(traceback.format_exception(error))
    facts = getattr(error, "facts", {})
    return f"{told} {error!r} {vars(error)} {facts} {pickle.dumps(error)!r}"


def read_log(caplog: pytest.LogCaptureFixture) -> str:
    """What was logged, also by botocore for those who debug it."""
    return "\n".join(map(logging.Formatter().format, caplog.records))


@pytest.fixture
def options(tmp_path: Path) -> dict[str, object]:
    given = {"hoodie.base.path": str(tmp_path / "t"), "hoodie.write.lock.provider": "filesystem"}
    return {**OPTIONS, **given, "hudi_locks.tracing": "true", "hoodie.metrics.on": "true"}


def make_rows() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": ["a"]}), sink)
    return bytes(sink.getvalue())


def put(writer: TableWriter, group: str) -> None:
    tx = writer.transactions.begin("commit", "UPSERT")
    name = str(BaseFileName(group, tx.instant))
    writer.table.storage.create_if_absent(f"p/{PARTITION_METADATA}", b"")
    ticket = write_file(tx.files, "p", name, make_rows(), io_type=IOType.CREATE)
    stat = WriteStat("p", group, f"p/{name}", ticket=ticket)
    assert tx.publish(CommitMetadata.of([stat], "UPSERT", schema=None)).is_committed


def write(options: Mapping[str, object], shown: Shown) -> None:
    """Commits, a write that is taken back, services, and a lock that is in the way."""
    path = str(options["hoodie.base.path"])
    Table.create(open_storage(path, {}), TableConfig("t", ("id",), ("p",)))
    given = {**options, "hoodie.metrics.reporter.type": "CONSOLE"}
    with TableWriter.open(path, given) as writer:
        assert writer.locks is not None
        put(writer, "g-0")
        put(writer, "g-1")
        writer.transactions.begin("commit", "UPSERT").abort("it is not wanted")
        writer.services.clean()
        writer.services.archive()
        writer.services.make_metadata_table()
        put(writer, "g-2")
        with writer.locks.lock() as held, LockManager.from_options(given) as other:
            shown["holder"] = f"{writer.locks.holder()} {writer.locks.holder()!r}"
            shown["repr"] = f"{held!r} {writer.locks!r} {writer.locks.provider!r} {writer.options!r} {writer!r}"
            shown["pickled options"] = repr(pickle.dumps(writer.options))
            with pytest.raises(AcquireTimeout) as caught:
                other.lock(timeout_s=0)
            shown["timeout"] = show_error(caught.value)
        shown["metrics"] = repr(writer.transactions.metrics.snapshot())


def read_files(path: Path) -> Iterator[tuple[str, str]]:
    for file in path.rglob("*"):
        if file.is_file():
            yield f"file {file.relative_to(path)}", f"{file} {file.read_bytes().decode('latin-1')}"


def test_what_a_writer_leaves_and_tells_shows_no_secret(
    options: dict[str, object],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    recwarn: pytest.WarningsRecorder,
) -> None:
    shown: Shown = {}
    with keep_spans() as spans, caplog.at_level(logging.DEBUG):
        write(options, shown)
        shown["trace"] = spans.text()
    shown["log"] = read_log(caplog)
    shown["warnings"] = " ".join(str(one.message) for one in recwarn)
    shown |= {"printed": "".join(capsys.readouterr())} | dict(read_files(tmp_path))
    assert "hudi.publish" in shown["trace"]
    assert "t_lock_acquire_attempts" in shown["printed"]
    assert sum(where.endswith(".commit") for where in shown) == 3
    assert find_shown(shown) == set()


@pytest.mark.parametrize("provider", sorted(available_providers()))
def test_no_error_or_log_of_a_provider_shows_a_secret(
    provider: str, options: dict[str, object], caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    """Nobody answers at the addresses that are given."""
    small = {"hoodie.write.lock.zookeeper.connection_timeout_ms": "100", "hoodie.write.lock.client.num_retries": "0"}
    named = {
        "hoodie.base.path": "s3://bucket/t" if provider == "storage" else options["hoodie.base.path"],
        "hoodie.write.lock.hivemetastore.database": "d",
        "hoodie.write.lock.hivemetastore.table": "t",
        "hoodie.write.lock.dynamodb.table": "locks",
        "hoodie.write.lock.dynamodb.partition_key": "t",
        "hoodie.write.lock.dynamodb.region": "eu-central-1",
        "hoodie.write.lock.zookeeper.base_path": "/locks",
        "hoodie.write.lock.zookeeper.lock_key": "t",
        "hoodie.table.name": "t",
        "hudi_locks.chain.providers": "filesystem,in_process",
    }
    shown: Shown = {}
    with caplog.at_level(logging.DEBUG):
        try:
            given = {**options, **small, **named, "hoodie.metrics.on": "false", "hudi_locks.tracing": "false"}
            with LockManager(provider, given) as manager:
                shown["repr"] = f"{manager!r} {manager.provider!r}"
                manager.lock(timeout_s=0).release()
                shown["holder"] = repr(manager.holder())
        except HudiLocksError as error:
            shown["error"] = show_error(error)
    shown |= {"log": read_log(caplog), "warnings": " ".join(str(one.message) for one in recwarn)}
    assert shown.keys() & {"holder", "error"}
    assert find_shown(shown) == set()


COMMANDS = (
    "ls", "show", "config", "explain", "doctor", "init --dry-run", "audit ls", "audit verify", "clean", "conflicts",
    "metadata verify", "table", "timeline", "verify", "savepoint",
)  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where a table with a commit is."""
    path = str(tmp_path_factory.mktemp("written"))
    Table.create(open_storage(path, {}), TableConfig("t", ("id",), ("p",)))
    with TableWriter.open(path, {"hoodie.write.lock.provider": "filesystem"}) as writer:
        put(writer, "g-0")
    return path


@pytest.mark.parametrize("form", [(), ("--json",)])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_a_secret(
    command: str,
    form: tuple[str, ...],
    options: dict[str, object],
    written: str,
    hudi_locks: Run,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """By options of the command line and by a file of properties, which win in turns."""
    given = {**options, "hoodie.metrics.on": "false", "hudi_locks.tracing": "false"}
    del given["hoodie.base.path"]
    props = tmp_path / "job.properties"
    props.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    with caplog.at_level(logging.DEBUG):
        by_file = hudi_locks(*command.split(), written, "--props", str(props), *form)
        known = {name: value for name, value in given.items() if name.startswith(("hoodie.", "hudi_locks."))}
        words = (word for name, value in known.items() for word in ("-o", f"{name}={value}"))
        by_words = hudi_locks(*command.split(), written, *words, *form)
    shown = {"by file": str(by_file), "by words": str(by_words), "log": read_log(caplog)}
    assert by_file[0] == by_words[0] == (1 if command == "verify" else 0), "its rows have no meta columns"
    assert by_file[1]
    assert find_shown(shown) == set()


def test_the_live_page_shows_no_secret(options: dict[str, object]) -> None:
    path = str(options["hoodie.base.path"])
    table = Table.create(open_storage(path, {}), TableConfig("t", ("id",), ("p",)))
    provider = load_provider_class("filesystem")(options, clock=SystemClock(), on_lost=lambda *_: None)
    with provider, LockManager.from_options({**options, "hoodie.metrics.on": "false"}) as manager, manager.lock():
        watched = WatchedTable(Table.load(table.storage), options, provider, last=3)
        shown = watched.look(SystemClock().wall_ms())
    assert list(shown) == list(PANELS)
    assert find_shown(shown) == set()


def test_every_secret_of_a_declared_key_was_planted() -> None:
    declared = {key.name for key in KEYS.values() if key.secret}
    assert declared <= SECRETS.keys()
    assert all(secret in OPTIONS[name] for name, secret in SECRETS.items())
    assert find_shown({"here": str(OPTIONS)}) == {("here", name) for name in SECRETS}


@pytest.mark.parametrize("base", ["s3://bucket/t", "abfss://lake@mine.dfs.core.windows.net/t"])
def test_no_store_shows_a_secret_where_it_fails(
    base: str, caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    """Nobody answers at the address that is given. Of Azure's ways to sign in it is the one by a SAS token."""
    shown: Shown = {}
    other = ("hoodie.write.lock.azure.connection.string", "hoodie.write.lock.azure.client.secret")
    given = {name: value for name, value in OPTIONS.items() if name not in other}
    with caplog.at_level(logging.DEBUG):
        try:
            storage = open_storage(base, {**given, "hudi_locks.storage.allow_http": "true"})
            shown["repr"] = f"{storage!r} {storage}"
            Table.load(storage)
        except HudiLocksError as error:
            shown["error"] = show_error(error)
    shown |= {"log": read_log(caplog), "warnings": " ".join(str(one.message) for one in recwarn)}
    assert "no answer to the request" in shown["error"]
    assert find_shown(shown) == set()
