"""The file lock over WebHDFS: what goes out, and what answers mean. tests/servers has the real one."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hudi_locks_providers._files import webhdfs
from hudi_locks_providers._files.webhdfs import WebHdfs
from hudi_locks_providers.filesystem import FileSystemLockProvider

from hudi_locks import BackendRefused, BackendUnavailable, ManualClock, Owner

ACTIVE, STANDBY, DOWN = "active:9870", "standby:9870", "down:9870"


class FakeHdfs:
    """Files by path, each with a number; answers as a name node does."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[int, bytes, int]] = {}
        self.folders: set[str] = set()
        self.serial = 0
        self.sent: list[tuple[str, str, dict[str, str]]] = []
        self.refuse: Callable[[str, dict[str, str]], Any] = lambda path, query: None

    def send(self, method: str, url: str, data: bytes | None) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(url)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        path = unquote(parts.path).removeprefix("/webhdfs/v1")
        self.sent.append((parts.netloc, path, query))
        if parts.netloc == DOWN:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody there")
        if parts.netloc == STANDBY:
            return self.fault("StandbyException", "not me")
        if (verdict := self.refuse(path, query)) is not None:
            if isinstance(verdict, BaseException):
                raise verdict
            return verdict  # type: ignore[no-any-return]
        if query["op"] == "CREATE" and data is None:
            return 307, {"location": url}, b""
        return getattr(self, query["op"].lower())(path, query, data or b"")  # type: ignore[no-any-return]

    @staticmethod
    def fault(name: str, message: str = "said", status: int = 403) -> tuple[int, dict[str, str], bytes]:
        return status, {}, json.dumps({"RemoteException": {"exception": name, "message": message}}).encode()

    @staticmethod
    def ok(answer: Any = None) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, b"" if answer is None else json.dumps(answer).encode()

    def create(self, path: str, query: dict[str, str], data: bytes) -> Any:
        if path in self.files:
            return self.fault("FileAlreadyExistsException")
        self.serial += 1
        self.files[path] = (self.serial, data, 1)
        return 201, {}, b""

    def getfilestatus(self, path: str, query: dict[str, str], data: bytes) -> Any:
        if path not in self.files:
            return self.fault("FileNotFoundException", status=404)
        number, _, modified_ms = self.files[path]
        return self.ok({"FileStatus": {"fileId": number, "modificationTime": modified_ms, "type": "FILE"}})

    def open(self, path: str, query: dict[str, str], data: bytes) -> Any:
        return 200, {}, self.files[path][1]

    def rename(self, path: str, query: dict[str, str], data: bytes) -> Any:
        moved = [name for name in self.files if name == path or name.startswith(path + "/")]
        to = query["destination"]
        if not moved:
            return self.fault("FileNotFoundException", status=404)
        if any(name == to or name.startswith(to + "/") for name in self.files):
            return self.fault("FileAlreadyExistsException")
        for name in moved:
            self.files[to + name.removeprefix(path)] = self.files.pop(name)
        return self.ok()

    def delete(self, path: str, query: dict[str, str], data: bytes) -> Any:
        return self.ok({"boolean": self.files.pop(path, None) is not None})

    def settimes(self, path: str, query: dict[str, str], data: bytes) -> Any:
        asked = path.removeprefix("/.reserved/.inodes/")
        known = {str(number): name for name, (number, _, _) in self.files.items()}
        path = path if asked == path else known.get(asked, "")
        if path not in self.files:
            return self.fault("FileNotFoundException", status=404)
        number, content, _ = self.files[path]
        self.files[path] = (number, content, int(query["modificationtime"]))
        return self.ok()

    def mkdirs(self, path: str, query: dict[str, str], data: bytes) -> Any:
        self.folders.add(path)
        return self.ok({"boolean": True})

    def liststatus(self, path: str, query: dict[str, str], data: bytes) -> Any:
        names = [name.removeprefix(path + "/") for name in self.files if name.startswith(path + "/")]
        if not names and path not in self.folders:
            return self.fault("FileNotFoundException", status=404)
        known = {"type": "FILE", "length": 0, "modificationTime": 1, "fileId": 1}
        return self.ok({"FileStatuses": {"FileStatus": [{"pathSuffix": name, **known} for name in names]}})


@pytest.fixture
def hdfs(monkeypatch: Any) -> FakeHdfs:
    fake = FakeHdfs()
    monkeypatch.setattr(webhdfs, "_send", fake.send)
    monkeypatch.setenv("HADOOP_USER_NAME", "etl")
    return fake


def make(clock: ManualClock, expire: int = 0, path: str = "hdfs://cluster/locks") -> FileSystemLockProvider:
    options = {
        "hoodie.write.lock.filesystem.path": path,
        "hoodie.write.lock.filesystem.expire": expire,
        "hudi_locks.filesystem.webhdfs_url": f"http://{ACTIVE}",
    }
    return FileSystemLockProvider(options, clock=clock, on_lost=lambda *_: None)


def test_creates_go_out_without_overwrite_and_moves_never_replace(
    hdfs: FakeHdfs, clock: ManualClock, table: Any, ada: Owner, bob: Owner
) -> None:
    lease = make(clock).try_acquire(table, ada, 0)
    assert lease is not None
    assert make(clock).try_acquire(table, bob, 0) is None
    creates = [query for _, _, query in hdfs.sent if query["op"] == "CREATE"]
    assert {query["overwrite"] for query in creates} == {"false"}
    assert {query["renameoptions"] for _, _, query in hdfs.sent if query["op"] == "RENAME"} == {"NONE"}
    assert {query["user.name"] for _, _, query in hdfs.sent} == {"etl"}
    assert [path for path in hdfs.files if "tokens" not in path] == ["/locks/lock"]


@pytest.mark.parametrize("path", ["webhdfs://active:9870/locks", "dfs://any/locks"])
def test_other_ways_to_name_it(hdfs: FakeHdfs, clock: ManualClock, table: Any, ada: Owner, path: str) -> None:
    assert make(clock, path=path).try_acquire(table, ada, 0)
    assert "/locks/lock" in hdfs.files


def test_a_move_whose_answer_is_lost_is_found_out(
    hdfs: FakeHdfs, clock: ManualClock, table: Any, ada: Owner, bob: Owner
) -> None:
    def lose(path: str, query: dict[str, str]) -> Any:
        if query["op"] != "RENAME" or query["destination"] != "/locks/lock":
            return None
        hdfs.rename(path, query, b"")
        return OSError(errno.EIO, "lost")

    hdfs.refuse = lose
    provider = make(clock)
    lease = provider.try_acquire(table, ada, 0)
    assert lease is not None
    provider.renew(lease)
    hdfs.refuse = lambda path, query: None
    hdfs.sent.clear()
    assert make(clock).try_acquire(table, bob, 0) is None
    assert {query["op"] for _, _, query in hdfs.sent} <= {"GETFILESTATUS", "OPEN"}


@pytest.mark.parametrize("operation", ["RENAME", "SETTIMES"])
def test_a_failed_attempt_leaves_nothing(
    hdfs: FakeHdfs, clock: ManualClock, table: Any, ada: Owner, operation: str
) -> None:
    hdfs.refuse = lambda path, query: OSError(errno.EIO, "down") if query["op"] == operation else None
    with pytest.raises(BackendUnavailable, match="down"):
        make(clock, expire=1).try_acquire(table, ada, 0)
    assert hdfs.files == {}


def test_a_late_contender_does_not_move_the_file_that_came_after(
    hdfs: FakeHdfs, clock: ManualClock, table: Any, ada: Owner, bob: Owner
) -> None:
    """Both saw one expired file; one took it over while the other was paused."""
    make(clock, expire=1).try_acquire(table, Owner("dead"), 0)
    clock.advance(61)
    late = make(clock, expire=1)
    file = late._file(table)
    found = file.find()
    assert found is not None
    quick = make(clock, expire=1)
    lease = quick.try_acquire(table, ada, 0)
    assert lease is not None
    held = hdfs.files["/locks/lock"]
    assert not file._bury(found.identity[0], found.modified_ms)  # type: ignore[attr-defined]
    assert hdfs.files["/locks/lock"] == held
    quick.renew(lease)


def test_old_graves_are_removed(hdfs: FakeHdfs, clock: ManualClock, table: Any, ada: Owner) -> None:
    hdfs.files = {f"/locks/.hudi_locks/expired/{number}": (number, b"", 1) for number in range(1, 151)}
    hdfs.serial = 150
    make(clock, expire=1).try_acquire(table, ada, 0)
    clock.advance(61)
    assert make(clock, expire=1).try_acquire(table, ada, 0)
    graves = [path for path in hdfs.files if "/expired/" in path]
    assert len(graves) == 101
    assert "/locks/.hudi_locks/expired/50" not in hdfs.files


@pytest.mark.parametrize("first", [STANDBY, DOWN])
def test_the_active_name_node_is_found_and_remembered(hdfs: FakeHdfs, first: str) -> None:
    client = WebHdfs([f"http://{first}", f"http://{ACTIVE}"])
    client.create("/a", b"x")
    assert client.find_status("/a")
    assert [host for host, _, _ in hdfs.sent].count(first) == 1


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (FakeHdfs.fault("AccessControlException", "Permission denied\nmore"), BackendRefused, "Permission denied"),
        ((401, {}, b"<html>"), BackendRefused, "Kerberos"),
        (FakeHdfs.fault("SafeModeException", "Name node is in safe mode"), BackendUnavailable, "safe mode"),
        ((500, {}, b"oops"), BackendUnavailable, "status 500"),
    ],
)
def test_answers_mean(
    hdfs: FakeHdfs, clock: ManualClock, table: Any, ada: Owner, answer: Any, kind: type[Exception], said: str
) -> None:
    hdfs.refuse = lambda path, query: answer
    with pytest.raises(kind, match=said):
        make(clock).try_acquire(table, ada, 0)


def test_tokens_go_on_after_everything_was_deleted(hdfs: FakeHdfs, clock: ManualClock, table: Any, ada: Owner) -> None:
    tokens: list[int] = []
    for _ in range(3):
        provider = make(clock)
        for _ in range(2):
            lease = provider.try_acquire(table, ada, 0)
            assert lease is not None
            tokens.append(lease.token or 0)
            provider.release(lease)
        hdfs.files.clear()
        clock.advance(1)
    assert tokens == sorted(set(tokens))
