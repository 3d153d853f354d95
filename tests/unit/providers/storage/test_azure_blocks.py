"""Requests for blocks of Azure blobs: how they are signed, and what their answers mean."""

from __future__ import annotations

import io
from email.message import Message
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request

import pytest
from hudi_locks_providers._storage import blocks as blocks_module
from hudi_locks_providers._storage.blocks import Blocks
from hudi_locks_providers._storage.location import parse_location
from hudi_locks_providers._storage.objects import Objects, PreconditionFailed

from hudi_locks import ManualClock
from hudi_locks.config import Options
from hudi_locks.errors import BackendRefused, BackendUnavailable

BASE = "abfss://box@mine.dfs.core.windows.net/t"
CONNECTION = "hoodie.write.lock.azure.connection.string"
SECRET = "c2VjcmV0LWtleQ=="


class Service:
    """Answers each request with the next of what was told, 201 when there is none left."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.told: list[Any] = []

    def __call__(self, request: Request, timeout: float, context: object = None) -> Any:
        assert timeout > 0
        assert context is None
        self.asked.append(request)
        found = self.told.pop(0) if self.told else (201, {}, b"")
        if isinstance(found, Exception):
            raise found
        status, given, body = found
        headers = Message()
        for name, value in given.items():
            headers[name] = value
        if status >= 300:
            raise HTTPError(request.full_url, status, "refused", headers, io.BytesIO(body))
        return Answer(headers, body)


class Answer(io.BytesIO):
    def __init__(self, headers: Message, body: bytes) -> None:
        super().__init__(body)
        self.headers = headers


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    found = Service()
    monkeypatch.setattr(blocks_module, "urlopen", found)
    for name in (*blocks_module._KEY_VARIABLES, *blocks_module._SAS_VARIABLES, "AZURE_STORAGE_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    return found


def open_blocks(**options: str) -> Blocks:
    given = Options({key.replace("__", "."): value for key, value in options.items()})
    return Blocks(Objects(given, parse_location(BASE)), given, clock=ManualClock())


def keyed() -> Blocks:
    return open_blocks(**{CONNECTION.replace(".", "__"): f"AccountName=mine;AccountKey={SECRET}"})


def read_query(request: Request) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(request.full_url).query).items()}


def test_a_block_is_sent_signed_for_its_blob_alone(service: Service) -> None:
    keyed().put("t/p=ü 1/f", "b1", b"data")
    [request] = service.asked
    assert request.full_url.startswith("https://mine.blob.core.windows.net/box/t/p%3D%C3%BC%201/f?comp=block&")
    query = read_query(request)
    assert (query["blockid"], query["sp"], query["sr"]) == ("YjE=", "cw", "b")
    assert query["sig"]
    assert SECRET not in request.full_url
    assert (request.method, request.data) == ("PUT", b"data")


def test_blocks_are_named_if_the_blob_is_not_there(service: Service) -> None:
    keyed().name("t/f", ["a", "b"])
    [request] = service.asked
    assert request.get_header("If-none-match") == "*"
    assert request.data == (
        b'<?xml version="1.0" encoding="utf-8"?><BlockList><Uncommitted>YQ==</Uncommitted>'
        b"<Uncommitted>Yg==</Uncommitted></BlockList>"
    )


def test_signatures_that_were_given_are_used_as_they_are(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    open_blocks(hoodie__write__lock__azure__sas__token="?sv=1&sig=abc").put("t/f", "b", b"x")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "sv=2&sig=env")
    open_blocks().put("t/f", "b", b"x")
    open_blocks(hudi_locks__storage__skip_signature="true").put("t/f", "b", b"x")
    assert [read_query(request).get("sig") for request in service.asked] == ["abc", "env", None]


def test_a_key_of_the_environment_signs(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", SECRET)
    open_blocks().put("t/f", "b", b"x")
    keyed().put("t/f", "b", b"x")
    assert read_query(service.asked[0])["sig"] == read_query(service.asked[1])["sig"]


def test_who_has_neither_key_nor_signature_is_signed_for_by_obstore(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    class Obstore:
        @staticmethod
        def sign(store: object, method: str, key: str, lasts: object) -> str:
            del store, lasts
            asked.append((method, key))
            return "https://mine.blob.core.windows.net/box/t/f?sv=3&sig=token"

    monkeypatch.setattr(blocks_module, "import_obstore", lambda: Obstore)
    given = dict.fromkeys(("tenant__id", "id", "secret"), "x")
    found = open_blocks(**{f"hoodie__write__lock__azure__client__{name}": value for name, value in given.items()})
    found.put("t/f", "b", b"x")
    service.told = [(200, {"x-ms-meta-hudilocksvoid": "other"}, b"")]
    found.remove_void("t/f", who="me")
    assert asked == [("PUT", "t/f"), ("GET", "t/f")]
    assert [read_query(request)["sig"] for request in service.asked] == ["token", "token"]


@pytest.mark.parametrize(
    ("status", "code", "meant"),
    [
        (409, "BlobAlreadyExists", PreconditionFailed),
        (412, "ConditionNotMet", PreconditionFailed),
        (400, "InvalidBlockList", FileNotFoundError),
        (404, "BlobNotFound", FileNotFoundError),
        (404, "ContainerNotFound", BackendRefused),
        (403, "AuthorizationFailure", BackendRefused),
        (400, "InvalidHeaderValue", BackendRefused),
        (409, "LeaseIdMissing", BackendUnavailable),
        (503, "ServerBusy", BackendUnavailable),
        (500, "InternalError", BackendUnavailable),
    ],
)
def test_what_answers_mean(service: Service, status: int, code: str, meant: type[Exception]) -> None:
    service.told = [(status, {"x-ms-error-code": code}, b"sig=very-secret")]
    with pytest.raises(meant) as caught:
        keyed().name("t/f", ["a"])
    assert type(caught.value) is meant
    assert "sig" not in str(caught.value)


def test_no_answer_and_no_right_say_so(service: Service) -> None:
    service.told = [TimeoutError("sig=very-secret"), (403, {"x-ms-error-code": "AuthorizationFailure"}, b"")]
    with pytest.raises(BackendUnavailable, match="no answer to the request to write it") as caught:
        keyed().put("t/f", "b", b"x")
    assert "very-secret" not in f"{caught.value!r} {caught.value.__context__!r}"
    with pytest.raises(BackendRefused, match=r"grant Microsoft\.Storage/…/blobs/write"):
        keyed().put("t/f", "b", b"x")


def test_blocks_that_wait_are_listed(service: Service) -> None:
    listed = b"<BlockList><UncommittedBlocks><Block><Name>YQ==</Name></Block></UncommittedBlocks></BlockList>"
    service.told = [(200, {}, listed), (404, {"x-ms-error-code": "BlobNotFound"}, b"")]
    assert keyed().list_unnamed("t/f") == ["a"]
    assert keyed().list_unnamed("t/f") == ()


def test_what_stands_for_dropped_blocks_is_removed_by_its_tag_alone(service: Service) -> None:
    found = keyed()
    found.drop("t/f", "b", who="me")
    assert [read_query(request)["comp"] for request in service.asked] == ["block", "blocklist"]
    assert service.asked[1].get_header("X-ms-meta-hudilocksvoid") == "me"
    assert b"<Uncommitted>Yg==</Uncommitted>" in bytes(service.asked[1].data or b"")  # type: ignore[arg-type]
    service.told = [(200, {"x-ms-meta-hudilocksvoid": "me", "ETag": '"1"'}, b"")]
    found.remove_void("t/f", who="me")
    assert [request.method for request in service.asked] == ["PUT", "PUT", "HEAD", "DELETE"]
    assert service.asked[-1].get_header("If-match") == '"1"'
    service.told = [(404, {}, b"")]
    found.remove_void("t/f", who="me")
    assert service.asked[-1].method == "HEAD"
