"""versitygw: S3 over a folder."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path
from typing import ClassVar, Final

from hudi_locks_conformance.servers.cache import install_go
from hudi_locks_conformance.servers.kind import Launch, ServerKind

__all__ = ["VersityGw"]

_PACKAGE: Final = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
_KEY: Final = "lockstest"
_BUCKET: Final = "locks"
_ANSWER_S: Final = 2.0


class VersityGw(ServerKind):
    """versitygw, with one bucket; honours If-None-Match and If-Match. A process only: its image makes no bucket."""

    name: ClassVar[str] = "versitygw"
    provider: ClassVar[str] = "storage"

    def fetch(self) -> None:
        """See `ServerKind.fetch`."""
        install_go("versitygw", _PACKAGE)

    def launch(self, folder: Path, port: int) -> Launch:
        """See `ServerKind.launch`; a folder of its data is a bucket."""
        (folder / "data" / _BUCKET).mkdir(parents=True, exist_ok=True)
        words = [str(install_go("versitygw", _PACKAGE)), "--quiet", "--port", f"127.0.0.1:{port}", "posix"]
        return Launch([*words, str(folder / "data")], {"ROOT_ACCESS_KEY": _KEY, "ROOT_SECRET_KEY": _KEY})

    def is_ready(self, port: int) -> bool:
        """See `ServerKind.is_ready`: any status is an answer."""
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=_ANSWER_S).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def options(self, port: int) -> dict[str, str]:
        """See `ServerKind.options`."""
        return {
            "hoodie.base.path": f"s3a://{_BUCKET}/conformance",
            "hoodie.aws.access.key": _KEY,
            "hoodie.aws.secret.key": _KEY,
            "hudi_locks.storage.endpoint_url": f"http://127.0.0.1:{port}",
            "hudi_locks.storage.allow_http": "true",
        }
