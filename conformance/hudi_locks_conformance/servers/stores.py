"""Stores for tables, started for a demonstration and stopped after it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from hudi_locks_conformance.servers.mini_dfs import MiniDfs
from hudi_locks_conformance.servers.starting import start_server
from hudi_locks_conformance.servers.versitygw import VersityGw

__all__ = ["serve_hdfs", "serve_s3"]

_BASE: Final = "hoodie.base.path"


@contextmanager
def serve_s3() -> Iterator[dict[str, Any]]:
    """A bucket of versitygw."""
    with start_server(VersityGw()) as server:
        options = {name: value for name, value in server.options.items() if name != _BASE}
        yield {"base": f"{server.options[_BASE]}/{uuid.uuid4().hex}", "provider": "storage", "options": options}


@contextmanager
def serve_hdfs() -> Iterator[dict[str, Any]]:
    """A folder of an HDFS with one data node."""
    with start_server(MiniDfs()) as server:
        options = {"hoodie.fs.atomic_creation.support": "webhdfs"}
        yield {"base": f"webhdfs://127.0.0.1:{server.port}/{uuid.uuid4().hex}", "options": options}
