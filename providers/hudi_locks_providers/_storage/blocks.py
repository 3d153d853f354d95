"""Blocks of Azure blobs: sent apart, and made a blob later by one request that names them.

obstore sends blocks too, but names them at once, so that the requests are made here. Each is signed for its blob alone.
Source: Azure's REST API, "Put Block", "Put Block List", "Get Block List" and "Create a service SAS".
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

from hudi_locks.clock import Clock, SystemClock
from hudi_locks.config import Options, lock_keys, security_keys
from hudi_locks_providers._storage.credentials import azure_credentials
from hudi_locks_providers._storage.objects import Objects, PreconditionFailed
from hudi_locks_providers._storage.stores import (
    MISTRUSTED,
    import_obstore,
    is_mistrusted,
    open_store,
)
from hudi_locks_providers._tls import trust_authorities

__all__ = ["Blocks"]

_VERSION: Final = "2021-12-02"
_ANSWER_S: Final = 60.0
_TRUSTED: Final = timedelta(minutes=15)
_SKEW: Final = timedelta(minutes=15)
_RIGHTS: Final = {"GET": "r", "HEAD": "r", "PUT": "cw", "DELETE": "d"}
_KEY_VARIABLES: Final = ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY")
_SAS_VARIABLES: Final = ("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY")
_NAME: Final = re.compile(r"<Name>([^<]*)</Name>")
_NOTE: Final = "x-ms-meta-hudilocksvoid"
"""Beside a blob that stands for a moment, since its blocks were given up."""
_VOID: Final = b"\0"
_ASKED: Final = {"GET": "read", "HEAD": "read", "PUT": "write", "DELETE": "remove"}


class _Answer(NamedTuple):
    headers: Mapping[str, str]
    body: bytes


class Blocks:
    """The blocks below one folder of a container. Thread-safe; each request is sent once.

    Every call raises `BackendUnavailable` for what another attempt may heal, and `BackendRefused` for what none will.

    Args:
        objects: The same folder by obstore.
        options: Of the table.
        clock: Says until when a signature holds.
    """

    def __init__(self, objects: Objects, options: Options, *, clock: Clock | None = None) -> None:
        self._objects = objects
        self._options = options
        self._clock = clock or SystemClock()
        self._trusted = trust_authorities(options, security_keys.STORAGE_CA_FILE)

    def put(self, key: str, block: str, data: bytes) -> None:
        """Send a block of a blob; it stays apart until it is named."""
        self._send("PUT", key, {"comp": "block", "blockid": _encode(block)}, data)

    def name(self, key: str, blocks: Sequence[str]) -> None:
        """Make the blob of blocks that were sent and not named yet, and drop all others; in one step.

        Raises:
            PreconditionFailed: The blob is there.
            FileNotFoundError: A block is not there any more.
        """
        self._name(key, blocks, {})

    def _name(self, key: str, blocks: Sequence[str], headers: Mapping[str, str]) -> None:
        listed = "".join(f"<Uncommitted>{_encode(block)}</Uncommitted>" for block in blocks)
        body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{listed}</BlockList>'.encode()
        self._send("PUT", key, {"comp": "blocklist"}, body, If_None_Match="*", **headers)

    def list_unnamed(self, key: str) -> Sequence[str]:
        """The blocks of a blob that were not named yet."""
        try:
            found = self._send("GET", key, {"comp": "blocklist", "blocklisttype": "uncommitted"})
        except FileNotFoundError:
            return ()
        names = _NAME.findall(found.body.decode())
        return [base64.b64decode(name).decode(errors="replace") for name in names]

    def drop(self, key: str, block: str, *, who: str) -> None:
        """Drop all blocks that were not named: by a blob of another one, which `remove_void` is to take away.

        It names a block of its own, which is used up by that: sent again, and come late, it makes nothing.

        Raises:
            PreconditionFailed: The blob is there.
            FileNotFoundError: Another one dropped them meanwhile.
        """
        self.put(key, block, _VOID)
        self._name(key, [block], {_NOTE: who})

    def remove_void(self, key: str, *, who: str) -> None:
        """Take away what `drop` made for `who`, and nothing else."""
        try:
            found = self._send("HEAD", key, {})
            if found.headers.get(_NOTE) == who:
                self._send("DELETE", key, {}, If_Match=found.headers["etag"])
        except (FileNotFoundError, PreconditionFailed):
            return  # it is gone, or another file

    def _send(
        self, method: str, key: str, query: Mapping[str, str], data: bytes | None = None, **headers: str
    ) -> _Answer:
        """What the service answers; headers have `_` for `-` in their names.

        Raises:
            PreconditionFailed: A condition does not hold.
            FileNotFoundError: The blob, or a block, is not there.
        """
        status, code, name = 0, "", ""
        try:
            built = self._build(method, key, query, data, headers)
            with urlopen(built, timeout=_ANSWER_S, context=self._trusted) as answer:  # noqa: S310  # http(s) alone
                return _Answer({name.lower(): value for name, value in answer.headers.items()}, answer.read())
        except HTTPError as error:
            status, code = error.code, error.headers.get("x-ms-error-code") or ""
            error.close()
        except (OSError, http.client.HTTPException) as error:
            name = MISTRUSTED if is_mistrusted(str(error)) else type(error).__name__
        raise self._judge(method, key, status=status, code=code, name=name)

    def _build(
        self, method: str, key: str, query: Mapping[str, str], data: bytes | None, headers: Mapping[str, str]
    ) -> Request:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {"x-ms-version": _VERSION, "Content-Type": "application/octet-stream", **named}
        parts = (part for part in (urlencode(query), self._sign(method, key)) if part)
        return Request(f"{self._address(key)}?{'&'.join(parts)}", data, given, method=method)  # noqa: S310

    def _judge(self, method: str, key: str, *, status: int, code: str, name: str) -> Exception:
        if status == 412 or code == "BlobAlreadyExists":
            return PreconditionFailed()
        if code == "InvalidBlockList" or (status == 404 and code != "ContainerNotFound"):
            return FileNotFoundError(key)
        return self._objects.explain(key, _ASKED[method], status=status, code=code, name=name)

    def _address(self, key: str) -> str:
        location = self._objects.location
        endpoint = self._objects.endpoint or f"https://{location.account}.blob.core.windows.net"
        return f"{endpoint}/{quote(location.bucket)}/{quote(key)}"

    def _sign(self, method: str, key: str) -> str:
        """What the address of a blob is to have besides, so that the request is taken."""
        if self._options.get_value(lock_keys.STORAGE_SKIP_SIGNATURE):
            return ""
        given = azure_credentials(self._options)
        if signature := given.get("sas_key") or ("" if given else _find(_SAS_VARIABLES)):
            return str(signature).lstrip("?")
        if secret := given.get("account_key") or ("" if given else _find(_KEY_VARIABLES)):
            return self._sign_by_key(method, key, str(secret))
        return self._sign_by_token(method, key)

    def _sign_by_key(self, method: str, key: str, secret: str) -> str:
        location, rights = self._objects.location, _RIGHTS[method]
        now = datetime.fromtimestamp(self._clock.wall_ms() / 1000, timezone.utc)
        until = (now + _TRUSTED + _SKEW).strftime("%Y-%m-%dT%H:%M:%SZ")
        place = f"/blob/{location.account}/{location.bucket}/{key}"
        text = "\n".join([rights, "", until, place, "", "", "", _VERSION, "b", "", "", "", "", "", "", ""])
        made = hmac.digest(base64.b64decode(secret), text.encode(), hashlib.sha256)
        return urlencode({"sp": rights, "se": until, "sv": _VERSION, "sr": "b", "sig": base64.b64encode(made).decode()})

    def _sign_by_token(self, method: str, key: str) -> str:
        """As a managed identity, a service principal or a workload may: obstore has the service make a key for it."""
        store: Any = open_store(self._options, self._objects.location)
        asked = method if method != "HEAD" else "GET"
        found = self._objects.attempt(
            key, "sign", lambda: import_obstore().sign(store, asked, key, _TRUSTED), asked="write"
        )
        return urlsplit(str(found)).query


def _encode(block: str) -> str:
    return base64.b64encode(block.encode()).decode()


def _find(variables: Sequence[str]) -> str:
    return next((value for name in variables if (value := os.environ.get(name))), "")
