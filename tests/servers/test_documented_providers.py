"""The Python of each provider's page holds a lock, on a real service in place of the one that the page names."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_conformance.servers import Server

pytestmark = pytest.mark.servers
PAGES = Path(__file__).parents[2] / "docs" / "providers"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SERVICES = {
    "chain": ("zookeeper", "versitygw"),
    "dynamodb": ("dynamodb",),
    "filesystem": (),
    "hive_metastore": ("hive_metastore",),
    "storage": ("versitygw",),
    "zookeeper": ("zookeeper",),
}
NAMED = {"hoodie.write.lock.provider", "hoodie.table.name", "hoodie.write.lock.zookeeper.lock_key"}
"""What no service decides."""


def reach(request: pytest.FixtureRequest, names: tuple[str, ...], tmp_path: Path) -> dict[str, str]:
    """The options by which these services are reached, for a lock of one's own."""
    found = {} if names else {"hoodie.base.path": str(tmp_path)}
    for name in names:
        server: Server = request.getfixturevalue(name)
        found |= {key: value for key, value in server.options.items() if key not in NAMED}
    if "zookeeper" in names:
        found["hoodie.write.lock.zookeeper.base_path"] = f"/{uuid.uuid4().hex}"
    return found


@pytest.mark.parametrize("page", sorted(one.stem for one in PAGES.glob("*.md")))
def test_the_code_of_its_page_holds_a_lock(
    page: str, request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [block] = BLOCK.findall((PAGES / f"{page}.md").read_text(encoding="utf-8"))
    around = reach(request, SERVICES[page], tmp_path)
    names: dict[str, Any] = {"around": around}
    exec(block.replace("from_options(options)", "from_options({**options, **around})"), names)
    assert names["held"].state.name == "RELEASED"
    assert ("print(" in block) == bool(capsys.readouterr().out)
