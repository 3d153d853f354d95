"""Stands between a client and an S3 service: counts requests by kind, and loses some of them or of their answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, unquote, urlsplit

from http_proxy import HttpProxy, Late, Request, Verdict

__all__ = ["Late", "S3Proxy", "Verdict", "run_proxy"]


class S3Proxy(HttpProxy):
    """See `HttpProxy`. Kinds are those of S3's operations, as `PutObject`; the key of a listing is where it begins."""

    def read_request(self, method: str, target: str) -> Request:
        """See `HttpProxy.read_request`."""
        parts = urlsplit(target)
        key = unquote(parts.path.lstrip("/").partition("/")[2])
        query = parse_qs(parts.query, keep_blank_values=True)
        return Request(_name_kind(method, query, key), key or query.get("prefix", [""])[0], self.upstream, target)


@contextmanager
def run_proxy(upstream: str) -> Iterator[S3Proxy]:
    """A proxy for the length of the block."""
    proxy = S3Proxy(upstream)
    try:
        yield proxy
    finally:
        proxy.close()


def _name_kind(method: str, query: dict[str, list[str]], key: str) -> str:
    """As S3's documentation calls the operation."""
    if method == "POST":
        return "DeleteObjects" if "delete" in query else _name_upload(query, "CompleteMultipartUpload")
    if method == "PUT":
        return "UploadPart" if "partNumber" in query else "PutObject"
    if method == "DELETE":
        return "AbortMultipartUpload" if "uploadId" in query else "DeleteObject"
    if method == "GET" and "uploads" in query:
        return "ListMultipartUploads"
    if method == "GET" and "uploadId" in query:
        return "ListParts"
    return f"{method.capitalize()}Object" if key else "ListObjectsV2"


def _name_upload(query: dict[str, list[str]], other: str) -> str:
    return "CreateMultipartUpload" if "uploads" in query else other
