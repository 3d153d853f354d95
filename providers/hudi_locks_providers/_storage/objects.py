"""Reads and conditional writes of small objects, with errors told as those of a lock service."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, islice
from typing import Any, Final, TypeVar

from hudi_locks.config import Options
from hudi_locks.errors import BackendRefused, BackendUnavailable, LockError
from hudi_locks_providers._storage.location import Location
from hudi_locks_providers._storage.ranges import Block
from hudi_locks_providers._storage.stores import (
    MISTRUSTED,
    RequestPolicy,
    find_endpoint,
    import_obstore,
    is_mistrusted,
    open_store,
)

__all__ = ["ObjectOutput", "Objects", "PreconditionFailed", "Stored", "stamp_ms"]

_STATUS: Final = re.compile(r"status(?: code:?)? (\d{3})")
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_NO_BUCKET: Final = ("NoSuchBucket", "ContainerNotFound", "bucket does not exist", "no such bucket")
_BUCKET_MISSING: Final = _NO_BUCKET[0]
_CREDENTIAL_SERVICES: Final = ("169.254.", "token request", "metadata.google", "/oauth2/", "AssumeRole")
_FINAL_STATUSES: Final = frozenset({400, 401, 403, 404, 405, 411, 501})
_PASSING_CODES: Final = frozenset({"RequestTimeout", "RequestTimeTooSkewed", "SlowDown", "OperationAborted"})
_RIGHTS: Final = {
    "s3": {
        "read": "s3:GetObject",
        "list": "s3:ListBucket",
        "write": "s3:PutObject",
        "remove": "s3:DeleteObject",
    },
    "gcs": {
        "read": "storage.objects.get",
        "list": "storage.objects.list",
        "write": "storage.objects.create and storage.objects.delete",
        "remove": "storage.objects.delete",
    },
    "azure": {
        "read": "Microsoft.Storage/…/blobs/read",
        "list": "Microsoft.Storage/…/blobs/read",
        "write": "Microsoft.Storage/…/blobs/write",
        "remove": "Microsoft.Storage/…/blobs/delete",
    },
}
_PAGE: Final = 1000

T = TypeVar("T")


class PreconditionFailed(Exception):  # an answer, not an error
    """The condition of a write did not hold, or another write was under way.

    Attributes:
        is_doubtful: Whether the same request was sent before, and got no answer: that one may be why.
    """

    is_doubtful: bool = False


@dataclass(frozen=True)
class Stored:
    """An object as it was read.

    Attributes:
        data: Its bytes.
        version: What `Objects.put` compares.
        modified_ms: When it was written, by the service's clock, in whole seconds on most services.
        notes: What was kept beside it by `Objects.put`, among what the service keeps there itself.
    """

    data: bytes
    version: Any = field(repr=False)
    modified_ms: int
    notes: Mapping[str, str] = field(default_factory=dict)


class Objects:
    """The objects of one bucket. Thread-safe; what writes is one request, which is never repeated by itself.

    Every call raises `BackendUnavailable` for what another attempt may heal, and `BackendRefused` for what none will.

    Args:
        options: Of the lock or the table.
        location: The bucket.
        policy: How patient reads are; None for what a lock needs.
    """

    def __init__(self, options: Options, location: Location, *, policy: RequestPolicy | None = None) -> None:
        self._options = options
        self._policy = policy
        self.location = location

    @cached_property
    def endpoint(self) -> str:
        """Where requests go, for a person to read; empty for the cloud's own address."""
        return find_endpoint(self._options, self.location)

    @cached_property
    def _store(self) -> Any:
        return open_store(self._options, self.location)

    @cached_property
    def _reads(self) -> Any:
        """The same bucket, by a client that may repeat what it asks."""
        return self._store if self._policy is None else open_store(self._options, self.location, self._policy)

    def send(self, name: str, request: Callable[[], Any]) -> Any:  # noqa: ARG002  # for whoever stands between
        """Make one request, `get`, `put` or `delete`: all of them pass here."""
        return request()

    def read(self, key: str) -> Stored | None:
        """The object under `key`; None if there is none."""

        def fetch() -> Stored:
            found = import_obstore().get(self._reads, key)
            return Stored(bytes(found.bytes()), _version(found.meta), stamp_ms(found.meta), found.attributes)

        return self._ask(key, "get", fetch)

    def head(self, key: str) -> Mapping[str, Any] | None:
        """What is known of an object, as obstore tells it; None if there is none."""
        return self._ask(key, "head", lambda: import_obstore().head(self._reads, key))

    def read_first(self, key: str, count: int) -> tuple[Block, Any] | None:
        """So many bytes of an object, its last ones where the service can tell them, and its version; None if none.

        An empty object fails: no service has a range of it.
        """
        part = {"suffix": count} if self.location.service == "gcs" else (0, count)

        def fetch() -> tuple[Block, Any]:
            found = import_obstore().get(self._reads, key, options={"range": part})
            return Block(bytes(found.bytes()), found.range[0], found.meta["size"]), found.meta["e_tag"]

        return self._ask(key, "get", fetch)

    def read_range(self, key: str, begin: int, end: int, *, version: Any) -> bytes:
        """The bytes of an object from `begin` to before `end`.

        Raises:
            PreconditionFailed: It has another version by now.
            FileNotFoundError: It is gone.
        """
        options = {"range": (begin, end), **({"if_match": version} if version else {})}
        request = partial(import_obstore().get, self._reads, key, options=options)
        return self.attempt(key, "get", lambda: bytes(request().bytes()), asked="read")

    def list_children(self, prefix: str) -> tuple[Sequence[Mapping[str, Any]], Sequence[str]]:
        """The objects directly below a prefix, as obstore tells of them, and the prefixes."""
        told = self._ask(prefix, "list", lambda: import_obstore().list_with_delimiter(self._reads, prefix or None))
        return (told["objects"], told["common_prefixes"]) if told else ((), ())

    def walk(self, prefix: str, *, most: int | None = None) -> list[Mapping[str, Any]]:
        """All objects below a prefix; at most so many of the first ones."""

        def fetch() -> list[Mapping[str, Any]]:
            pages = import_obstore().list(self._reads, prefix or None, chunk_size=most or _PAGE)
            return list(islice(chain.from_iterable(pages), most))

        return self._ask(prefix, "list", fetch) or []

    def has_bucket(self) -> bool:
        """Whether the bucket itself is there, as a listing of one object tells."""

        def look() -> Any:
            return next(iter(import_obstore().list(self._store, self.location.prefix or None, chunk_size=1)), None)

        try:
            self.attempt("", "list", look, asked="list")
        except FileNotFoundError:
            return False
        except BackendRefused as error:
            if error.facts.get("code") != _BUCKET_MISSING:
                raise
            return False
        return True

    def _ask(self, key: str, name: str, request: Callable[[], T]) -> T | None:
        """What a read gives; None if there is nothing under the key."""
        try:
            return self.attempt(key, name, request, asked="list" if name == "list" else "read")
        except FileNotFoundError:
            return None

    def attempt(self, key: str, name: str, request: Callable[[], T], *, asked: str) -> T:
        """What a request to obstore gives.

        Raises:
            PreconditionFailed: Its condition does not hold.
            FileNotFoundError: There is nothing under the key.
        """
        obstore = import_obstore()
        try:
            found: T = self.send(name, request)
        except (obstore.exceptions.BaseError, OSError) as error:
            told = self._translate(error, key, asked)  # raised below, so that it brings no text of obstore's
        else:
            return found
        raise told

    def put(self, key: str, data: bytes, mode: Any, *, notes: Mapping[str, str] | None = None) -> Any:
        """Write an object, and return its version.

        Args:
            key: Where.
            data: All of it.
            mode: The version to write over; "create" to write only what is not there; "overwrite" for no condition.
            notes: What is kept beside it; see `Stored.notes`.

        Raises:
            PreconditionFailed: The condition does not hold.
        """
        beside = {"attributes": dict(notes)} if notes else {}
        request = partial(import_obstore().put, self._store, key, data, mode=mode, use_multipart=False, **beside)
        try:
            return _version(self.attempt(key, "put", request, asked="write"))
        except FileNotFoundError:
            told = self._bucket_missing() if mode == "create" else PreconditionFailed()
        raise told

    def remove(self, key: str) -> None:
        """Delete the object under `key`; quiet if there is none."""
        request = partial(import_obstore().delete, self._store, key)
        with suppress(FileNotFoundError):
            self.attempt(key, "delete", request, asked="remove")

    def copy_if_absent(self, source: str, target: str) -> None:
        """Let the service copy an object to a name that is free.

        Raises:
            PreconditionFailed: The name is taken.
            FileNotFoundError: There is no object to copy.
        """
        request = partial(import_obstore().copy, self._reads, source, target, overwrite=False)
        self.attempt(target, "copy", request, asked="write")

    def open_output(self, key: str, *, part_bytes: int) -> ObjectOutput:
        """Where the bytes of a large object go, which is there, and replaces what was, once that was closed."""
        return ObjectOutput(self, key, import_obstore().open_writer(self._reads, key, buffer_size=part_bytes))

    def _translate(self, error: Exception, key: str, asked: str) -> Exception:
        """What an error of obstore means.

        Of its text only the status and the service's code are told: it may show a signed address.
        """
        name, text = type(error).__name__, str(error)
        if name in ("AlreadyExistsError", "PreconditionError", "NotModifiedError"):
            return PreconditionFailed()
        if any(word in text for word in _NO_BUCKET):
            return self._bucket_missing()
        if isinstance(error, FileNotFoundError) or name == "NotFoundError":
            return FileNotFoundError(key)
        return self._say_failure(key, asked, name=MISTRUSTED if is_mistrusted(text) else name, text=text)

    def _say_failure(self, key: str, asked: str, *, name: str, text: str) -> LockError:
        status = int(found[1]) if (found := _STATUS.search(text)) else 0
        code = found[1] if (found := _CODE.search(text)) else ""
        if any(word in text for word in _CREDENTIAL_SERVICES):
            where, told, facts = self._describe(key, status, code, name=name)
            message = f"{where}: no credentials could be fetched ({told}); give keys, or a role to this machine"
            return (BackendRefused if 400 <= status < 500 else BackendUnavailable)(message, **facts)
        return self.explain(key, asked, status=status, code=code, name=name)

    def _describe(self, key: str, status: int, code: str, *, name: str) -> tuple[str, str, dict[str, Any]]:
        """Where it failed, what was told of it, and the facts of the error."""
        where = f"{self.location.url(key)}{f' at {self.endpoint}' if self.endpoint else ''}"
        told = " ".join(str(part) for part in (status or "", code) if part) or name
        return where, told, {"key": key, "status": status or None, "code": code}

    def explain(self, key: str, asked: str, *, status: int, code: str, name: str) -> LockError:
        """The error of a request that failed.

        Args:
            key: Of the object.
            asked: What was to be done with it, such as "read".
            status: Of the answer; 0 if there was none.
            code: What the service called the reason; "" if it did not.
            name: Of what the client raised, for want of both.
        """
        where, told, facts = self._describe(key, status, code, name=name)
        if code in _NO_BUCKET:
            return self._bucket_missing()
        if name == MISTRUSTED:
            return BackendRefused(f"{where}: {MISTRUSTED}", **facts)
        if name in ("PermissionDeniedError", "UnauthenticatedError") or status in (401, 403):
            right = _RIGHTS.get(self.location.service, {}).get(asked, asked)
            message = f"{where}: the service refuses to {asked} it ({told}); grant {right}, or check the credentials"
            return BackendRefused(message, right=right, **facts)
        if name == "NotSupportedError" or (status in _FINAL_STATUSES and code not in _PASSING_CODES):
            return BackendRefused(f"{where}: the service cannot {asked} it ({told})", **facts)
        if status == 409:
            return BackendUnavailable(f"{where}: another request for it was under way ({told})", **facts)
        return BackendUnavailable(f"{where}: no answer to the request to {asked} it ({told})", **facts)

    def _bucket_missing(self) -> BackendRefused:
        where = f"{self.location.url('')}{f' at {self.endpoint}' if self.endpoint else ''}"
        message = f"{where}: there is no such bucket; make it, or mend hoodie.base.path"
        return BackendRefused(message, key=self.location.bucket, code=_BUCKET_MISSING)


class ObjectOutput:
    """Where the bytes of one object go; see `Objects.open_output`."""

    def __init__(self, objects: Objects, key: str, writer: Any) -> None:
        self._objects = objects
        self._key = key
        self._writer = writer

    def write(self, data: bytes) -> None:
        """Take all of the bytes."""
        self._objects.attempt(self._key, "part", lambda: self._writer.write(data), asked="write")

    def close(self) -> None:
        """Make the object."""
        self._objects.attempt(self._key, "part", self._writer.close, asked="write")


def stamp_ms(meta: Mapping[str, Any]) -> int:
    """When an object was written, by what obstore tells of it."""
    return int(meta["last_modified"].timestamp() * 1000)


def _version(meta: Any) -> dict[str, str]:
    """What obstore compares: services use one or the other."""
    return {name: meta[name] for name in ("e_tag", "version") if meta[name] is not None}
