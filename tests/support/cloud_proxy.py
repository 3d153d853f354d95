"""Stands between a client and a service of objects, Azure's or Google's, and counts its requests by kind."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit

from http_proxy import HttpProxy, Request

__all__ = ["CloudProxy"]


class CloudProxy(HttpProxy):
    """See `HttpProxy`. Kinds are methods, but for listings: `LIST`, whose key is the prefix.

    Args:
        upstream: Address of the service.
        root: How paths begin before the name of an object: the bucket, or account and container.
    """

    def __init__(self, upstream: str, root: str) -> None:
        super().__init__(upstream)
        self._root = root

    def read_request(self, method: str, target: str) -> Request:
        """See `HttpProxy.read_request`."""
        parts = urlsplit(target)
        key = unquote(parts.path).removeprefix(f"/{self._root}").lstrip("/")
        query = parse_qs(parts.query, keep_blank_values=True)
        kind = "LIST" if method == "GET" and not key else method
        return Request(kind, key or query.get("prefix", [""])[0], self.upstream, target)
