"""Tables on a real HDFS: what the storage gives, and what a writer is told."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hdfs_proxy import HdfsProxy
from http_proxy import Late
from hudi_locks_conformance.faults import FaultProxy
from hudi_locks_conformance.servers import KINDS, LocalServer, Server, start_server
from hudi_locks_conformance.servers.mini_dfs import find_rpc_port
from hudi_locks_conformance.storages.suite import StorageSuite
from waiting import until

from hudi_locks.errors import ConfigError, StorageError
from hudi_locks.storage import Storage, open_storage, refuse_unwritable

pytestmark = pytest.mark.servers


@pytest.fixture
def base(minidfs: Server) -> str:
    return f"webhdfs://127.0.0.1:{minidfs.port}/tables/{uuid.uuid4().hex}"


@pytest.fixture
def storage(base: str) -> Storage:
    return open_storage(base)


@pytest.fixture
def native(minidfs: Server) -> Storage:
    """By Hadoop's own protocol."""
    assert isinstance(minidfs, LocalServer)
    path = f"hdfs://127.0.0.1:{find_rpc_port(minidfs)}/tables/{uuid.uuid4().hex}"
    return open_storage(path, {"hudi_locks.hdfs.client": "native"})


class TestOnHdfsNatively(StorageSuite):
    @pytest.fixture
    def storage(self, native: Storage) -> Storage:
        return native


class TestOnHdfs(StorageSuite):
    @pytest.fixture
    def storage(self, base: str) -> Storage:
        return open_storage(base)


def test_it_promises_what_writers_rest_on(storage: Storage) -> None:
    refuse_unwritable(storage)
    assert storage.is_read_by_spark


def test_the_name_nodes_of_an_hdfs_path_are_told_by_an_option(minidfs: Server, base: str) -> None:
    path = f"hdfs://nameservice1/{base.partition('/tables/')[2]}"
    storage = open_storage(path, {"hudi_locks.filesystem.webhdfs_url": f"http://127.0.0.1:{minidfs.port}"})
    assert storage.create_if_absent("a/b", b"c")
    assert storage.read("a/b") == b"c"
    assert storage.address("a/b") == f"{path}/a/b"
    assert pickle.loads(pickle.dumps(storage)).read("a/b") == b"c"


def test_a_path_without_a_host_says_what_to_give() -> None:
    with pytest.raises(ConfigError, match=r"names no name node; give hudi_locks\.filesystem\.webhdfs_url"):
        open_storage("hdfs:///table")


def test_a_name_node_that_does_not_answer_is_one_error() -> None:
    with pytest.raises(StorageError, match="cannot read 'a': Connection refused"):
        open_storage("webhdfs://127.0.0.1:9/table").read("a")


@pytest.mark.parametrize("way", ["storage", "native"])
def test_parquet_is_written_and_read(request: pytest.FixtureRequest, way: str) -> None:
    storage: Storage = request.getfixturevalue(way)
    rows = pa.table({"id": list(range(200_000)), "text": [f"row {n}" for n in range(200_000)]})
    staged = storage.stage("p/f.parquet", instant="20260101000000000")
    with staged.open() as out:
        pq.write_table(rows, out)
    assert storage.redeem(staged.seal(), "p/f.parquet")
    with storage.open_input("p/f.parquet") as file:
        assert pq.read_table(file, columns=["text"]).equals(rows.select(["text"]))


def test_both_ways_are_one_table(storage: Storage, native: Storage, minidfs: Server) -> None:
    refuse_unwritable(native)
    folder = native.base.rpartition("/")[2]
    other = open_storage(f"webhdfs://127.0.0.1:{minidfs.port}/tables/{folder}")
    assert other.create_if_absent("a", b"theirs")
    assert not native.create_if_absent("a", b"ours")
    native.replace("a", b"ours")
    assert other.read("a") == b"ours"
    assert abs(native.now_ms() - other.now_ms()) < 2_000
    assert pickle.loads(pickle.dumps(native)).read("a") == b"ours"
    assert [(entry.name, entry.size, entry.modified_ms) for entry in native.list("")] == [
        (entry.name, entry.size, entry.modified_ms) for entry in other.list("")
    ]


def test_what_the_name_node_refuses_is_one_error_natively(native: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    native.create_if_absent("f", b"")
    with pytest.raises(StorageError, match=r"cannot create 'a:b': InvalidPathException: Invalid path name [^\n]*$"):
        native.create_if_absent("a:b", b"")
    native.hdfs._client.set_permission(f"/tables/{native.base.rpartition('/')[2]}", 0o500)  # type: ignore[attr-defined]
    monkeypatch.setenv("HADOOP_USER_NAME", "nobody")
    stranger = pickle.loads(pickle.dumps(native))
    with pytest.raises(StorageError, match=r"cannot create 'g': Permission denied: user=nobody[^\n]*$"):
        stranger.create_if_absent("g", b"")


@pytest.fixture
def link(minidfs: Server) -> Iterator[FaultProxy]:
    """Between Hadoop's own protocol and the name node."""
    assert isinstance(minidfs, LocalServer)
    with FaultProxy(find_rpc_port(minidfs)) as proxy:
        yield proxy


def test_a_move_whose_answer_was_lost_is_an_error_and_was_made(link: FaultProxy, native: Storage) -> None:
    folder = native.base.rpartition("/")[2]
    risky = open_storage(f"hdfs://127.0.0.1:{link.port}/tables/{folder}", {"hudi_locks.hdfs.client": "native"})
    link.drop_answer(to=b"rename2")
    with pytest.raises(StorageError, match="cannot create 'a': "):
        risky.create_if_absent("a", b"mine")
    assert native.read("a") == b"mine"
    assert not risky.create_if_absent("a", b"theirs")
    assert link.lost == 1
    assert native.list(".hoodie/.hudi_locks/tmp") == []


def test_a_task_that_was_cancelled_gives_nothing_a_name_natively(native: Storage) -> None:
    staged = native.stage("p/f.parquet", instant="20260101000000000")
    out = staged.open()
    out.write(b"x" * 100)
    native.cancel_staged(["20260101000000000"])
    with pytest.raises(OSError, match="File does not exist"):
        out.close()
    with pytest.raises(StorageError, match=r"cannot seal 'p/f\.parquet': it is cancelled"):
        staged.seal()
    assert not native.exists("p/f.parquet")


def test_a_file_gets_another_time(storage: Storage, native: Storage) -> None:
    for one in (storage, native):
        assert not one.set_modified("gone", 1_700_000_000_123)
        one.create_if_absent("old", b"kept")
        assert one.set_modified("old", 1_700_000_000_123)
        found = one.stat("old")
        assert found is not None
        assert found.modified_ms == 1_700_000_000_123


def test_a_colon_in_a_name_is_refused(storage: Storage) -> None:
    with pytest.raises(StorageError, match="cannot create 'a:b'"):
        storage.create_if_absent("a:b", b"")


def test_no_permission_is_one_error(storage: Storage, base: str) -> None:
    storage.create_if_absent("f", b"")
    root = base.partition("/tables/")[2]
    storage.hdfs._ask("PUT", f"/tables/{root}", op="SETPERMISSION", permission="500")  # type: ignore[attr-defined]
    storage.hdfs._user = "nobody"  # type: ignore[attr-defined]
    with pytest.raises(StorageError, match="cannot create 'g': Permission denied"):
        storage.create_if_absent("g", b"")


@pytest.fixture
def proxy(minidfs: Server) -> Iterator[HdfsProxy]:
    proxy = HdfsProxy(f"http://127.0.0.1:{minidfs.port}")
    yield proxy
    proxy.close()


@pytest.fixture
def lossy(proxy: HdfsProxy, base: str) -> Storage:
    """The same table, reached by the proxy, data nodes too."""
    path = f"hdfs://nameservice1/tables/{base.partition('/tables/')[2]}"
    return open_storage(path, {"hudi_locks.filesystem.webhdfs_url": proxy.url})


def stage(storage: Storage, target: str) -> str:
    staged = storage.stage(target, instant="20260101000000000")
    with staged.open() as out:
        out.write(b"rows")
    return staged.seal()


def test_a_file_goes_by_the_data_node_that_is_named(lossy: Storage, proxy: HdfsProxy) -> None:
    assert lossy.redeem(stage(lossy, "p/f.parquet"), "p/f.parquet")
    assert lossy.read("p/f.parquet") == b"rows"
    assert {"CREATE at a data node", "OPEN at a data node", "RENAME"} <= proxy.count().keys()


@pytest.mark.parametrize(("verdict", "is_named"), [("lose", True), ("drop", False)])
def test_a_name_without_an_answer_is_asked_for_again(
    lossy: Storage, proxy: HdfsProxy, verdict: str, is_named: bool
) -> None:
    lossy.make_folder("p")
    ticket = stage(lossy, "p/f.parquet")
    with proxy.failing(verdict, "RENAME") as met, pytest.raises(StorageError, match=r"cannot name .*Remote end closed"):
        lossy.redeem(ticket, "p/f.parquet")
    assert len(met) == 1
    assert lossy.exists("p/f.parquet") == is_named
    assert lossy.redeem(ticket, "p/f.parquet") != is_named
    assert lossy.read("p/f.parquet") == b"rows"


def test_a_name_that_comes_after_the_cancellation_is_never_given(
    lossy: Storage, storage: Storage, proxy: HdfsProxy
) -> None:
    ticket = stage(lossy, "p/f.parquet")
    storage.make_folder("p")
    with proxy.failing(Late(0.5), "RENAME"), pytest.raises(StorageError, match="cannot name"):
        lossy.redeem(ticket, "p/f.parquet")
    storage.cancel(ticket, "p/f.parquet")
    assert until(lambda: proxy.late == 0)
    assert not storage.exists("p/f.parquet")


def test_a_killed_hdfs_has_its_files_when_it_starts_again(tmp_path: Path, minidfs: Server) -> None:
    del minidfs  # which is skipped where it cannot be had
    with start_server(KINDS["minidfs"], tmp_path) as server:
        storage = open_storage(f"webhdfs://127.0.0.1:{server.port}/t")
        ticket = stage(storage, "p/f.parquet")
        assert storage.create_if_absent("a", b"1")
        server.restart()
        assert storage.redeem(ticket, "p/f.parquet")
        assert (storage.read("a"), storage.read("p/f.parquet")) == (b"1", b"rows")
        assert not storage.create_if_absent("a", b"2")
