"""The marker endpoints, as a JVM client and as our tasks call them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from hudi_locks import ManualClock
from hudi_locks.early_conflict import EarlyConflict
from hudi_locks.format.claim import FileGroupId
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline_server.app import make_app
from hudi_locks.timeline_server.client import BASE
from hudi_locks.timeline_server.service import MarkerService

INSTANT, EARLIER = "20260101000000002", "20260101000000001"
DIR = f"/data/t/.hoodie/.temp/{INSTANT}"
NAME = f"p/g-0_0-0-0_{INSTANT}.parquet.marker.MERGE"
LOG = f"p/.g-0_{INSTANT}.log.1_0-0-0.marker.APPEND"
Work = Callable[[httpx.AsyncClient], Awaitable[None]]


class Told:
    """A checker that knows of a conflict, or will."""

    conflict: EarlyConflict | None = None
    has_begun = False

    def announce(self, names: Any) -> None:
        """It needs no filters."""

    def begin(self, groups: Any) -> None:
        self.has_begun = True

    def stop(self) -> None:
        """Nothing goes on."""


@pytest.fixture
def checker() -> Told:
    return Told()


@pytest.fixture
def serve(checker: Told) -> Callable[..., None]:
    def run(work: Work, token: str = "", headers: dict[str, str] | None = None) -> None:
        async def whole() -> None:
            make: Any = lambda *_: checker  # noqa: E731
            service = MarkerService(MemoryStorage(ManualClock()), files=20, interval_s=0.0, make_checker=make)
            transport = httpx.ASGITransport(make_app(service, base_path="/data/t/", token=token))
            async with httpx.AsyncClient(
                transport=transport, base_url=f"http://127.0.0.1{BASE}", headers=headers
            ) as client:
                await work(client)

        asyncio.run(whole())

    return run


async def post(client: httpx.AsyncClient, path: str, folder: str = DIR, **params: str) -> Any:
    answer = await client.post(path, params={"markerdirpath": folder, **params})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def get(client: httpx.AsyncClient, path: str) -> Any:
    return (await client.get(path, params={"markerdirpath": DIR})).json()


def test_what_hudis_client_asks(serve: Callable[..., None]) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        assert await get(client, "/dir/exists") is False
        assert await post(client, "/create", markername=NAME) is True
        assert await post(client, "/create", markername=NAME) is False
        assert await post(client, "/create", f"file:{DIR}", markername=LOG) is True
        assert await get(client, "/dir/exists") is True
        assert await get(client, "/all") == sorted([NAME, LOG])
        assert await get(client, "/create-and-merge") == [NAME]
        assert await get(client, "/append") == [LOG]
        assert await post(client, "/dir/delete") is True
        assert await post(client, "/dir/delete") is False
        assert await get(client, "/all") == []

    serve(work)


def test_a_conflict_is_told_from_a_marker_that_exists(serve: Callable[..., None], checker: Told) -> None:
    """A JVM client with early detection takes false for a conflict, also when it only asks again."""

    async def work(client: httpx.AsyncClient) -> None:
        assert await post(client, "/create", markername=NAME, basepath="/data/t") is True
        assert await post(client, "/create", markername=NAME, basepath="/data/t") is True
        checker.conflict = EarlyConflict(INSTANT, FileGroupId("p", "g-0"), EARLIER, "marker", "somebody")
        assert await post(client, "/create", markername=LOG, basepath="/data/t") is False

    serve(work)


def test_all_markers_of_a_task_at_once(serve: Callable[..., None], checker: Told) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        ask: dict[str, Any] = {"url": "/create-all", "params": {"markerdirpath": DIR}, "json": {"names": [NAME, LOG]}}
        assert (await client.post(**ask)).json() == {"created": [True, True]}
        assert (await client.post(**ask)).json() == {"created": [False, False]}
        checker.conflict = EarlyConflict(INSTANT, FileGroupId("p", "g-0"), EARLIER, "marker", "somebody")
        answer = await client.post(**ask)
        assert (answer.status_code, answer.json()["conflict"]["other"]) == (409, EARLIER)

    serve(work)


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/data/other/.hoodie/.temp/20260101000000001", NAME),
        ("/data/t/.hoodie/timeline", NAME),
        ("/data/t/.hoodie/.temp/../../x", NAME),
        ("", NAME),
        (DIR, "p/g-0.parquet"),
        (DIR, "../g-0_0-0-0_1.parquet.marker.MERGE"),
        (DIR, ""),
        (DIR, ".hoodie/hoodie.properties.marker.CREATE"),
        (DIR, f".hoodie/g-0_0-0-0_{INSTANT}.parquet.marker.CREATE"),
        (DIR, f"p/g-0_0-0-0_{EARLIER}.parquet.marker.MERGE"),
        (DIR, f"p\0/g-0_0-0-0_{INSTANT}.parquet.marker.MERGE"),
        (DIR, f"{'x' * 5_000}/g-0_0-0-0_{INSTANT}.parquet.marker.MERGE"),
        (DIR, f"p/../g-0_0-0-0_{INSTANT}.parquet.marker.MERGE"),
    ],
)
def test_what_is_no_marker_of_this_table_is_refused(serve: Callable[..., None], folder: str, name: str) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        answer = await client.post("/create", params={"markerdirpath": folder, "markername": name})
        assert answer.status_code == 400
        answer = await client.post("/create-all", params={"markerdirpath": folder}, json={"names": [NAME, name]})
        assert answer.status_code == 400
        assert await get(client, "/all") == []

    serve(work)


@pytest.mark.parametrize(("given", "status"), [("", 401), ("Bearer other", 401), ("Bearer secret", 200)])
def test_a_token_is_asked_for(serve: Callable[..., None], given: str, status: int) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        answer = await client.get("/all", params={"markerdirpath": DIR})
        assert answer.status_code == status
        assert "secret" not in answer.text

    serve(work, "secret", {"Authorization": given} if given else None)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:99"}, 403),
        ({"Host": ""}, 403),
        ({"Host": "[::1"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost:99"}, 200),
        ({"Host": "[::1]:99"}, 200),
        ({"Host": "10.1.2.3"}, 200),
    ],
)
@pytest.mark.parametrize("token", ["", "secret"])
def test_requests_for_web_pages_are_refused_with_and_without_a_token(
    serve: Callable[..., None], headers: dict[str, str], status: int, token: str
) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        answer = await client.post("/dir/delete", params={"markerdirpath": DIR}, headers=headers)
        assert answer.status_code == status

    serve(work, token, {"Authorization": f"Bearer {token}"})


async def pour(pieces: int, taken: list[int]) -> Any:
    for number in range(pieces):
        taken.append(number)
        yield b" " * 1_000_000


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"{", {}, 400),
        (b"[" * 100_000, {}, 400),
        (b"\xff\xfe{}", {}, 400),
        (b'"names"', {}, 400),
        (b'{"names": [1, null, {}]}', {}, 400),
        (b"{}", {"Content-Length": "99999999999"}, 413),
        (b"{}", {"Content-Length": "9" * 5_000}, 413),
    ],
)
def test_a_body_that_is_odd_is_refused_without_a_trace(
    serve: Callable[..., None], content: bytes, headers: dict[str, str], status: int
) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        answer = await client.post("/create-all", params={"markerdirpath": DIR}, content=content, headers=headers)
        assert answer.status_code == status

    serve(work)


def test_a_body_without_a_length_is_read_to_the_bound_and_no_further(serve: Callable[..., None]) -> None:
    taken: list[int] = []

    async def work(client: httpx.AsyncClient) -> None:
        answer = await client.post("/create-all", params={"markerdirpath": DIR}, content=pour(200, taken))
        assert answer.status_code == 413

    serve(work)
    assert 60 < len(taken) < 80
