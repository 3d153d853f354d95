"""HDFS over its REST interface: the calls that locks need, each with the answer of the name node itself.

fsspec's WebHDFS always creates with `overwrite=true`, so that the calls are made here. Source: the WebHDFS REST API.
"""

from __future__ import annotations

import errno
import getpass
import http.client
import json
import os
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

__all__ = ["WebHdfs"]

_LONGEST_CALL_S: Final = 10.0
_REDIRECT: Final = 307
_ERRNOS: Final = {
    "AccessControlException": errno.EACCES,
    "AlreadyBeingCreatedException": errno.EEXIST,
    "AuthorizationException": errno.EACCES,
    "FileAlreadyExistsException": errno.EEXIST,
    "FileNotFoundException": errno.ENOENT,
    "ParentNotDirectoryException": errno.ENOTDIR,
    "PathIsNotDirectoryException": errno.ENOTDIR,
    "PathIsNotEmptyDirectoryException": errno.ENOTEMPTY,
    "SecurityException": errno.EACCES,
}
_STANDBY: Final = "StandbyException"


class WebHdfs:
    """One HDFS. Thread-safe; every call makes its own connection, and is made once.

    Every call raises `OSError`, with the errno that a local file system would give where there is one.

    Args:
        addresses: Of its name nodes, such as `http://namenode:9870`; the active one is found among them.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = [address.strip().rstrip("/") for address in addresses]
        self._user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()

    def create(self, path: str, data: bytes) -> None:
        """Make a file; `FileExistsError` if the name is taken. In two steps: the name node says where it goes."""
        self._moved("PUT", path, data, op="CREATE", overwrite="false")

    def read(self, path: str) -> bytes:
        """The content of a file."""
        return self._moved("GET", path, None, op="OPEN")

    def find_status(self, path: str) -> dict[str, Any] | None:
        """What the name node knows of a file or folder; None if there is none."""
        try:
            status: dict[str, Any] = self._ask("GET", path, op="GETFILESTATUS")["FileStatus"]
        except FileNotFoundError:
            return None
        return status

    def rename(self, path: str, to: str) -> bool:
        """Give a file or folder another name; False if there is none, or if the other name is taken.

        With the option "NONE", which the file system calls strict: else a folder of that name would swallow it.
        """
        try:
            self._ask("PUT", path, op="RENAME", destination=to, renameoptions="NONE")
        except (FileNotFoundError, FileExistsError):
            return False
        return True

    def delete(self, path: str, *, recursive: bool = True) -> bool:
        """Remove a file, or a folder with all that is in it; False if there is none."""
        return bool(self._ask("DELETE", path, op="DELETE", recursive=str(recursive).lower())["boolean"])

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Set the modification time of a file."""
        self._ask("PUT", path, op="SETTIMES", modificationtime=str(modified_ms), accesstime="-1")

    def make_folders(self, path: str) -> None:
        """Make a folder and those above it; quiet if it is there."""
        self._ask("PUT", path, op="MKDIRS")

    def list_names(self, path: str) -> list[str]:
        """What lies in a folder."""
        listed = self._ask("GET", path, op="LISTSTATUS")["FileStatuses"]["FileStatus"]
        return [entry["pathSuffix"] for entry in listed]

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
        """Ask the name node; the next one where this one is not there, or is not the active one."""
        told = f"/webhdfs/v1{quote(path)}?{urlencode({**query, 'user.name': self._user})}"
        for _ in self._addresses[1:]:
            try:
                answer = _send(method, self._addresses[0] + told, None)
            except ConnectionRefusedError:
                answer = None
            if answer is not None and _STANDBY not in answer[2].decode("utf-8", "replace"):
                return answer
            self._addresses = [*self._addresses[1:], self._addresses[0]]
        return _send(method, self._addresses[0] + told, None)


def _send(method: str, url: str, data: bytes | None) -> tuple[int, dict[str, str], bytes]:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.netloc, timeout=_LONGEST_CALL_S)
    headers = {"Content-Type": "application/octet-stream"} if data is not None else {}
    try:
        connection.request(method, f"{parts.path}?{parts.query}", data, headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    except http.client.HTTPException as error:
        raise OSError(errno.EIO, f"{parts.scheme}://{parts.netloc}: {error!r}") from error
    except OSError as error:
        raise OSError(error.errno or errno.EIO, f"{parts.scheme}://{parts.netloc}: {error}") from error
    finally:
        connection.close()


def _check(status: int, said: bytes, path: str) -> None:
    if status < http.HTTPStatus.MULTIPLE_CHOICES:
        return
    if status == http.HTTPStatus.UNAUTHORIZED:
        raise PermissionError(errno.EACCES, "WebHDFS asks for Kerberos, which is not spoken here", path)
    try:
        told = json.loads(said)["RemoteException"]
        kind, message = str(told["exception"]), str(told["message"]).splitlines()[0]
    except (ValueError, KeyError, TypeError, IndexError):
        kind, message = "", f"status {status}"
    raise OSError(_ERRNOS.get(kind, errno.EIO), f"{kind}: {message}" if kind else message, path)
