"""Uploads that are completed as boto3 would, with whatever credentials there are; nothing is sent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import boto3
import botocore
import pytest
from botocore.config import Config
from hudi_locks_providers._s3.completions import Completions

DONE = b"<CompleteMultipartUploadResult/>"
OF_ONE_REQUEST = {"amz-sdk-invocation-id", "amz-sdk-request"}


class Wire:
    """A client whose requests end here.

    Attributes:
        sent: All of them.
        answer: What each gets.
    """

    def __init__(self, **settings: Any) -> None:
        config = Config(
            s3={"addressing_style": "virtual"}, retries={"total_max_attempts": 1}, **settings.pop("more", {})
        )
        self.api = boto3.Session().client("s3", region_name="eu-west-1", config=config, **settings)
        self.sent: list[Any] = []
        self.answer = (200, DONE)
        self.api._endpoint.http_session = SimpleNamespace(send=self.take)
        self.completions = Completions(self.api)

    def take(self, request: Any) -> Any:
        self.sent.append(request)
        return SimpleNamespace(status_code=self.answer[0], headers={}, content=self.answer[1])

    def complete(self, key: str = "p/f", bucket: str = "lake") -> Any:
        self.completions.complete(bucket, key, upload="u+/=", parts=("tag",))
        return self.sent[-1]


KEYS = {"aws_access_key_id": "AKIA", "aws_secret_access_key": "secret"}


@pytest.mark.parametrize(
    "settings",
    [
        KEYS,
        {**KEYS, "aws_session_token": "token"},
        {"more": {"signature_version": botocore.UNSIGNED}},
        {**KEYS, "endpoint_url": "https://s3.example.com:9000"},
    ],
    ids=["keys", "a session", "nobody", "another service"],
)
def test_both_send_the_same_headers_to_the_same_address(settings: dict[str, Any]) -> None:
    wire = Wire(**settings)
    first, second = wire.complete(), wire.complete()
    assert (first.method, first.url, first.body) == (second.method, second.url, second.body)
    assert second.url.endswith("/p/f?uploadId=u%2B%2F%3D")
    assert {name.lower() for name in first.headers} - OF_ONE_REQUEST == {name.lower() for name in second.headers}
    assert ("Authorization" in second.headers) == ("aws_access_key_id" in settings)
    assert second.headers.get("X-Amz-Security-Token") == settings.get("aws_session_token")


def test_each_bucket_has_an_address_of_its_own() -> None:
    wire = Wire(**KEYS)
    addresses = [wire.complete(bucket=bucket).url for bucket in ("lake", "sea", "lake", "sea")]
    assert addresses[:2] == addresses[2:]
    assert [address.partition(".")[0] for address in addresses[:2]] == ["https://lake", "https://sea"]


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        ((412, b"<Error><Code>PreconditionFailed</Code></Error>"), 412, "PreconditionFailed"),
        ((404, b"<Error><Code>\n NoSuchUpload </Code></Error>"), 404, "NoSuchUpload"),
        ((503, b"busy"), 503, ""),
        ((200, b"<?xml version='1.0'?><Error><Code>InternalError</Code></Error>"), 500, "InternalError"),
        ((200, b""), 500, ""),
    ],
)
def test_what_is_no_success_is_an_error_of_boto(answer: tuple[int, bytes], status: int, code: str) -> None:
    wire = Wire(**KEYS)
    wire.complete()
    wire.answer = answer
    with pytest.raises(wire.api.exceptions.ClientError) as caught:
        wire.complete()
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    assert caught.value.response["Error"]["Code"] == code


def test_a_first_one_that_fails_teaches_nothing() -> None:
    wire = Wire(**KEYS)
    wire.answer = (403, b"<Error><Code>AccessDenied</Code></Error>")
    with pytest.raises(wire.api.exceptions.ClientError):
        wire.complete()
    wire.answer = (200, DONE)
    assert "amz-sdk-request" in wire.complete().headers  # by boto3 again
    assert "amz-sdk-request" not in wire.complete().headers


def test_signatures_that_need_more_than_credentials_stay_with_boto() -> None:
    wire = Wire(**KEYS)
    wire.completions._note(SimpleNamespace(), "v4-s3express", None)
    assert wire.completions._seen.way is None
