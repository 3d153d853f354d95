"""HDFS by the protocol of Hadoop's own clients, with Kerberos and delegation tokens: through hdfs-native.

It needs neither WebHDFS nor Java. Where a link breaks it may ask once more, so that a move which was made can be told
as one of a file that is not there.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from hudi_locks.clock import SystemClock
from hudi_locks.errors import ProviderLoadError
from hudi_locks.lock.lease import generation
from hudi_locks_providers._files.hdfs_client import HdfsClient, HdfsOutput, HdfsStatus, make_hdfs_error
from hudi_locks_providers._wire.service_time import ServiceTime

if TYPE_CHECKING:
    import hdfs_native  # late where it is used: it is an extra

__all__ = ["NativeHdfs", "read_native_error"]

_RETRIES: Final = {
    "dfs.client.failover.max.attempts": "4",
    "dfs.client.failover.sleep.base.millis": "100",
    "dfs.client.failover.sleep.max.millis": "2000",
}
"""A name node that nobody reaches is told within seconds; by itself the client tries for three minutes."""
_USED: Final = list[int]()
"""The generation of the process in which its threads run, once it was used."""
_AS_IT_IS: Final = 2**64 - 1
"""For an access time that stays."""
_FOLDER_RIGHTS: Final = 0o755
_REMOTE: Final = re.compile(r'RPCError\("(?:[\w.]+\.)?(\w+)", "((?:[^"\\]|\\.)*)')
_KERBEROS: Final = re.compile(r'GSSAPIError\(.*"((?:[^"\\]|\\.)*)"\)$')


class NativeHdfs(HdfsClient):
    """See `HdfsClient`. It cannot be used in a process forked from one that used it.

    Args:
        address: `hdfs://host:port`, or `hdfs://` with a name service that the settings describe.
        settings: Hadoop's, by name; they go before those of HADOOP_CONF_DIR.
        scratch: A folder in which an empty folder may be made for a moment, by which the name node tells its time.

    Raises:
        ProviderLoadError: The package hdfs-native is not installed.
        OSError: The settings name no name node.
    """

    def __init__(self, address: str, settings: Mapping[str, str], *, scratch: str) -> None:
        self._address = address
        self._settings = {**_RETRIES, **settings}
        self._scratch = scratch
        self._time = ServiceTime(SystemClock())
        self._made: hdfs_native.Client = self._connect()

    def create(self, path: str, data: bytes) -> None:
        """See `HdfsClient.create`."""
        with self.open_output(path, replaces=False) as out:
            out.write(data)

    def read(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """See `HdfsClient.read`."""
        with _translating(path):
            file = self._client.read(path)
            return file.read_range(offset, len(file) if length is None else length)

    def open_output(self, path: str, *, replaces: bool = True) -> HdfsOutput:
        """See `HdfsClient.open_output`."""
        with _translating(path):
            options = _load().WriteOptions(overwrite=replaces, create_parent=True)
            return _NativeOutput(self._client.create(path, options), path)

    def find_status(self, path: str) -> HdfsStatus | None:
        """See `HdfsClient.find_status`."""
        try:
            with _translating(path):
                return _status(self._client.get_file_info(path), "")
        except FileNotFoundError:
            return None

    def move(self, path: str, to: str, *, replaces: bool = False) -> None:
        """See `HdfsClient.move`."""
        with _translating(path):
            self._client.rename(path, to, overwrite=replaces)

    def delete(self, path: str, *, recursive: bool = True) -> bool:
        """See `HdfsClient.delete`."""
        with _translating(path):
            return self._client.delete(path, recursive=recursive)

    def set_modified(self, path: str, modified_ms: int) -> None:
        """See `HdfsClient.set_modified`."""
        with _translating(path):
            self._client.set_times(path, modified_ms, _AS_IT_IS)

    def make_folders(self, path: str) -> None:
        """See `HdfsClient.make_folders`."""
        with _translating(path):
            self._client.mkdirs(path, _FOLDER_RIGHTS, create_parent=True)

    def list_statuses(self, path: str) -> list[HdfsStatus]:
        """See `HdfsClient.list_statuses`."""
        with _translating(path):
            return [_status(told, _name(told.path, path)) for told in self._client.list_status(path)]

    def now_ms(self) -> int:
        """See `HdfsClient.now_ms`: what it stamps a folder with that is made for it."""
        if (now_ms := self._time.read_ms()) is not None:
            return now_ms
        probe = f"{self._scratch}/{uuid.uuid4().hex}"
        self.make_folders(probe)
        made = self.find_status(probe)
        self.delete(probe)
        if made is None:
            raise OSError(f"{probe} is gone right after it was made")
        self._time.note_ms(made.modified_ms)
        return made.modified_ms

    @property
    def _client(self) -> hdfs_native.Client:
        _refuse_fork()
        return self._made

    def _connect(self) -> hdfs_native.Client:
        with _translating(self._address):
            client: hdfs_native.Client = _load().Client(self._address, self._settings)
            return client


class _NativeOutput(HdfsOutput):
    """See `HdfsOutput`."""

    def __init__(self, inner: hdfs_native.FileWriter, path: str) -> None:
        super().__init__(path)
        self._inner = inner

    def _send(self, piece: memoryview) -> None:
        with _translating(self._path):
            self._inner.write(bytes(piece))

    def _end(self) -> None:
        with _translating(self._path):
            self._inner.close()


def _refuse_fork() -> None:
    """Its threads do not come along, so that a call would wait for a minute."""
    if _USED and _USED[0] != generation():
        raise OSError(
            "hdfs-native, by which HDFS is reached, cannot be used in a process forked from one that used it; start"
            " processes with the method 'spawn' or 'forkserver'"
        )


def _load() -> Any:
    try:
        import hdfs_native
    except ImportError as error:
        message = "HDFS without WebHDFS needs hdfs-native: pip install 'hudi-locks[hdfs]', on executors too"
        raise ProviderLoadError(message, package="hdfs-native") from error
    _refuse_fork()
    if not _USED:
        _USED.append(generation())
    return hdfs_native


def _name(path: str, folder: str) -> str:
    return "" if path == folder else path.rpartition("/")[2]


def _status(told: hdfs_native.FileStatus, name: str) -> HdfsStatus:
    return HdfsStatus(name, told.length, told.modification_time, told.isdir, 0)


@contextlib.contextmanager
def _translating(path: str) -> Iterator[None]:
    """What the client raises, as an `OSError` without the name node's stack."""
    try:
        yield
    except OSError as error:
        if len(error.args) > 1:
            raise  # it has a number
        raise type(error)(_first_line(str(error))) from error
    except (RuntimeError, NotImplementedError) as error:
        raise read_native_error(str(error), path) from error


def read_native_error(text: str, path: str) -> OSError:
    """An error that hdfs-native tells as Rust prints it: of the name node, or its own.

    Args:
        text: Of its `RuntimeError`.
        path: What was asked for.
    """
    if kerberos := _KERBEROS.match(text):
        return PermissionError(
            f"Kerberos: {kerberos[1]}; get a ticket with kinit, or name a keytab in KRB5_CLIENT_KTNAME"
        )
    if (remote := _REMOTE.match(text)) is None:
        return OSError(_first_line(text))
    return make_hdfs_error(remote[1], _first_line(remote[2]), path)


def _first_line(text: str) -> str:
    first, *_ = re.split(r"\n|\\n", text, maxsplit=1)
    return first.replace('\\"', '"')
