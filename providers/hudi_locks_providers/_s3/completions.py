"""Completes uploads: what each file of a commit takes while the lock is held, at half of the processor time of boto3.

boto3 is asked once for a bucket. The way in which it asked (address, headers, signature) serves all others.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from xml.sax.saxutils import escape

__all__ = ["Completions"]

_OPERATION: Final = "CompleteMultipartUpload"
_NAMESPACE: Final = "http://s3.amazonaws.com/doc/2006-03-01/"
_OF_ONE_REQUEST: Final = frozenset({"amz-sdk-invocation-id", "amz-sdk-request", "content-length"})
_PLAIN_SIGNATURES: Final = frozenset({"v4", "s3v4"})
_ERROR: Final = re.compile(rb"<Error[\s/>]")
_CODE: Final = re.compile(rb"<Code>\s*([^<]*?)\s*</Code>")


@dataclass(frozen=True)
class _Way:
    """How boto3 sent a request, as the hook before its signature tells.

    Attributes:
        address: Of the bucket, with a slash at its end.
        headers: Those that every such request has.
        signer: What knows the credentials; None where requests are not signed.
        signing: What the signer is told.
    """

    address: str
    headers: Mapping[str, str]
    signer: Any
    signing: Mapping[str, str]


class Completions:
    """The completions that go through one client of boto3. Thread-safe.

    Args:
        api: The client.
    """

    def __init__(self, api: Any) -> None:
        self._api = api
        self._http: Any = api._endpoint.http_session  # noqa: SLF001  # with its proxies, certificates and timeouts
        self._errors = importlib.import_module("botocore.exceptions")
        self._requests = importlib.import_module("botocore.awsrequest")
        self._encode = importlib.import_module("botocore.utils").percent_encode
        self._ways: dict[str, _Way] = {}
        self._seen = threading.local()
        api.meta.events.register(f"before-sign.s3.{_OPERATION}", self._note)

    def complete(self, bucket: str, key: str, *, upload: str, parts: Sequence[str]) -> None:
        """Make the object of the parts, if there is none. It is sent once; the errors are boto3's.

        Args:
            bucket: Its name.
            key: Of the object.
            upload: Its id.
            parts: Their tags, in order.
        """
        if (way := self._ways.get(bucket)) is None:
            self._ask_boto(bucket, key, upload=upload, parts=parts)
        else:
            self._send(way, self._place(key, upload), body=_encode_parts(parts))

    def _ask_boto(self, bucket: str, key: str, *, upload: str, parts: Sequence[str]) -> None:
        listed = [{"PartNumber": number, "ETag": f'"{tag}"'} for number, tag in enumerate(parts, 1)]
        told = {"UploadId": upload, "MultipartUpload": {"Parts": listed}, "IfNoneMatch": "*"}
        self._seen.way = None
        self._api.complete_multipart_upload(Bucket=bucket, Key=key, **told)
        way, place = self._seen.way, self._place(key, upload)
        if way is not None and way.address.endswith(place):
            self._ways[bucket] = replace(way, address=way.address.removesuffix(place))

    def _place(self, key: str, upload: str) -> str:
        return f"{self._encode(key, safe='/~')}?uploadId={self._encode(upload)}"

    def _note(self, request: Any, signature_version: Any, request_signer: Any, **told: Any) -> None:
        """Keep how boto3 is about to send, unless its signature needs more than credentials."""
        is_signed = isinstance(signature_version, str)
        if is_signed and signature_version not in _PLAIN_SIGNATURES:
            self._seen.way = None
            return
        given = request.context.get("signing", {})
        signing = {
            "signing_name": given.get("signing_name") or told["signing_name"],
            "region_name": given.get("region") or told["region_name"],
            "signature_version": signature_version,
        }
        headers = {name: _decode(value) for name, value in request.headers.items()}
        lasting = {name: value for name, value in headers.items() if name.lower() not in _OF_ONE_REQUEST}
        self._seen.way = _Way(request.url, lasting, request_signer if is_signed else None, signing)

    def _send(self, way: _Way, place: str, *, body: bytes) -> None:
        request = self._requests.AWSRequest("POST", f"{way.address}{place}", data=body, headers=dict(way.headers))
        if way.signer is not None:
            way.signer.get_auth_instance(**way.signing).add_auth(request)
        answer = self._http.send(request.prepare())
        self._refuse(answer.status_code, answer.content)

    def _refuse(self, status: int, content: bytes) -> None:
        """S3 begins to answer with 200 before it knows how the request ends."""
        if status == 200 and content.strip() and not _ERROR.search(content):
            return
        found = _CODE.search(content)
        told = {"Code": found[1].decode() if found else ""}
        answer = {"Error": told, "ResponseMetadata": {"HTTPStatusCode": 500 if status == 200 else status}}
        raise self._errors.ClientError(answer, _OPERATION)


def _decode(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _encode_parts(parts: Sequence[str]) -> bytes:
    """A tag is hexadecimal digits and a number, or whatever text a service makes of it."""
    listed = (
        f'<Part><PartNumber>{number}</PartNumber><ETag>"{escape(tag)}"</ETag></Part>'
        for number, tag in enumerate(parts, 1)
    )
    return f'<{_OPERATION} xmlns="{_NAMESPACE}">{"".join(listed)}</{_OPERATION}>'.encode()
