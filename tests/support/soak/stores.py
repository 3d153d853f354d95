"""Where the table of a soak lies, and how its writers and its judges reach it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hdfs_proxy import HdfsProxy
from hudi_locks_conformance.servers import KINDS, LocalServer, start_server
from hudi_locks_conformance.servers.mini_dfs import find_rpc_port
from hudi_locks_providers.hdfs_storage import HdfsStorage
from hudi_locks_providers.s3_storage import S3Storage
from s3_proxy import run_proxy

from hudi_locks.storage import Storage, open_storage
from soak.links import Link, Risks

__all__ = ["STORES", "Store", "on_disk", "run_store"]

STORES: Final = ("disk", "s3", "hdfs", "hdfs-native")
_LONG_AGO_S: Final = 1_600_000_000
_ENDPOINT: Final = "hudi_locks.storage.endpoint_url"
_NAME_NODES: Final = "hudi_locks.filesystem.webhdfs_url"
_PATIENT: Final = {
    "hoodie.client.heartbeat.interval_in_ms": "2000",
    "hoodie.write.lock.zookeeper.session_timeout_ms": "6000",
}
"""A request takes its time there, and several may meet a fault."""
_SWEEPERS: Final = 4
_FOLDER: Final = "soak/table"
_OF_S3: Final = Risks(slow=0.02, dropped=0.003, lost=0.003, late=0.002, busy=0.003, failed=0.002)
_OF_HDFS: Final = Risks(slow=0.01, dropped=0.001, lost=0.001, late=0.001)
"""Less than of S3: a request to WebHDFS is sent once, so that each of these ends an attempt to write."""


@dataclass(frozen=True)
class Store:
    """A place of a table.

    Attributes:
        path: Base path, the same for all.
        options: With which writers reach it.
        sound: With which janitor and readers reach it, without faults of the link.
        address: As Spark opens it, without them.
        link: Between writers and the store; None where there is none.
        set_old: Lets a file or folder below the base path look as if it was made years ago.
        list_uploads: What was begun and neither completed nor given up, in words.
    """

    path: str
    options: Mapping[str, str] = field(default_factory=dict)
    sound: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    link: Link | None = None
    set_old: Callable[[str], None] = field(default=lambda path: None)
    list_uploads: Callable[[], Sequence[str]] = tuple

    def open(self) -> Storage:
        """The files, reached without faults."""
        return open_storage(self.path, self.sound)

    def choose_services(self, number: int, options: Mapping[str, str]) -> Mapping[str, str]:
        """The options of writer `number`: over a network every fourth one sweeps before it writes, on a disk each."""
        sweeps = self.link is None or number % _SWEEPERS == 0
        return options if sweeps else {**options, "hudi_locks.sweep_before_write": "false"}


def on_disk(path: str) -> Store:
    """A folder of this machine."""
    return Store(path, address=path, set_old=lambda name: _set_old(Path(path, name)))


def _set_old(file: Path) -> None:
    os.utime(file, (_LONG_AGO_S, _LONG_AGO_S))


@contextmanager
def run_store(name: str, folder: Path, *, seed: int) -> Iterator[Store]:
    """A place for a table, until the end of the block.

    Args:
        name: One of `STORES`.
        folder: For what lies on the disk, a service's data too.
        seed: Of the faults of the link.

    Raises:
        ServerUnavailable: This machine lacks a tool.
    """
    if name == "disk":
        yield on_disk(str(folder / "table"))
        return
    with ExitStack() as stack:
        kind = "versitygw" if name == "s3" else "minidfs"
        server = stack.enter_context(start_server(KINDS[kind], folder / kind))
        assert isinstance(server, LocalServer), f"{kind} in a container cannot be killed and looked into"
        yield _OPENERS[name](server, stack, seed)


def _on_s3(server: LocalServer, stack: ExitStack, seed: int) -> Store:
    proxy = stack.enter_context(run_proxy(server.options[_ENDPOINT]))
    bucket = server.options["hoodie.base.path"].split("/")[2]
    path = f"s3a://{bucket}/{_FOLDER}"
    sound = {**server.options, "hoodie.base.path": path}
    return Store(
        path,
        {**sound, **_PATIENT, _ENDPOINT: proxy.url},
        sound,
        address=path,
        link=Link(proxy, _OF_S3, seed=seed),
        set_old=lambda name: _set_old(server.folder / "data" / bucket / _FOLDER / name),
        list_uploads=lambda: _list_uploads(path, sound),
    )


def _list_uploads(path: str, options: Mapping[str, str]) -> Sequence[str]:
    """All of the bucket, whatever they are called."""
    storage = open_storage(path, options)
    assert isinstance(storage, S3Storage)
    pages = storage._bucket.pages("list_multipart_uploads", "", "list the uploads of")
    return [f"upload {one['UploadId']} of {one['Key']}" for page in pages for one in page.get("Uploads", ())]


def _on_hdfs(server: LocalServer, stack: ExitStack, seed: int) -> Store:
    proxy = HdfsProxy(f"http://127.0.0.1:{server.port}")
    stack.callback(proxy.close)
    path = f"hdfs://soak/{_FOLDER}"
    sound = {_NAME_NODES: f"http://127.0.0.1:{server.port}"}
    return Store(
        path,
        {**_PATIENT, _NAME_NODES: proxy.url},
        sound,
        address=f"webhdfs://127.0.0.1:{server.port}/{_FOLDER}",
        link=Link(proxy, _OF_HDFS, seed=seed, restart=server.restart),
        set_old=lambda name: _set_old_on_hdfs(path, sound, name),
    )


def _set_old_on_hdfs(path: str, options: Mapping[str, str], name: str) -> None:
    storage = open_storage(path, options)
    assert isinstance(storage, HdfsStorage)
    storage.hdfs.set_modified(f"/{_FOLDER}/{name}", _LONG_AGO_S * 1000)


def _on_hdfs_natively(server: LocalServer, stack: ExitStack, seed: int) -> Store:
    """By Hadoop's own protocol, whose requests no proxy understands; faults of the link have tests of their own."""
    del stack, seed
    path = f"hdfs://127.0.0.1:{find_rpc_port(server)}/{_FOLDER}"
    options = {"hudi_locks.hdfs.client": "native"}
    return Store(
        path,
        {**_PATIENT, **options},
        options,
        address=f"webhdfs://127.0.0.1:{server.port}/{_FOLDER}",
        set_old=lambda name: _set_old_on_hdfs(path, options, name),
    )


_OPENERS: Final = {"s3": _on_s3, "hdfs": _on_hdfs, "hdfs-native": _on_hdfs_natively}
