"""Stands between a client and WebHDFS: its name node and, since answers send clients on to them, its data nodes."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit

from http_proxy import Headers, HttpProxy, Request

__all__ = ["HdfsProxy"]

_REST = "/webhdfs/v1"


class HdfsProxy(HttpProxy):
    """See `HttpProxy`. Kinds are those of WebHDFS, such as `RENAME`; of a data node, `RENAME at a data node`."""

    def read_request(self, method: str, target: str) -> Request:
        """See `HttpProxy.read_request`: the first part of a path to a data node names it."""
        del method
        node, is_data_node = self.upstream, not target.startswith(_REST)
        if is_data_node:
            node, slash, rest = target.lstrip("/").partition("/")
            target = slash + rest
        parts = urlsplit(target)
        kind = parse_qs(parts.query).get("op", [""])[0].upper()
        key = unquote(parts.path.removeprefix(_REST))
        return Request(f"{kind} at a data node" if is_data_node else kind, key, node, target)

    def amend(self, headers: Headers) -> Headers:
        """See `HttpProxy.amend`: who is sent to a data node comes here again."""
        return [(name, self._redirect(value) if name.lower() == "location" else value) for name, value in headers]

    def _redirect(self, where: str) -> str:
        parts = urlsplit(where)
        return f"{self.url}/{parts.netloc}{parts.path}?{parts.query}"
