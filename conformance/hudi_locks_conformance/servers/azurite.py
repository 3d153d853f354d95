"""azurite: Azure blobs."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import urllib.error
import urllib.request
from datetime import datetime, timezone
from email.utils import format_datetime
from pathlib import Path
from typing import ClassVar, Final

from hudi_locks import SystemClock
from hudi_locks_conformance.servers.cache import find_tool, install_npm
from hudi_locks_conformance.servers.kind import Container, Launch, ServerKind

__all__ = ["Azurite"]

_VERSION: Final = "3.35.0"
_CONTAINER: Final = "locks"
_ACCOUNT: Final = "devstoreaccount1"
_KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The emulator's own account and key, printed in its documentation."""
_API: Final = "2021-12-02"
_ANSWER_S: Final = 5.0
_SWEEP_MS: Final = 21 * 24 * 3_600_000
_SETTINGS: Final = "--silent --skipApiVersionCheck --disableTelemetry --inMemoryPersistence"


class Azurite(ServerKind):
    """azurite's blob service, with one container; in memory, so a restart forgets all."""

    name: ClassVar[str] = "azurite"
    provider: ClassVar[str] = "storage"
    container: ClassVar[Container | None] = Container(
        f"mcr.microsoft.com/azure-storage/azurite:{_VERSION}", 10000, f"azurite-blob {_SETTINGS} --blobHost 0.0.0.0"
    )

    def fetch(self) -> None:
        """See `ServerKind.fetch`."""
        find_tool("node")
        install_npm("azurite", _VERSION)

    def launch(self, folder: Path, port: int) -> Launch:
        """See `ServerKind.launch`.

        Every ten minutes azurite looks for what was overwritten. Where locks were renewed thousands of times, it
        answers nobody for minutes then, so that it is told to look every three weeks.
        """
        program = install_npm("azurite", _VERSION) / "dist" / "src" / "blob"
        patience = folder / "patience.js"
        constants = json.dumps(str(program / "utils" / "constants.js"))
        patience.write_text(f"require({constants}).DEFAULT_GC_INTERVAL_MS = {_SWEEP_MS};\n", encoding="utf-8")
        words = [find_tool("node"), "--require", str(patience), str(program / "main.js"), *_SETTINGS.split()]
        return Launch([*words, "--blobHost", "127.0.0.1", "--blobPort", str(port)])

    def is_ready(self, port: int) -> bool:
        """See `ServerKind.is_ready`: any status is an answer."""
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/{_ACCOUNT}", timeout=_ANSWER_S).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def prepare(self, port: int) -> None:
        """See `ServerKind.prepare`."""
        now = datetime.fromtimestamp(SystemClock().wall_ms() / 1000, timezone.utc)
        named = {"x-ms-date": format_datetime(now, usegmt=True), "x-ms-version": _API}
        headers = {**named, "Authorization": f"SharedKey {_ACCOUNT}:{_sign(named)}", "Content-Length": "0"}
        url = f"http://127.0.0.1:{port}/{_ACCOUNT}/{_CONTAINER}?restype=container"
        request = urllib.request.Request(url, headers=headers, method="PUT")
        urllib.request.urlopen(request, timeout=_ANSWER_S).close()  # noqa: S310

    def options(self, port: int) -> dict[str, str]:
        """See `ServerKind.options`."""
        address = f"http://127.0.0.1:{port}/{_ACCOUNT}"
        connection = f"DefaultEndpointsProtocol=http;AccountName={_ACCOUNT};AccountKey={_KEY};BlobEndpoint={address};"
        return {
            "hoodie.base.path": f"abfss://{_CONTAINER}@{_ACCOUNT}.dfs.core.windows.net/conformance",
            "hoodie.write.lock.azure.connection.string": connection,
            "hudi_locks.storage.endpoint_url": address,
            "hudi_locks.storage.allow_http": "true",
        }


def _sign(named: dict[str, str]) -> str:
    """The signature of a PUT of the container without a body, as Azure's Shared Key wants it."""
    empty = "\n" * 12
    headers = "".join(f"{name}:{value}\n" for name, value in sorted(named.items()))
    text = f"PUT{empty}{headers}/{_ACCOUNT}/{_ACCOUNT}/{_CONTAINER}\nrestype:container"
    return base64.b64encode(hmac.digest(base64.b64decode(_KEY), text.encode(), hashlib.sha256)).decode()
