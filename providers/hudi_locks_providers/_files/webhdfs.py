"""HDFS over its REST interface: the calls that locks and tables need, each with the answer of the name node itself.

fsspec's WebHDFS always creates with `overwrite=true`, so that the calls are made here. Source: the WebHDFS REST API.
"""

from __future__ import annotations

import errno
import getpass
import http.client
import json
import os
import socket
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from hudi_locks.clock import SystemClock
from hudi_locks_providers._files.hdfs_client import HdfsClient, HdfsOutput, HdfsStatus, make_hdfs_error
from hudi_locks_providers._wire.service_time import ServiceTime

__all__ = ["WebHdfs"]

_LONGEST_CALL_S: Final = 10.0
_REDIRECT: Final = 307
_WHERE: Final = (
    "where the name nodes of a name service speak HTTP is told by hudi_locks.filesystem.webhdfs_url, or by"
    " hdfs-site.xml in HADOOP_CONF_DIR"
)
_STANDBY: Final = "StandbyException"


class WebHdfs(HdfsClient):
    """See `HdfsClient`; every call makes its own connection, and is made once.

    Args:
        addresses: Of its name nodes, such as `http://namenode:9870`; the active one is found among them.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = [address.strip().rstrip("/") for address in addresses]
        self._time = ServiceTime(SystemClock())
        self._user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()

    def create(self, path: str, data: bytes) -> None:
        """See `HdfsClient.create`. In two steps: the name node says where it goes."""
        self._moved("PUT", path, data, op="CREATE", overwrite="false")

    def read(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """See `HdfsClient.read`."""
        part = {} if length is None else {"offset": str(offset), "length": str(length)}
        return self._moved("GET", path, None, op="OPEN", **part)

    def open_output(self, path: str) -> HdfsOutput:
        """See `HdfsClient.open_output`."""
        status, headers, said = self._send("PUT", path, op="CREATE", overwrite="true")
        where = headers.get("location")
        if status != _REDIRECT or not where:
            _check(status, said, path)
            raise OSError(errno.EIO, f"the name node does not say where it is to be written (status {status})", path)
        return _WebOutput(where, path)

    def find_status(self, path: str) -> HdfsStatus | None:
        """See `HdfsClient.find_status`."""
        try:
            return _status(self._ask("GET", path, op="GETFILESTATUS")["FileStatus"])
        except FileNotFoundError:
            return None

    def move(self, path: str, to: str, *, replaces: bool = False) -> None:
        """See `HdfsClient.move`."""
        self._ask("PUT", path, op="RENAME", destination=to, renameoptions="OVERWRITE" if replaces else "NONE")

    def delete(self, path: str, *, recursive: bool = True) -> bool:
        """See `HdfsClient.delete`."""
        return bool(self._ask("DELETE", path, op="DELETE", recursive=str(recursive).lower())["boolean"])

    def set_modified(self, path: str, modified_ms: int) -> None:
        """See `HdfsClient.set_modified`."""
        self._ask("PUT", path, op="SETTIMES", modificationtime=str(modified_ms), accesstime="-1")

    def make_folders(self, path: str) -> None:
        """See `HdfsClient.make_folders`."""
        self._ask("PUT", path, op="MKDIRS")

    def list_statuses(self, path: str) -> list[HdfsStatus]:
        """See `HdfsClient.list_statuses`."""
        return [_status(told) for told in self._ask("GET", path, op="LISTSTATUS")["FileStatuses"]["FileStatus"]]

    def now_ms(self) -> int:
        """See `HdfsClient.now_ms`.

        Answers tell whole seconds: between them this process counts on, and never away from what they tell.
        """
        if (now_ms := self._time.read_ms()) is not None:
            return now_ms
        self.find_status("/")
        now_ms = self._time.read_ms()
        if now_ms is None:
            raise OSError(errno.EIO, "the server tells no time in its answers")
        return now_ms

    def _moved(self, method: str, path: str, data: bytes | None, **query: str) -> bytes:
        status, headers, said = self._send(method, path, **query)
        where = headers.get("location")
        if status == _REDIRECT and where:
            status, _, said = _send(method, where, data)
        _check(status, said, path)
        return said

    def _ask(self, method: str, path: str, **query: str) -> dict[str, Any]:
        status, _, said = self._send(method, path, **query)
        _check(status, said, path)
        answer: dict[str, Any] = json.loads(said) if said else {}
        return answer

    def _send(self, method: str, path: str, **query: str) -> tuple[int, dict[str, str], bytes]:
        answer = self._send_to_active(method, path, **query)
        self._time.note(answer[1].get("date"))
        return answer

    def _send_to_active(self, method: str, path: str, **query: str) -> tuple[int, dict[str, str], bytes]:
        """Ask the name node; the next one where this one is not there, or is not the active one."""
        told = f"/webhdfs/v1{quote(path)}?{urlencode({**query, 'user.name': self._user})}"
        *others, last = self._addresses  # threads that find out at once which one is active do not disturb each other
        for address in others:
            try:
                answer = _send(method, address + told, None)
            except ConnectionRefusedError:
                continue
            if _STANDBY not in answer[2].decode("utf-8", "replace"):
                self._prefer(address)
                return answer
        self._prefer(last)
        return _send(method, last + told, None)

    def _prefer(self, address: str) -> None:
        """Ask this one first from now on."""
        if self._addresses[0] != address:
            self._addresses = [address, *(other for other in self._addresses if other != address)]


class _WebOutput(HdfsOutput):
    """See `HdfsOutput`.

    Args:
        where: Address that the name node gave.
        path: Of the file, for messages.
    """

    def __init__(self, where: str, path: str) -> None:
        super().__init__(path)
        parts = urlsplit(where)
        self._connection = _connect(parts.scheme, parts.netloc)
        self._connection.putrequest("PUT", f"{parts.path}?{parts.query}")
        self._connection.putheader("Content-Type", "application/octet-stream")
        self._connection.putheader("Transfer-Encoding", "chunked")
        self._connection.endheaders()

    def _send(self, piece: memoryview) -> None:
        self._connection.send(b"%x\r\n" % len(piece))
        self._connection.send(piece)
        self._connection.send(b"\r\n")

    def _end(self) -> None:
        try:
            self._connection.send(b"0\r\n\r\n")
            answer = self._connection.getresponse()
            _check(answer.status, answer.read(), self._path)
        except http.client.HTTPException as error:
            raise OSError(errno.EIO, f"the data node gave no answer: {error!r}", self._path) from error
        finally:
            self._connection.close()


def _status(told: dict[str, Any]) -> HdfsStatus:
    size, modified_ms = int(told.get("length", 0)), int(told["modificationTime"])
    return HdfsStatus(told.get("pathSuffix", ""), size, modified_ms, told["type"] == "DIRECTORY", int(told["fileId"]))


def _connect(scheme: str, netloc: str) -> http.client.HTTPConnection:
    kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
    return kind(netloc, timeout=_LONGEST_CALL_S)


def _send(method: str, url: str, data: bytes | None) -> tuple[int, dict[str, str], bytes]:
    parts = urlsplit(url)
    connection = _connect(parts.scheme, parts.netloc)
    headers = {"Content-Type": "application/octet-stream"} if data is not None else {}
    try:
        connection.request(method, f"{parts.path}?{parts.query}", data, headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    except http.client.HTTPException as error:
        raise OSError(errno.EIO, f"{parts.scheme}://{parts.netloc}: {error!r}") from error
    except socket.gaierror as error:
        raise OSError(f"{parts.scheme}://{parts.netloc}: {error}; {_WHERE}") from error
    except OSError as error:
        raise OSError(error.errno or errno.EIO, f"{parts.scheme}://{parts.netloc}: {error}") from error
    finally:
        connection.close()


def _check(status: int, said: bytes, path: str) -> None:
    if status < http.HTTPStatus.MULTIPLE_CHOICES:
        return
    if status == http.HTTPStatus.UNAUTHORIZED:
        raise PermissionError(
            "WebHDFS asks for Kerberos, which is not spoken here: pip install 'hudi-locks[hdfs]', and give an hdfs://"
            " path without hudi_locks.filesystem.webhdfs_url"
        )
    try:
        told = json.loads(said)["RemoteException"]
        kind, message = str(told["exception"]), str(told["message"]).splitlines()[0]
    except (ValueError, KeyError, TypeError, IndexError):
        kind, message = "", f"status {status}"
    raise make_hdfs_error(kind, message, path)
