"""Clients of S3: whose credentials they use, where they send, what failures mean, and what time it is there."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError, ReadTimeoutError
from botocore.utils import parse_timestamp
from hudi_locks_providers._s3 import client as s3_client
from hudi_locks_providers._s3.bucket import Bucket, ConditionUnmet, NothingThere
from hudi_locks_providers._s3.client import open_client
from hudi_locks_providers._s3.uploads import Ticket
from hudi_locks_providers._storage.location import parse_location

from hudi_locks import ManualClock
from hudi_locks.config import Options
from hudi_locks.errors import StorageError
from hudi_locks.storage import MOST_TICKET_BYTES

PLACE = parse_location("s3://bucket/t")
KEYS = {"hoodie.aws.access.key": "a", "hoodie.aws.secret.key": "s"}


class EagerClock(ManualClock):
    """Does not wait for somebody to move it."""

    def sleep(self, duration_s: float) -> None:
        self.advance(duration_s)


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_client, "_OPEN", {})


def open_api(**options: str) -> Any:
    return open_client(Options({**KEYS, **{key.replace("__", "."): told for key, told in options.items()}}), PLACE).api


def find_credentials(api: Any) -> Any:
    return api._request_signer._credentials.get_frozen_credentials()


def test_a_client_is_opened_once_for_the_same_settings() -> None:
    assert open_api() is open_api()
    assert open_api() is not open_api(hudi_locks__storage__region="eu-north-1")


def test_static_keys_go_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "other")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "other")
    found = find_credentials(open_api(hoodie__aws__session__token="t"))
    assert (found.access_key, found.secret_key, found.token) == ("a", "s", "t")
    assert find_credentials(open_client(Options({}), PLACE).api).access_key == "other"


def test_keys_that_come_into_the_environment_later_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    before = open_client(Options({}), PLACE)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "later")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "later")
    assert open_client(Options({}), PLACE) is not before
    assert find_credentials(open_client(Options({}), PLACE).api).access_key == "later"


def test_credentials_of_a_role_are_fetched_again_before_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def assume() -> dict[str, Any]:
        asked.append(1)
        ends = datetime.now(timezone.utc) + timedelta(minutes=5 if len(asked) == 1 else 60)
        key = f"r{len(asked)}"
        return {"access_key_id": key, "secret_access_key": "s", "token": "t", "expires_at": ends}

    monkeypatch.setattr(s3_client, "s3_role", lambda options: assume)
    api = open_api(hoodie__aws__role__arn="arn:r")
    assert asked == []
    assert find_credentials(api).access_key == "r1"
    assert find_credentials(api).access_key == "r2"
    assert find_credentials(api).access_key == "r2"


@pytest.mark.parametrize(
    ("options", "style"),
    [
        ({}, "auto"),
        ({"hudi_locks__storage__endpoint_url": "https://minio:9000"}, "path"),
        ({"hudi_locks__storage__endpoint_url": "https://oss", "hudi_locks__storage__path_style": "false"}, "virtual"),
        ({"hudi_locks__storage__path_style": "true"}, "path"),
    ],
)
def test_where_the_name_of_the_bucket_stands(options: dict[str, str], style: str) -> None:
    assert open_api(**options).meta.config.s3["addressing_style"] == style


class Answers:
    """Gives what is told, in order: errors are raised."""

    def __init__(self, *told: Any) -> None:
        self.left = list(told)
        self.count = 0

    def __call__(self) -> Any:
        self.count += 1
        told = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(told, Exception):
            raise told
        return told


def fail(status: int, code: str = "") -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject")


LOST = ReadTimeoutError(endpoint_url="x")


@pytest.fixture
def bucket() -> Bucket:
    return Bucket(Options(KEYS), PLACE, clock=EagerClock())


@pytest.mark.parametrize(
    "error",
    [
        fail(503, "SlowDown"),
        fail(409, "ConditionalRequestConflict"),
        fail(500),
        LOST,
        ConnectTimeoutError(endpoint_url="x"),
    ],
)
def test_what_another_attempt_may_heal_is_sent_again(bucket: Bucket, error: Exception) -> None:
    send = Answers(error, error, "done")
    assert bucket.repeat("a", "write", send) == "done"
    assert send.count == 3
    silent = Answers(error)
    with pytest.raises(StorageError, match="no answer to the request to write it"):
        bucket.repeat("a", "write", silent)
    assert silent.count == 5


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (fail(403, "AccessDenied"), "grant s3:PutObject"),
        (fail(404, "NoSuchBucket"), "there is no such bucket"),
        (fail(400, "ExpiredToken"), "the credentials have expired"),
        (fail(403, "RequestTimeTooSkewed"), "this machine's clock is far"),
        (fail(301, "PermanentRedirect"), "in another region"),
        (fail(501, "NotImplemented"), "the service cannot write it"),
        (fail(400, "InvalidRequest"), "the service cannot write it"),
        (NoCredentialsError(), "no credentials could be had"),
    ],
)
def test_what_no_attempt_heals_is_told_at_once(bucket: Bucket, error: Exception, said: str) -> None:
    send = Answers(error)
    with pytest.raises(StorageError, match=said) as caught:
        bucket.repeat("p/a", "write", send)
    assert send.count == 1
    assert caught.value.facts["path"] == "p/a"
    assert str(caught.value).startswith("s3://bucket/t/p/a: ")


def test_answers_are_no_errors(bucket: Bucket) -> None:
    with pytest.raises(NothingThere):
        bucket.repeat("a", "read", Answers(fail(404, "NoSuchKey")))
    for told, is_doubtful in (((fail(412),), False), ((fail(503), fail(412)), False), ((LOST, fail(412)), True)):
        with pytest.raises(ConditionUnmet) as caught:
            bucket.repeat("a", "write", Answers(*told))
        assert caught.value.is_doubtful is is_doubtful


def test_a_ticket_tells_its_parts_while_they_are_few() -> None:
    for count in (1, 10, 500):
        ticket = Ticket.of("upload-1", [f"{number:032x}" for number in range(count)])
        text = ticket.encode()
        assert len(text.encode()) <= MOST_TICKET_BYTES
        found = Ticket.decode(text, path="a")
        assert (found.upload, found.count, found.digest) == ("upload-1", count, ticket.digest)
        assert found.parts == (ticket.parts if count < 500 else ())


@pytest.mark.parametrize("told", ["2026-11-25T19:15:26.932Z", "2026-11-25T19:15:26Z", "2026-11-25T19:15:26.9Z"])
def test_times_of_a_listing_are_read_however_many_digits_they_have(told: str) -> None:
    api, seen = open_api(), list[str]()

    def answer(request: Any, **_: object) -> AWSResponse:
        seen.append(request.url)
        found = f"<Contents><Key>a</Key><Size>1</Size><LastModified>{told}</LastModified></Contents>"
        body = f"<ListBucketResult>{found}</ListBucketResult>".encode()
        return AWSResponse(request.url, 200, {}, SimpleNamespace(stream=lambda: iter([body])))

    api.meta.events.register("before-send.s3", answer)
    [found] = api.list_objects_v2(Bucket="bucket")["Contents"]
    assert len(seen) == 1
    assert found["LastModified"] == parse_timestamp(told)
    assert found["LastModified"].utcoffset() == timedelta(0)


def test_a_time_in_a_header_is_read_as_ever() -> None:
    assert s3_client._read_time("Wed, 25 Nov 2026 19:04:44 GMT") == datetime(
        2026, 11, 25, 19, 4, 44, tzinfo=timezone.utc
    )
    assert s3_client._read_time(1) == datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc)
