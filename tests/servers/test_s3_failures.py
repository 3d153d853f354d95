"""A table on a real S3 service where answers are lost, clocks differ, and what the service refuses."""

from __future__ import annotations

from typing import Any

import pytest
from hudi_locks_conformance.servers import Server
from hudi_locks_providers.s3_storage import S3Storage
from s3_proxy import S3Proxy
from s3_scratch import ENDPOINT, TARGET, ticket_of, write

from hudi_locks import ConfigError
from hudi_locks.errors import StorageError
from hudi_locks.storage import Storage, open_storage

pytestmark = pytest.mark.servers


class TestLostAnswers:
    def test_who_made_a_file_is_known_although_no_answer_came(self, lossy: S3Storage, proxy: S3Proxy) -> None:
        with proxy.failing("lose", "PutObject", times=1) as met:
            assert lossy.create_if_absent("a", b"mine")
        assert len(met) == 1
        assert lossy.read("a") == b"mine"

    def test_a_file_of_another_with_the_same_bytes_is_not_taken_for_ours(
        self, lossy: S3Storage, storage: Storage, proxy: S3Proxy
    ) -> None:
        def hasten() -> str:
            assert storage.create_if_absent("a", b"")
            return "drop"

        with proxy.failing(hasten, "PutObject", times=1):
            assert not lossy.create_if_absent("a", b"")
        assert storage.read("a") == b""

    @pytest.mark.parametrize("verdict", ["drop", 500, 503, 409])
    def test_a_file_is_made_once_after_requests_that_failed(
        self, lossy: S3Storage, proxy: S3Proxy, verdict: Any
    ) -> None:
        with proxy.failing(verdict, "PutObject", times=2) as met:
            assert lossy.create_if_absent("a", b"x")
        assert len(met) == 2
        assert not lossy.create_if_absent("a", b"x")

    def test_no_answer_at_all_is_an_error_that_says_so(
        self, lossy: S3Storage, proxy: S3Proxy, storage: Storage
    ) -> None:
        with proxy.failing("drop", "PutObject"), pytest.raises(StorageError, match="no answer to the request to write"):
            lossy.create_if_absent("a", b"x")
        assert not storage.exists("a")

    def test_a_file_that_was_made_with_every_answer_lost_is_found(self, lossy: S3Storage, proxy: S3Proxy) -> None:
        with proxy.failing("lose", "PutObject"):
            assert lossy.create_if_absent("a", b"x")

    @pytest.mark.parametrize("verdict", ["lose", "drop", 500, 503])
    def test_a_beat_is_sent_again(self, lossy: S3Storage, proxy: S3Proxy, verdict: Any) -> None:
        lossy.create_transient("beat", b"who")
        with proxy.failing(verdict, "PutObject", times=1):
            assert lossy.touch("beat")
        assert lossy.read("beat") == b"who"

    def test_a_beat_brings_nothing_back_that_was_removed_while_it_was_sent(
        self, lossy: S3Storage, storage: Storage, proxy: S3Proxy
    ) -> None:
        lossy.create_transient("beat", b"who")
        with proxy.failing(lambda: storage.delete("beat") and None, "PutObject", times=1):
            assert not lossy.touch("beat")
        assert not storage.exists("beat")
        assert not lossy.touch("beat")

    def test_a_beat_costs_one_request(self, lossy: S3Storage, proxy: S3Proxy) -> None:
        lossy.create_transient("beat", b"who")
        for _ in range(3):
            assert lossy.touch("beat")
        assert dict(proxy.count()) == {"PutObject": 4}

    def test_a_beat_follows_another_process_that_wrote_the_file(self, lossy: S3Storage, storage: Storage) -> None:
        lossy.create_transient("beat", b"who")
        storage.replace("beat", b"another")
        assert lossy.touch("beat")
        assert storage.read("beat") == b"another"

    @pytest.mark.parametrize("verdict", ["lose", "drop", 500, 503])
    def test_a_name_is_given_once_although_answers_are_lost(
        self, lossy: S3Storage, proxy: S3Proxy, verdict: Any
    ) -> None:
        ticket = ticket_of(lossy)
        with proxy.failing(verdict, "CompleteMultipartUpload", times=2) as met:
            named = lossy.redeem(ticket, TARGET)
        assert met
        assert named or verdict == "lose"
        assert lossy.read(TARGET) == b"rows"
        lossy.delete(TARGET)
        assert not lossy.redeem(ticket, TARGET)

    @pytest.mark.parametrize("verdict", ["lose", "drop", 500])
    def test_a_cancellation_holds_although_answers_are_lost(
        self, lossy: S3Storage, proxy: S3Proxy, verdict: Any
    ) -> None:
        ticket = ticket_of(lossy)
        with proxy.failing(verdict, "AbortMultipartUpload", times=2):
            lossy.cancel(ticket, TARGET)
        assert not lossy.redeem(ticket, TARGET)

    def test_a_cancellation_without_an_answer_is_an_error(self, lossy: S3Storage, proxy: S3Proxy) -> None:
        ticket = ticket_of(lossy)
        with proxy.failing("drop", "AbortMultipartUpload"), pytest.raises(StorageError, match="no answer"):
            lossy.cancel(ticket, TARGET)
        assert lossy.redeem(ticket, TARGET)

    @pytest.mark.parametrize("kind", ["CreateMultipartUpload", "UploadPart"])
    @pytest.mark.parametrize("verdict", ["lose", "drop", 503])
    def test_what_a_task_sends_is_sent_again(self, lossy: S3Storage, proxy: S3Proxy, kind: str, verdict: Any) -> None:
        with proxy.failing(verdict, kind, times=1) as met:
            ticket = ticket_of(lossy, bytes(10 << 20))
        assert len(met) == 1
        assert lossy.redeem(ticket, TARGET)
        assert lossy.read(TARGET) == bytes(10 << 20)

    @pytest.mark.parametrize("kind", ["GetObject", "HeadObject", "ListObjectsV2"])
    def test_what_is_read_is_asked_for_again(self, lossy: S3Storage, proxy: S3Proxy, kind: str) -> None:
        lossy.create_if_absent("p/a", b"x")
        with proxy.failing("drop", kind, times=1):
            assert lossy.read("p/a") == b"x"
            assert lossy.exists("p/a")
            assert [entry.name for entry in lossy.list("p")] == ["a"]

    def test_a_file_that_is_replaced_while_it_is_read_fails_the_read(self, storage: Storage) -> None:
        storage.replace("big", bytes(3 << 20))
        with storage.open_input("big") as source:
            storage.replace("big", b"1" * (3 << 20))
            with pytest.raises(StorageError, match="removed or replaced"):
                source.read()


class TestTime:
    def test_the_time_costs_no_request_of_its_own(self, lossy: S3Storage, proxy: S3Proxy) -> None:
        lossy.create_if_absent("a", b"")
        told = [lossy.now_ms() for _ in range(20)]
        assert told == sorted(told)
        assert dict(proxy.count()) == {"PutObject": 1}
        made = lossy.stat("a")
        assert made is not None
        assert -2_000 <= lossy.now_ms() - made.modified_ms < 30_000

    def test_a_storage_that_heard_nothing_yet_asks(self, lossy: S3Storage, proxy: S3Proxy) -> None:
        assert lossy.now_ms() > 0
        assert dict(proxy.count()) == {"HeadObject": 1}


class TestRefusals:
    def test_a_bucket_that_is_not_there(self, versitygw: Server) -> None:
        storage = open_storage("s3://no-such-bucket/t", versitygw.options)
        for call in (
            lambda: storage.list(""),
            lambda: storage.read("a"),
            lambda: storage.create_if_absent("a", b""),
            lambda: write(storage),
            storage.list_staged,
        ):
            with pytest.raises(StorageError, match=r"there is no such bucket.*make it, or mend the table's path"):
                call()

    @pytest.mark.parametrize("key", ["hoodie.aws.access.key", "hoodie.aws.secret.key"])
    def test_wrong_credentials(self, versitygw: Server, base: str, key: str) -> None:
        storage = open_storage(base, {**versitygw.options, key: "not-this-one"})
        for call in (lambda: storage.list(""), lambda: storage.create_if_absent("a", b""), lambda: write(storage)):
            with pytest.raises(StorageError, match="check the credentials") as caught:
                call()
            assert caught.value.facts["status"] in (403, 404)
            assert "not-this-one" not in f"{caught.value!r} {caught.value.facts} {storage!r}"

    def test_no_credentials(self, versitygw: Server, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
        monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
        options = {name: value for name, value in versitygw.options.items() if not name.startswith("hoodie.aws")}
        with pytest.raises(StorageError, match=r"no credentials could be had.*give keys, a profile, or a role"):
            open_storage(base, options).list("")

    def test_keys_in_the_address_are_refused_and_not_repeated(self, versitygw: Server) -> None:
        with pytest.raises(ConfigError, match="would hold keys") as caught:
            open_storage("s3a://AKIA:very-secret@bucket/t", versitygw.options)
        assert "very-secret" not in f"{caught.value!r} {caught.value.facts}"

    def test_nothing_answers(self, versitygw: Server, base: str) -> None:
        storage = open_storage(base, {**versitygw.options, ENDPOINT: "http://127.0.0.1:9"})
        with pytest.raises(StorageError, match="no answer to the request to list it"):
            storage.list("")

    def test_the_right_that_lacks_is_named(self, lossy: S3Storage, proxy: S3Proxy) -> None:
        ticket = ticket_of(lossy)
        for kind, right, call in (
            ("PutObject", "s3:PutObject", lambda: lossy.create_if_absent("a", b"")),
            ("CompleteMultipartUpload", "s3:PutObject", lambda: lossy.redeem(ticket, TARGET)),
            ("AbortMultipartUpload", "s3:AbortMultipartUpload", lambda: lossy.cancel(ticket, TARGET)),
            ("ListMultipartUploads", "s3:ListBucketMultipartUploads", lossy.list_staged),
            ("GetObject", "s3:GetObject", lambda: lossy.read("a")),
            ("ListObjectsV2", "s3:ListBucket", lambda: lossy.list("")),
        ):
            with proxy.failing(403, kind) as met, pytest.raises(StorageError, match=f"grant {right}"):
                call()
            assert len(met) == 1

    def test_many_files_are_removed_in_batches(self, lossy: S3Storage, proxy: S3Proxy) -> None:
        lossy.create_empty([f"m/{number}" for number in range(30)])
        lossy.make_folder("m/empty")
        lossy.delete_folder("m")
        assert lossy.stat("m") is None
        assert proxy.count()["DeleteObjects"] == 1
        lossy.delete_folder("m")
