"""fake-gcs-server: Google Cloud Storage in memory, behind a gateway that speaks the XML API."""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import ClassVar, Final

from hudi_locks_conformance.servers.cache import install_go
from hudi_locks_conformance.servers.kind import Launch, ServerKind
from hudi_locks_conformance.servers.starting import find_free_port

__all__ = ["FakeGcs"]

_PACKAGE: Final = "github.com/fsouza/fake-gcs-server@v1.56.1"
_BUCKET: Final = "locks"
_ANSWER_S: Final = 2.0


class FakeGcs(ServerKind):
    """fake-gcs-server, with one bucket; in memory, so a restart forgets all."""

    name: ClassVar[str] = "fake-gcs-server"
    provider: ClassVar[str] = "storage"

    def fetch(self) -> None:
        """See `ServerKind.fetch`."""
        install_go("fake-gcs-server", _PACKAGE)

    def launch(self, folder: Path, port: int) -> Launch:  # noqa: ARG002  # it keeps nothing
        """See `ServerKind.launch`."""
        program = str(install_go("fake-gcs-server", _PACKAGE))
        module = "hudi_locks_conformance.servers.gcs_gateway"
        words = [sys.executable, "-m", module, program, str(port), str(find_free_port())]
        return Launch(words, {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)})

    def is_ready(self, port: int) -> bool:
        """See `ServerKind.is_ready`."""
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/storage/v1/b?project=p", timeout=_ANSWER_S).close()
        except OSError:
            return False
        return True

    def prepare(self, port: int) -> None:
        """See `ServerKind.prepare`."""
        url, body = f"http://127.0.0.1:{port}/storage/v1/b?project=p", json.dumps({"name": _BUCKET}).encode()
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=_ANSWER_S).close()  # noqa: S310

    def options(self, port: int) -> dict[str, str]:
        """See `ServerKind.options`."""
        return {
            "hoodie.base.path": f"gs://{_BUCKET}/conformance",
            "hudi_locks.storage.endpoint_url": f"http://127.0.0.1:{port}",
            "hudi_locks.storage.allow_http": "true",
            "hudi_locks.storage.skip_signature": "true",
        }
