"""HDFS by Hadoop's own protocol: when it is spoken, and what its answers mean. tests/servers has the real one."""

from __future__ import annotations

import errno
import os
import pickle
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hudi_locks_providers._files.native_hdfs import NativeHdfs

from hudi_locks import ConfigError
from hudi_locks.errors import ProviderLoadError, StorageError
from hudi_locks.storage import Storage, open_storage

CLIENT = "hudi_locks.hdfs.client"
RPC = "dfs.namenode.rpc-address"
SERVICE = {
    "dfs.nameservices": "lake",
    "dfs.ha.namenodes.lake": "nn1,nn2",
    f"{RPC}.lake.nn1": "one:8020",
    f"{RPC}.lake.nn2": "two:8020",
}
STACK = "\n\tat org.apache.hadoop.hdfs.server.namenode.FSDirRenameOp.renameTo(FSDirRenameOp.java:312)"


class FakeClient:
    """Files by path, and what the next call of a name raises after it was carried out, or before."""

    def __init__(self, address: str, settings: dict[str, str]) -> None:
        self.address = address
        self.settings = settings
        self.files: dict[str, bytes] = {}
        self.raises: dict[str, BaseException] = {}
        self.before: Callable[[str], None] = lambda _: None

    def _begin(self, name: str) -> None:
        self.before(name)
        if name in self.raises:
            raise self.raises.pop(name)

    def create(self, path: str, options: Any) -> Any:
        self._begin("create")
        self.files[path] = b""

        def write(piece: bytes) -> None:
            self.files[path] += piece

        return SimpleNamespace(write=write, close=lambda: None)

    def rename(self, path: str, to: str, *, overwrite: bool) -> None:
        self._begin("rename")
        if path not in self.files:
            raise FileNotFoundError(f"rename source {path} is not found.{STACK}")
        if to in self.files and not overwrite:
            raise FileExistsError(f"rename destination {to} already exists{STACK}")
        self.files[to] = self.files.pop(path)

    def delete(self, path: str, *, recursive: bool) -> bool:
        self._begin("delete")
        return self.files.pop(path, None) is not None

    def get_file_info(self, path: str) -> Any:
        self._begin("get_file_info")
        if path not in self.files:
            raise FileNotFoundError(path)
        return SimpleNamespace(path=path, length=len(self.files[path]), modification_time=5, isdir=False)

    def read(self, path: str) -> Any:
        self._begin("read")
        if path not in self.files:
            raise FileNotFoundError(f"File does not exist: {path}{STACK}")
        data = self.files[path]
        return type(
            "File", (), {"__len__": lambda _: len(data), "read_range": lambda _, at, size: data[at : at + size]}
        )()


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package hdfs-native without any HDFS, and nothing else of the surroundings."""
    module = ModuleType("hdfs_native")
    module.__spec__ = ModuleSpec("hdfs_native", None)
    module.Client, module.WriteOptions = FakeClient, SimpleNamespace  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "hdfs_native", module)
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Write Hadoop's configuration of this machine."""

    def write(settings: dict[str, str]) -> None:
        told = "".join(f"<property><name>{name}</name><value>{it}</value></property>" for name, it in settings.items())
        (tmp_path / "hdfs-site.xml").write_text(f"<configuration>{told}</configuration>")
        monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))

    return write


def link_of(path: str, **options: str) -> tuple[Any, Any]:
    storage: Any = open_storage(path, {name.replace("__", "."): value for name, value in options.items()})
    return storage.addresses, storage.settings


def test_it_is_spoken_where_no_address_of_webhdfs_is_known() -> None:
    assert link_of("hdfs://nn/t") == (("hdfs://nn:8020",), {})
    assert link_of("hdfs://nn:9/t") == (("hdfs://nn:9",), {})
    assert link_of("hdfs://nn/t", hudi_locks__filesystem__webhdfs_url="http://nn:1") == (("http://nn:1",), {})
    assert link_of("webhdfs://nn:1/t") == (("http://nn:1",), {})


def test_without_the_package_the_usual_port_of_webhdfs_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    assert link_of("hdfs://nn/t") == (("http://nn:9870",), {})


def test_an_option_says_which() -> None:
    told = {"hudi_locks__filesystem__webhdfs_url": "http://nn:1", "hudi_locks__hdfs__client": "native"}
    assert link_of("hdfs://nn/t", **told) == (("hdfs://nn:8020",), {})
    assert link_of("hdfs://nn/t", hudi_locks__hdfs__client="webhdfs") == (("http://nn:9870",), {})
    with pytest.raises(ConfigError, match=rf"webhdfs://nn:1/t names WebHDFS: give an hdfs:// path for {CLIENT}=native"):
        open_storage("webhdfs://nn:1/t", {"hudi_locks.hdfs.client": "native"})
    with pytest.raises(ConfigError, match=CLIENT):
        open_storage("hdfs://nn/t", {"hudi_locks.hdfs.client": "libhdfs"})


def test_kerberos_and_no_webhdfs_leave_nothing_else(
    configured: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    configured({"dfs.namenode.http-address": "nn:9870", "dfs.webhdfs.enabled": "false"})
    assert link_of("hdfs://nn/t") == (("hdfs://nn:8020",), {})
    kerberos = {"hadoop.security.authentication": "kerberos", "dfs.data.transfer.protection": "privacy"}
    configured({"dfs.namenode.http-address": "nn:9870", **kerberos})
    assert link_of("hdfs://nn/t") == (("hdfs://nn:8020",), kerberos)
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(ConfigError, match=r"asks for Kerberos, or turns WebHDFS off: pip install 'hudi-locks\[hdfs\]'"):
        open_storage("hdfs://nn/t")


def test_executors_are_told_of_a_name_service(configured: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    configured({**SERVICE, "dfs.client.failover.random.order.lake": "true", "dfs.client.socket-timeout": "5000"})
    storage = open_storage("hdfs://lake/t")
    monkeypatch.delenv("HADOOP_CONF_DIR")
    client = pickle.loads(pickle.dumps(storage)).hdfs._client
    assert client.address == "hdfs://lake"
    named = {name: value for name, value in SERVICE.items() if name != "dfs.nameservices"}
    more = {"dfs.client.failover.random.order.lake": "true", "dfs.client.socket-timeout": "5000"}
    assert {**client.settings, **named, **more} == client.settings


def test_a_name_service_of_one_name_node_is_its_address(configured: Callable[..., None]) -> None:
    configured({"dfs.nameservices": "lake", f"{RPC}.lake": "one:8020"})
    assert link_of("hdfs://lake/t") == (("hdfs://one:8020",), {})


def test_a_path_without_a_host_is_of_the_default_file_system(configured: Callable[..., None]) -> None:
    with pytest.raises(ConfigError, match=r"hdfs:///t names no name node; give .*, or set HADOOP_CONF_DIR"):
        open_storage("hdfs:///t")
    configured({"fs.defaultFS": "hdfs://nn:8020"})
    assert link_of("hdfs:///t") == (("hdfs://nn:8020",), {})


def test_an_executor_without_the_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage("hdfs://nn/t")
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(ProviderLoadError, match=r"pip install 'hudi-locks\[hdfs\]', on executors too"):
        storage.read("a")


@pytest.fixture
def storage() -> Storage:
    return open_storage("hdfs://nn/t")


@pytest.fixture
def client(storage: Any) -> FakeClient:
    return storage.hdfs._client  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (RuntimeError('RPCError("org.apache.hadoop.ipc.X", "safe \\"mode\\"\\n\\tat a.b.C")'), 'X: safe "mode"$'),
        (
            RuntimeError(
                'RPCError("org.apache.hadoop.security.AccessControlException", "Permission denied\\n\\tat a")'
            ),
            "Permission denied$",
        ),
        (
            RuntimeError('GSSAPIError(GssMajorCodes { raw: "0x7", calling_error: "none" }, 252, "No credentials (c)")'),
            r"Kerberos: No credentials \(c\); get a ticket with kinit, or name a keytab in KRB5_CLIENT_KTNAME$",
        ),
        (RuntimeError('SASLError("no ticket")'), r"SASLError\(\"no ticket\"\)$"),
        (OSError("Connection refused (os error 111)"), "Connection refused"),
        (ConnectionResetError(errno.ECONNRESET, "reset"), "reset"),
        (NotImplementedError("XOR"), "XOR$"),
        (RuntimeError(f"OperationFailed{STACK}"), "OperationFailed$"),
    ],
)
def test_what_the_name_node_says_is_told_without_its_stack(
    storage: Storage, client: FakeClient, raised: BaseException, said: str
) -> None:
    client.raises["read"] = raised
    with pytest.raises(StorageError, match=f"cannot read 'a': .*{said}"):
        storage.read("a")


def test_a_folder_is_no_file_to_delete(storage: Storage, client: FakeClient) -> None:
    client.raises["delete"] = RuntimeError('RPCError("org.apache.hadoop.fs.PathIsNotEmptyDirectoryException", "is")')
    assert storage.delete("a") is False


def lose_answer(client: FakeClient, *, then: Callable[[], None] = lambda: None) -> None:
    """The next move is made, and asked for again, since its answer was lost."""

    def make_it(name: str) -> None:
        if name == "rename":
            client.before = lambda _: None
            aside = next(path for path in client.files if "/tmp/" in path)
            client.files.setdefault("/t/a", client.files.pop(aside))
            then()

    client.before = make_it


def test_a_move_whose_answer_was_lost_is_known_by_what_is_there(storage: Storage, client: FakeClient) -> None:
    lose_answer(client)
    assert storage.create_if_absent("a", b"mine")
    assert client.files == {"/t/a": b"mine"}
    lose_answer(client, then=lambda: client.files.update({"/t/a": b"mine again"}))
    storage.replace("a", b"mine again")


def test_what_another_one_wrote_meanwhile_is_not_ours(storage: Storage, client: FakeClient) -> None:
    client.files["/t/a"] = b"theirs"
    lose_answer(client)
    assert not storage.create_if_absent("a", b"mine")
    assert client.files == {"/t/a": b"theirs"}


def test_a_forked_process_is_told_and_does_not_wait(storage: Storage, client: FakeClient) -> None:
    client.files["/t/a"] = b"x"
    assert storage.read("a") == b"x"
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            storage.read("a")
        except StorageError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert b"cannot be used in a process forked from one that used it" in os.read(reading, 1000)
    os.close(reading)
    os.close(writing)


def test_its_clock_is_the_name_nodes() -> None:
    class Clocked(FakeClient):
        def mkdirs(self, path: str, rights: int, *, create_parent: bool) -> None:
            self.files[path] = b""

    sys.modules["hdfs_native"].Client = Clocked  # type: ignore[attr-defined]
    hdfs = NativeHdfs("hdfs://nn:8020", {}, scratch="/t/tmp")
    first = hdfs.now_ms()
    assert first == 5
    assert hdfs.now_ms() in range(5, 60_005)
    assert hdfs._client.files == {}  # type: ignore[attr-defined]
