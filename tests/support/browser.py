"""Debian's Chromium, driven as WebDriver says: enough of it to look at a page."""

from __future__ import annotations

import base64
import http.client
import json
import re
import shutil
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import pytest

__all__ = ["Browser", "need_browser"]

_PATIENCE_S = 120
_STARTED = re.compile(r"started successfully on port (\d+)")


def need_browser() -> None:
    """Skip the test where it is not there."""
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("needs a browser: sudo apt-get install -y chromium chromium-driver")


class Browser:
    """A window without a screen. A context manager.

    Args:
        folder: For what it keeps.
    """

    def __init__(self, folder: Path) -> None:
        command = ["chromedriver", "--port=0"]
        self._driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self._driver.stdout
        self._port = _read_port(self._driver.stdout)
        arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--user-data-dir={folder}"]
        wanted = {"alwaysMatch": {"goog:chromeOptions": {"args": arguments, "binary": shutil.which("chromium")}}}
        self._session = ""
        self._session = self._ask("POST", "", {"capabilities": wanted})["sessionId"]

    def show(self, url: str) -> None:
        """Go to an address."""
        self._ask("POST", "/url", {"url": url})

    def imitate(self, *, width: int, theme: str) -> None:
        """Have a window of so many pixels, 900 high, and prefer light or dark."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        features = [{"name": "prefers-color-scheme", "value": theme}]
        for name, given in (("DeviceMetricsOverride", size), ("EmulatedMedia", {"features": features})):
            self._ask("POST", "/goog/cdp/execute", {"cmd": f"Emulation.set{name}", "params": given})

    def run(self, script: str) -> Any:
        """What a function with this body returns in the page."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": []})

    def take_picture(self) -> bytes:
        """PNG of what is to be seen."""
        return base64.b64decode(self._ask("GET", "/screenshot"))

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        link = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_PATIENCE_S)
        data = None if body is None else json.dumps(body)
        place = f"/session/{self._session}".rstrip("/")
        link.request(method, f"{place}{path}", data, {"Content-Type": "application/json"})
        answer = link.getresponse()
        told = json.loads(answer.read())["value"]
        assert answer.status == 200, told
        return told

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._ask("DELETE", "")
        finally:
            self._driver.terminate()
            self._driver.wait(_PATIENCE_S)


def _read_port(said: IO[str]) -> int:
    port = next(int(found[1]) for line in said if (found := _STARTED.search(line)))
    threading.Thread(target=said.read, daemon=True).start()  # a driver whose words nobody reads would stop
    return port
