"""Requests to one bucket of S3: which are repeated, and what their failures mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cached_property
from typing import Any, Final, TypeVar

from hudi_locks.clock import Clock, SystemClock
from hudi_locks.config import Options
from hudi_locks.errors import StorageError
from hudi_locks_providers._s3.client import S3Client, open_client
from hudi_locks_providers._storage.location import Location
from hudi_locks_providers._storage.stores import MISTRUSTED, find_endpoint, is_mistrusted

__all__ = ["Bucket", "ConditionUnmet", "NothingThere"]

_PAUSES_S: Final = (0.1, 0.4, 1.0, 2.0)
_RIGHTS: Final = {
    "read": "s3:GetObject and s3:ListBucket",
    "list": "s3:ListBucket",
    "write": "s3:PutObject",
    "remove": "s3:DeleteObject",
    "cancel": "s3:AbortMultipartUpload",
    "list the uploads of": "s3:ListBucketMultipartUploads",
    "list the parts of": "s3:ListMultipartUploadParts",
}
_NOTHING: Final = frozenset({"", "NoSuchKey", "NoSuchUpload", "NotFound"})
_NO_BUCKET: Final = frozenset({"NoSuchBucket", "InvalidBucketName"})
_BUSY_CODES: Final = frozenset({"SlowDown", "ServiceUnavailable", "TooManyRequests", "OperationAborted"})
_BUSY_STATUSES: Final = frozenset({409, 429, 503})
_NO_SUCH_BUCKET: Final = ("there is no such bucket", "make it, or mend the table's path")
_EXPIRED: Final = ("the credentials have expired", "give new ones, or a role that renews them")
_UNKNOWN_KEYS: Final = ("the service does not accept these keys", "check the credentials")
_ELSEWHERE: Final = ("the bucket is in another region", "set hudi_locks.storage.region")
_REASONS: Final = {
    **dict.fromkeys(_NO_BUCKET, _NO_SUCH_BUCKET),
    **dict.fromkeys(("ExpiredToken", "TokenRefreshRequired", "RequestExpired"), _EXPIRED),
    **dict.fromkeys(("PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed"), _ELSEWHERE),
    **dict.fromkeys(("InvalidAccessKeyId", "SignatureDoesNotMatch", "XAdminUserNotFound"), _UNKNOWN_KEYS),
    "RequestTimeTooSkewed": ("this machine's clock is far from the service's", "set it right"),
}
"""What the service says is wrong, and the way out."""
_NOT_SENT: Final = frozenset({"EndpointConnectionError", "ConnectTimeoutError", "ProxyConnectionError"})
_MOST_UNANSWERED: Final = 500

T = TypeVar("T")


class NothingThere(Exception):  # an answer, not an error
    """There is no such object, or upload."""


class ConditionUnmet(Exception):  # an answer, not an error
    """The condition of a write does not hold.

    Attributes:
        is_doubtful: Whether the same request was sent before, and got no answer: that one may be why.
    """

    is_doubtful: bool = False


class _Verdict(Enum):
    MISSING = "there is none"
    UNMET = "the condition does not hold"
    REFUSED = "no other attempt will do better"
    NOT_DONE = "nothing was done; another attempt may do it"
    UNKNOWN = "it may be done, now or later"


class Bucket:
    """One folder of a bucket. Paths are relative to it. Thread-safe.

    Every request raises `StorageError` with facts `path`, `status` and `code` for what is no answer to it, or none
    that another attempt would better.

    Args:
        options: Of the table.
        location: The folder.
        clock: Waits between attempts.
    """

    def __init__(self, options: Options, location: Location, *, clock: Clock | None = None) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self.location = location
        self.endpoint = find_endpoint(options, location)

    def __reduce__(self) -> tuple[Any, ...]:
        """With the secrets, which `Options` alone leave out: executors need them."""
        return _rebuild, (dict(self._options), self.location)

    @cached_property
    def client(self) -> S3Client:
        """What sends."""
        return open_client(self._options, self.location)

    def key(self, path: str) -> str:
        """The key of a path."""
        return self.location.key(path) if path else self.location.prefix

    def prefix(self, folder: str) -> str:
        """How the keys begin of what is in a folder."""
        return f"{key}/" if (key := self.key(folder)) else ""

    def ask(self, operation: str, path: str, asked: str, **arguments: Any) -> Mapping[str, Any]:
        """Send a request about the object at `path`, and again while it may help.

        Args:
            operation: As boto3's method is called.
            path: Of the object.
            asked: What is done with it, such as "read".
            arguments: Of the operation beside bucket and key.

        Raises:
            NothingThere: There is none.
            ConditionUnmet: Its condition does not hold.
        """

        def send() -> Mapping[str, Any]:
            found: Mapping[str, Any] = getattr(self.client.api, operation)(
                Bucket=self.location.bucket, Key=self.key(path), **arguments
            )
            return found

        return self.repeat(path, asked, send)

    def pages(self, operation: str, path: str, asked: str, **arguments: Any) -> Iterator[Mapping[str, Any]]:
        """The pages of a listing, each asked for when the one before was used."""
        token: Mapping[str, Any] = {}
        while True:

            def send(after: Mapping[str, Any] = token) -> Mapping[str, Any]:
                found: Mapping[str, Any] = getattr(self.client.api, operation)(
                    Bucket=self.location.bucket, **arguments, **after
                )
                return found

            page = self.repeat(path, asked, send)
            yield page
            if not page.get("IsTruncated"):
                return
            token = {given: page[told] for told, given in _TOKENS.items() if page.get(told)}

    def repeat(self, path: str, asked: str, send: Callable[[], T]) -> T:
        """What `send` gives, which may be called again: it does the same once or several times. See `ask`."""
        errors, is_doubtful = self.client.errors, False
        for pause_s in (*_PAUSES_S, None):
            try:
                return send()
            except (errors.ClientError, errors.BotoCoreError, OSError) as error:
                verdict = _judge(error)
                self._raise_final(verdict, error, path, asked=asked, is_doubtful=is_doubtful, is_last=pause_s is None)
            is_doubtful = is_doubtful or verdict is _Verdict.UNKNOWN
            self._clock.sleep(pause_s or 0.0)
        raise AssertionError("the last attempt returns or raises")

    def _raise_final(
        self, verdict: _Verdict, error: Exception, path: str, *, asked: str, is_doubtful: bool, is_last: bool
    ) -> None:
        if isinstance(error, StorageError):
            raise error
        if verdict is _Verdict.MISSING:
            raise NothingThere from error
        if verdict is _Verdict.UNMET:
            unmet = ConditionUnmet()
            unmet.is_doubtful = is_doubtful
            raise unmet from error
        if verdict is _Verdict.REFUSED or is_last:
            raise self._describe(error, path, asked) from error

    def _describe(self, error: Exception, path: str, asked: str) -> StorageError:
        """Of an error of boto3 only the status, the service's code and its kind are told."""
        status, code = _read_answer(error)
        where = f"{self.location.url(self.key(path))}{f' at {self.endpoint}' if self.endpoint else ''}"
        told = " ".join(str(part) for part in (status or "", code) if part) or type(error).__name__
        return StorageError(f"{where}: {_explain(error, asked, told)}", path=path, status=status or None, code=code)


def _rebuild(options: Mapping[str, object], location: Location) -> Bucket:
    return Bucket(Options(options), location)


_TOKENS: Final = {
    "NextContinuationToken": "ContinuationToken",
    "NextKeyMarker": "KeyMarker",
    "NextUploadIdMarker": "UploadIdMarker",
    "NextPartNumberMarker": "PartNumberMarker",
}
"""What a page tells, and how the next one is asked for."""


def _read_answer(error: Exception) -> tuple[int, str]:
    answer = getattr(error, "response", None) or {}
    status = int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
    code = str(answer.get("Error", {}).get("Code") or "")
    return status, "" if code.isdigit() else code


def _judge(error: Exception) -> _Verdict:
    status, code = _read_answer(error)
    if not status:
        return _judge_unanswered(error)
    if code in _BUSY_CODES or status in _BUSY_STATUSES:
        return _Verdict.NOT_DONE
    if status == 404 and code in _NOTHING:
        return _Verdict.MISSING
    if status == 412:
        return _Verdict.UNMET
    is_unknown = status >= _MOST_UNANSWERED or code in ("RequestTimeout", "InternalError")
    return _Verdict.UNKNOWN if is_unknown and status != 501 else _Verdict.REFUSED


def _judge_unanswered(error: Exception) -> _Verdict:
    name = type(error).__name__
    if name in _NOT_SENT:
        return _Verdict.NOT_DONE
    if is_mistrusted(str(error)):
        return _Verdict.REFUSED
    is_setting = "Credential" in name or "Token" in name or "Validation" in name or "Invalid" in name
    return _Verdict.REFUSED if is_setting or isinstance(error, StorageError) else _Verdict.UNKNOWN


def _explain(error: Exception, asked: str, told: str) -> str:
    status, code = _read_answer(error)
    if getattr(error, "operation_name", "") == "AssumeRole":
        return f"the role hoodie.aws.role.arn cannot be assumed ({told}); mend its name, or who may assume it"
    if not status and ("Credential" in type(error).__name__ or "Token" in type(error).__name__):
        return f"no credentials could be had ({told}); give keys, a profile, or a role to this machine"
    if not status and is_mistrusted(str(error)):
        return MISTRUSTED
    if reason := _REASONS.get(code):
        return f"{reason[0]} ({told}); {reason[1]}"
    if status in (401, 403):
        return f"the service refuses to {asked} it ({told}); grant {_RIGHTS[asked]}, or check the credentials"
    if _judge(error) is _Verdict.REFUSED:
        return f"the service cannot {asked} it ({told})"
    return f"no answer to the request to {asked} it ({told})"
