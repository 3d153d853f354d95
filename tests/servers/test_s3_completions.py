"""Uploads that are completed as boto3 completed the first one of a bucket, at less cost."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from hudi_locks_conformance.servers import Server
from hudi_locks_providers.s3_storage import S3Storage
from s3_proxy import S3Proxy
from s3_scratch import ENDPOINT, INSTANT, name_file

from hudi_locks.errors import StorageError
from hudi_locks.storage import open_storage

pytestmark = pytest.mark.servers
ODD = "a b/ü=1/x+y%25&z'(1)~*@,;$!/f-0_0-0-0_20260101000000000.parquet"
TARGET = name_file(1)
OF_BOTO = {"amz-sdk-invocation-id", "amz-sdk-request"}


@pytest.fixture
def storage(versitygw: Server, proxy: S3Proxy) -> S3Storage:
    """Its client has asked for nothing yet: each proxy has an address of its own."""
    base = f"{versitygw.options['hoodie.base.path']}/{uuid.uuid4().hex}"
    found = open_storage(base, {**versitygw.options, ENDPOINT: proxy.url})
    assert isinstance(found, S3Storage)
    return found


@pytest.fixture
def knowing(storage: S3Storage) -> S3Storage:
    """Its client has completed an upload."""
    assert storage.redeem(make_ticket(storage, "p/first"), "p/first")
    return storage


def make_ticket(storage: S3Storage, target: str = TARGET, parts: int = 1) -> str:
    staged = storage.stage(target, instant=INSTANT)
    with staged.open() as out:
        for _ in range(parts):
            out.write(b"rows" + bytes(0 if parts == 1 else 8 << 20))
    return staged.seal()


def find_client(storage: S3Storage) -> Any:
    return storage._bucket.client


@pytest.fixture
def asked_boto(knowing: S3Storage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys that boto3 was asked to complete since the first one."""
    seen: list[str] = []
    api = find_client(knowing).api
    monkeypatch.setattr(api, "complete_multipart_upload", lambda **told: seen.append(told["Key"]), raising=False)
    return seen


def test_both_ways_send_the_same(storage: S3Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    session = find_client(storage).api._endpoint.http_session
    send = session.send

    def note(request: Any) -> Any:
        sent.append(request)
        return send(request)

    monkeypatch.setattr(session, "send", note)
    for number in range(2):
        ticket = make_ticket(storage, f"p/{number}")
        sent.clear()
        assert storage.redeem(ticket, f"p/{number}")
        [request] = sent
        if number == 0:
            first, first_ticket = request, ticket.split(" ")
    second_ticket = ticket.split(" ")
    names = [{name.lower() for name in one.headers} for one in (first, request)]
    assert names[0] - OF_BOTO == names[1]
    assert first.method == request.method == "POST"
    assert first.url.replace("/0?", "/1?").replace(first_ticket[0], second_ticket[0]) == request.url
    assert first.body.replace(first_ticket[1].encode(), second_ticket[1].encode()) == request.body
    assert request.headers["If-None-Match"] == "*"
    assert request.headers["User-Agent"] == first.headers["User-Agent"].decode()


@pytest.mark.parametrize(("target", "parts"), [(TARGET, 1), (TARGET, 3), (ODD, 1)])
def test_an_upload_is_completed_without_boto(
    knowing: S3Storage, proxy: S3Proxy, asked_boto: list[str], target: str, parts: int
) -> None:
    ticket = make_ticket(knowing, target, parts)
    before = proxy.count()["CompleteMultipartUpload"]
    assert knowing.redeem(ticket, target)
    assert (knowing.read(target) or b"").startswith(b"rows")
    assert proxy.count()["CompleteMultipartUpload"] == before + 1
    assert asked_boto == []


def test_the_first_file_of_a_bucket_may_have_any_name(storage: S3Storage) -> None:
    for target in (ODD, TARGET):
        assert storage.redeem(make_ticket(storage, target), target)
        assert storage.read(target) == b"rows"


def test_a_name_that_is_taken_stays_as_it_is(knowing: S3Storage, asked_boto: list[str]) -> None:
    first, second = make_ticket(knowing), make_ticket(knowing)
    assert knowing.redeem(first, TARGET)
    assert not knowing.redeem(second, TARGET)
    knowing.delete(TARGET)
    assert not knowing.redeem(second, TARGET)
    assert not knowing.exists(TARGET)
    assert asked_boto == []


@pytest.mark.parametrize("verdict", ["lose", "drop", 500, 503])
def test_a_name_is_given_once_although_answers_are_lost(
    knowing: S3Storage, proxy: S3Proxy, asked_boto: list[str], verdict: Any
) -> None:
    ticket = make_ticket(knowing)
    with proxy.failing(verdict, "CompleteMultipartUpload", times=2) as met:
        named = knowing.redeem(ticket, TARGET)
    assert met
    assert named or verdict == "lose"
    assert knowing.read(TARGET) == b"rows"
    knowing.delete(TARGET)
    assert not knowing.redeem(ticket, TARGET)
    assert asked_boto == []


@pytest.mark.parametrize(
    "answer", [b"", b"  \n", b"<?xml version='1.0'?>\n\n <Error><Code>InternalError</Code></Error>", b"<Error/>"]
)
def test_an_answer_that_begins_well_and_ends_ill_is_asked_for_again(
    knowing: S3Storage, asked_boto: list[str], monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    ticket, session = make_ticket(knowing), find_client(knowing).api._endpoint.http_session
    send, answers = session.send, [SimpleNamespace(status_code=200, content=answer)]
    monkeypatch.setattr(session, "send", lambda request: answers.pop() if answers else send(request))
    assert knowing.redeem(ticket, TARGET)
    assert knowing.read(TARGET) == b"rows"
    assert asked_boto == []


def test_the_right_that_lacks_is_named(knowing: S3Storage, proxy: S3Proxy, asked_boto: list[str]) -> None:
    ticket = make_ticket(knowing)
    with proxy.failing(403, "CompleteMultipartUpload"), pytest.raises(StorageError, match="grant s3:PutObject"):
        knowing.redeem(ticket, TARGET)
    assert knowing.redeem(ticket, TARGET)
    assert asked_boto == []
