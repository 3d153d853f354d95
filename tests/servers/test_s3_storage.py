"""What a table rests on, on a real S3 service: creation, renewal, tickets, and buckets that keep versions."""

from __future__ import annotations

import pickle
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_conformance.servers import Launch, LocalServer, Server, find_free_port
from hudi_locks_conformance.servers.versitygw import VersityGw
from hudi_locks_conformance.storages import StorageCheck
from hudi_locks_conformance.storages.suite import StorageSuite
from hudi_locks_providers.s3_storage import S3Storage
from s3_proxy import S3Proxy
from s3_scratch import INSTANT, TARGET, name_file, ticket_of, write

from hudi_locks import SystemClock
from hudi_locks.errors import NoSuchFile, StorageError
from hudi_locks.storage import MOST_TICKET_BYTES, StagedFile, Storage, open_storage, probe_storage, refuse_unwritable

pytestmark = pytest.mark.servers
OTHER = "20260101000000001"


def race(*calls: Callable[[], object]) -> list[object]:
    start = threading.Barrier(len(calls))

    def contend(call: Callable[[], object]) -> object:
        start.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(contend, calls))


class TestTickets:
    def test_a_table_may_be_written(self, storage: Storage) -> None:
        refuse_unwritable(storage)
        assert not storage.is_read_by_spark

    def test_staging_sends_nothing(self, lossy: S3Storage, proxy: S3Proxy) -> None:
        staged = lossy.stage(TARGET, instant=INSTANT)
        assert staged.target == TARGET
        staged.discard()
        assert proxy.requests == []

    @pytest.mark.parametrize("data", [b"", b"all rows"])
    def test_a_redeemed_file_has_its_name_whole(self, storage: Storage, data: bytes) -> None:
        ticket = ticket_of(storage, data)
        assert storage.list("") == []
        assert 0 < len(ticket.encode()) <= MOST_TICKET_BYTES
        assert storage.redeem(ticket, TARGET)
        storage.flush([TARGET])
        assert storage.read(TARGET) == data
        with storage.open_input(TARGET) as source:
            assert source.read() == data

    def test_a_small_file_costs_three_requests(self, lossy: S3Storage, proxy: S3Proxy) -> None:
        assert lossy.redeem(ticket_of(lossy), TARGET)
        assert dict(proxy.count()) == {"CreateMultipartUpload": 1, "UploadPart": 1, "CompleteMultipartUpload": 1}

    def test_a_large_file_is_sent_in_parts_while_it_is_written(self, lossy: S3Storage, proxy: S3Proxy) -> None:
        piece = bytes(range(256)) * 4096
        staged = lossy.stage(TARGET, instant=INSTANT)
        with staged.open() as out:
            for _ in range(20):
                out.write(piece)
            assert proxy.count()["CreateMultipartUpload"] == 1
        ticket = staged.seal()
        assert proxy.count()["UploadPart"] == 3
        assert lossy.redeem(ticket, TARGET)
        with lossy.open_input(TARGET) as source:
            assert source.size() == 20 << 20
            source.seek((9 << 20) + 7)
            assert source.read(300) == (piece * 2)[7:307]
            source.seek(0)
            assert source.read() == piece * 20

    def test_the_ticket_of_many_parts_stays_short(
        self, lossy: S3Storage, proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("hudi_locks_providers._s3.uploads._PART_BYTES", 5 << 20)
        ticket = ticket_of(lossy, bytes(5 << 20) * 31 + b"end")
        assert len(ticket.encode()) <= MOST_TICKET_BYTES
        assert lossy.redeem(ticket, TARGET)
        assert proxy.count()["ListParts"] >= 1
        found = lossy.stat(TARGET)
        assert found is not None
        assert found.size == (5 << 20) * 31 + 3
        lossy.delete(TARGET)
        assert not lossy.redeem(ticket, TARGET)

    def test_a_file_is_written_from_its_beginning_each_time_that_it_is_opened(self, storage: Storage) -> None:
        staged = write(storage, b"a longer text")
        with staged.open() as out:
            out.write(b"short")
        assert storage.redeem(staged.seal(), TARGET)
        assert storage.read(TARGET) == b"short"

    def test_a_ticket_is_used_up_also_when_its_file_is_removed(self, storage: Storage) -> None:
        ticket = ticket_of(storage)
        assert storage.redeem(ticket, TARGET)
        assert storage.delete(TARGET)
        assert not storage.redeem(ticket, TARGET)
        assert not storage.exists(TARGET)

    def test_a_name_that_is_taken_stays_as_it_is_and_uses_the_ticket_up(self, storage: Storage) -> None:
        first, second = ticket_of(storage, b"first"), ticket_of(storage, b"second")
        assert storage.redeem(first, TARGET)
        assert not storage.redeem(second, TARGET)
        storage.redeem(first, TARGET)
        assert storage.read(TARGET) == b"first"
        storage.delete(TARGET)
        assert not storage.redeem(second, TARGET)
        assert not storage.exists(TARGET)

    def test_a_cancelled_ticket_is_never_redeemed(self, storage: Storage) -> None:
        ticket = ticket_of(storage)
        storage.cancel(ticket, TARGET)
        storage.cancel(ticket, TARGET)
        assert not storage.redeem(ticket, TARGET)
        assert storage.list("") == []

    def test_a_file_may_be_discarded_while_it_is_written(self, storage: Storage) -> None:
        staged = storage.stage(TARGET, instant=INSTANT)
        out = staged.open()
        out.write(b"some")
        staged.discard()
        out.close()
        with pytest.raises(NoSuchFile):
            staged.seal()
        assert storage.list_staged() == set()

    def test_a_part_that_comes_after_the_cancellation_is_refused(self, storage: Storage) -> None:
        staged: Any = storage.stage(TARGET, instant=INSTANT)
        out = staged.open()
        out.write(bytes(9 << 20))
        wait(staged._parts._sent)  # what a cancellation does to a part that is on its way S3 does not say
        storage.cancel_staged({INSTANT})
        with pytest.raises(NoSuchFile, match="it was cancelled"):
            out.close()
        with pytest.raises(NoSuchFile):
            staged.seal()

    def test_what_instants_staged_is_told_and_cancelled_apart(self, storage: Storage) -> None:
        log = f"p/.f-1_{OTHER}.log.1_0-0-0"
        gone, kept = ticket_of(storage), ticket_of(storage, target=log, instant=OTHER)
        assert storage.list_staged() == {INSTANT, OTHER}
        storage.cancel_staged({INSTANT, "20200101000000000"})
        assert storage.list_staged() == {OTHER}
        assert not storage.redeem(gone, TARGET)
        assert storage.redeem(kept, log)
        assert storage.list_staged() == set()

    def test_uploads_of_another_table_are_not_ours_to_end(self, versitygw: Server, base: str, storage: Storage) -> None:
        other = open_storage(f"{base}-other", versitygw.options)
        ticket = ticket_of(other)
        assert storage.list_staged() == set()
        storage.cancel_staged({INSTANT})
        assert other.redeem(ticket, TARGET)

    @pytest.mark.parametrize("ticket", ["", "x", "x ", "x #1", "x #a b"])
    def test_what_is_no_ticket_is_refused(self, storage: Storage, ticket: str) -> None:
        for call in (storage.redeem, storage.cancel):
            with pytest.raises(StorageError, match="is no ticket"):
                call(ticket, TARGET)

    def test_a_ticket_that_nobody_gave_names_nothing(self, storage: Storage) -> None:
        ticket = f"{uuid.uuid4()} {'0' * 32}"
        assert not storage.redeem(ticket, TARGET)
        storage.cancel(ticket, TARGET)
        assert storage.list("") == []

    def test_a_staged_file_travels_to_another_process(self, storage: Storage) -> None:
        copy: StagedFile = pickle.loads(pickle.dumps(storage.stage(TARGET, instant=INSTANT)))
        with copy.open() as out:
            out.write(b"there")
        assert storage.redeem(copy.seal(), TARGET)
        assert storage.read(TARGET) == b"there"

    def test_of_many_tickets_for_one_name_one_is_redeemed(self, storage: Storage) -> None:
        for turn in range(8):
            target = name_file(turn)
            tickets = [ticket_of(storage, b"%d" % number, target=target) for number in range(4)]
            won = race(*[partial(storage.redeem, ticket, target) for ticket in tickets])
            assert won.count(True) == 1
            assert storage.read(target) == b"%d" % won.index(True)
            storage.delete(target)
            assert not any(storage.redeem(ticket, target) for ticket in tickets)

    def test_one_ticket_is_redeemed_by_many_and_the_file_is_there_once(self, storage: Storage) -> None:
        for turn in range(8):
            target = name_file(turn)
            ticket = ticket_of(storage, target=target)
            won = race(*[partial(storage.redeem, ticket, target)] * 4)
            assert won.count(True) >= 1
            assert storage.read(target) == b"rows"
            storage.delete(target)
            assert not storage.redeem(ticket, target)

    def test_a_race_of_redeem_and_cancel_ends_in_one_of_the_two(self, storage: Storage) -> None:
        for turn in range(12):
            target = name_file(turn)
            ticket = ticket_of(storage, target=target)
            won, _ = race(partial(storage.redeem, ticket, target), partial(storage.cancel, ticket, target))
            assert storage.exists(target) == won
            storage.delete(target)
            assert not storage.redeem(ticket, target)


def test_this_service_keeps_all_that_is_tried_of_a_store(storage: Storage) -> None:
    findings = list(probe_storage(storage, SystemClock()))
    assert [finding for finding in findings if not finding.ok] == []
    assert len(findings) == 6
    assert list(storage.walk("")) == []


def test_what_this_service_breaks_in_a_bucket_with_versions_is_named(versioned: S3Storage) -> None:
    """It takes `If-Match` for kept where the object was removed; AWS does not."""
    ill = [finding for finding in probe_storage(versioned, SystemClock()) if not finding.ok]
    assert [finding.name for finding in ill] == ["renews-in-place"]
    assert "brought a removed file BACK" in ill[0].found


class TestConformance(StorageSuite):
    @pytest.fixture
    def storage(self, base: str, versitygw: Server) -> Storage:
        return open_storage(base, versitygw.options)

    def test_conforms(self, storage: Storage, storage_check: StorageCheck) -> None:
        if storage_check.id == "SR2":
            pytest.skip("unsupported: this service looks at the tag and writes in two steps")
        super().test_conforms(storage, storage_check)


class Versioned(VersityGw):
    """The same service, which can keep every version of an object."""

    def launch(self, folder: Path, port: int) -> Launch:
        usual, versions = super().launch(folder, port), folder / "versions"
        versions.mkdir(exist_ok=True)
        return Launch([*usual.words[:-1], "--versioning-dir", str(versions), usual.words[-1]], usual.env)


@pytest.fixture
def keeping(tmp_path: Path, versitygw: Server) -> Iterator[Callable[[str], S3Storage]]:
    """Opens tables in buckets of a service that can keep versions."""
    del versitygw  # which is skipped where the program cannot be had
    server = LocalServer(Versioned(), tmp_path, find_free_port())
    server.start()

    def open_one(path: str) -> S3Storage:
        found = open_storage(path, server.options)
        assert isinstance(found, S3Storage)
        return found

    yield open_one
    server.stop()


@pytest.fixture
def versioned(keeping: Callable[[str], S3Storage]) -> S3Storage:
    """A table in a bucket that keeps every version."""
    found = keeping("s3a://locks/t")
    enabled = {"Status": "Enabled"}
    found._bucket.client.api.put_bucket_versioning(Bucket="locks", VersioningConfiguration=enabled)
    return found


def test_files_of_a_bucket_that_keeps_versions_are_created_named_and_gone_once(versioned: S3Storage) -> None:
    assert versioned.create_if_absent("a", b"1")
    assert not versioned.create_if_absent("a", b"2")
    assert versioned.touch("a")
    assert versioned.delete("a")
    assert not versioned.touch("a")
    assert versioned.read("a") is None
    assert versioned.stat("a") is None
    assert versioned.list("") == []
    assert versioned.create_if_absent("b", b"3")
    ticket, late = ticket_of(versioned), ticket_of(versioned, b"late")
    assert versioned.redeem(ticket, TARGET)
    assert not versioned.redeem(late, TARGET)
    assert versioned.read(TARGET) == b"rows"
    versioned.delete_folder("p")
    for used in (ticket, late):
        versioned.redeem(used, TARGET)  # this service answers as if it did it, and names nothing
        assert not versioned.exists(TARGET)
    assert [path for path, _ in versioned.walk("")] == ["b"]


def test_a_bucket_with_object_lock_keeps_what_was_deleted_out_of_sight(keeping: Callable[[str], S3Storage]) -> None:
    """Retention by default: every request needs a checksum, and a delete only hides."""
    api = keeping("s3a://locks/t")._bucket.client.api
    api.create_bucket(Bucket="kept", ObjectLockEnabledForBucket=True)
    rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}
    locked = {"ObjectLockEnabled": "Enabled", "Rule": rule}
    api.put_object_lock_configuration(Bucket="kept", ObjectLockConfiguration=locked)
    storage = keeping("s3a://kept/t")
    assert storage.create_if_absent("a", b"1")
    assert not storage.create_if_absent("a", b"2")
    storage.replace("a", b"3")
    assert storage.read("a") == b"3"
    ticket = ticket_of(storage)
    assert storage.redeem(ticket, TARGET)
    assert storage.read(TARGET) == b"rows"
    assert storage.delete("a")
    storage.delete_folder("p")
    assert list(storage.walk("")) == []
