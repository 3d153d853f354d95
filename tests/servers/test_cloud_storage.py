"""What a table rests on, on the emulators of Azure and Google Cloud Storage: the kit, and what each does on the way."""

from __future__ import annotations

import uuid

import pytest
from hudi_locks_conformance.servers import Server
from hudi_locks_conformance.storages.suite import StorageSuite
from hudi_locks_providers.azure_storage import AzureStorage
from hudi_locks_providers.gcs_storage import GcsStorage

from hudi_locks import SystemClock
from hudi_locks.cli import main
from hudi_locks.errors import StorageError
from hudi_locks.storage import StagedFile, Storage, open_storage, probe_storage, refuse_unwritable

pytestmark = pytest.mark.servers
INSTANT = "20260101000000000"
TARGET = f"p/f-0_0-0-0_{INSTANT}.parquet"
LARGE = bytes(range(256)) * (90 << 10)


def draw_base(server: Server) -> str:
    return f"{server.options['hoodie.base.path']}/{uuid.uuid4().hex}"


def write(storage: Storage, data: bytes = b"rows") -> StagedFile:
    staged = storage.stage(TARGET, instant=INSTANT)
    with staged.open() as out:
        out.write(data)
    return staged


class TestOnAzurite(StorageSuite):
    @pytest.fixture
    def storage(self, azurite: Server) -> Storage:
        return open_storage(draw_base(azurite), azurite.options)


class TestOnFakeGcs(StorageSuite):
    """Its gateway judges the condition of a copy, since the program itself copies without regard to it."""

    @pytest.fixture
    def storage(self, fake_gcs: Server) -> Storage:
        return open_storage(draw_base(fake_gcs), fake_gcs.options)


@pytest.fixture(params=["azurite", "fake_gcs"])
def storage(request: pytest.FixtureRequest) -> Storage:
    server: Server = request.getfixturevalue(request.param)
    return open_storage(draw_base(server), server.options)


def test_it_keeps_all_that_is_tried_of_a_store(storage: Storage) -> None:
    refuse_unwritable(storage)
    assert storage.is_service
    assert not storage.is_read_by_spark
    findings = list(probe_storage(storage, SystemClock()))
    assert [finding for finding in findings if not finding.ok] == []
    assert len(findings) == 6
    assert list(storage.walk("")) == []


def test_a_large_file_is_sent_in_parts_while_it_is_written(storage: Storage) -> None:
    staged = storage.stage(TARGET, instant=INSTANT)
    out = staged.open()
    out.write(LARGE[: 9 << 20])
    assert storage.list_staged() == {INSTANT}
    out.write(LARGE[9 << 20 :])
    out.close()
    assert storage.redeem(staged.seal(), TARGET)
    with storage.open_input(TARGET) as source:
        assert source.read() == LARGE
    assert storage.list_staged() == set()


@pytest.fixture
def azure(azurite: Server) -> AzureStorage:
    found = open_storage(draw_base(azurite), azurite.options)
    assert isinstance(found, AzureStorage)
    return found


def test_on_azure_blocks_are_dropped_by_who_cancels(azure: AzureStorage) -> None:
    ticket = write(azure, LARGE).seal()
    key = azure._key(TARGET)
    listed = azure._blocks.list_unnamed(key)
    assert len(listed) == 3
    azure.cancel(ticket, TARGET)
    with pytest.raises(FileNotFoundError):
        azure._blocks.name(key, listed)
    assert not azure.exists(TARGET)


def test_on_azure_a_cancellation_that_was_left_half_done_is_ended(azure: AzureStorage) -> None:
    ticket = write(azure).seal()
    who = ticket.partition("/")[2].partition(" ")[0]
    azure._blocks.drop(azure._key(TARGET), f"{who}00000", who=who)
    assert azure.exists(TARGET)
    azure.cancel_staged({INSTANT})
    assert not azure.exists(TARGET)
    assert azure.list_staged() == set()
    assert not azure.redeem(ticket, TARGET)


def test_on_azure_a_taken_name_stays_and_uses_the_ticket_up(azure: AzureStorage) -> None:
    """Also where the blocks were sent after the name was taken, so that they wait beside the file."""
    azure.create_if_absent(TARGET, b"made")
    ticket = write(azure).seal()
    assert not azure.redeem(ticket, TARGET)
    assert azure.read(TARGET) == b"made"
    azure.delete(TARGET)
    assert not azure.redeem(ticket, TARGET)
    assert not azure.exists(TARGET)


def test_on_azure_wrong_keys_are_one_clear_error(azurite: Server) -> None:
    name = "hoodie.write.lock.azure.connection.string"
    told = azurite.options[name].replace("AccountKey=Eby8", "AccountKey=AAAA")
    storage = open_storage(draw_base(azurite), {**azurite.options, name: told})
    for call in (lambda: storage.list(""), lambda: storage.create_if_absent("a", b""), lambda: write(storage)):
        with pytest.raises(StorageError, match="check the credentials") as caught:
            call()
        assert "AAAA" not in f"{caught.value!r} {caught.value.facts} {storage!r}"


def test_on_gcs_nothing_is_left_aside_of_a_name(fake_gcs: Server) -> None:
    storage = open_storage(draw_base(fake_gcs), fake_gcs.options)
    assert isinstance(storage, GcsStorage)
    assert storage.redeem(write(storage, LARGE).seal(), TARGET)
    assert [path for path, _ in storage.walk("")] == [TARGET]


def test_the_command_line_judges_a_store_that_the_environment_leads_to(
    azurite: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = dict(
        part.split("=", 1) for part in azurite.options["hoodie.write.lock.azure.connection.string"].split(";")[:-1]
    )
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", told["AccountKey"])
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", told["BlobEndpoint"])
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    with pytest.raises(SystemExit) as ended:
        main(["conformance", "--storage", draw_base(azurite), "--only", "SC1,ST3,ST5"])
    said = "".join(capsys.readouterr())
    assert ended.value.code == 0, said
    assert "3 pass" in said
