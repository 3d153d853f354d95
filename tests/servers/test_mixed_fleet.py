"""The properties that docs/mixed-fleet.md gives to writers of both kinds, with a real ZooKeeper."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from hudi_locks_conformance.servers import Server

from hudi_locks import LockManager
from hudi_locks.config import read_option_file

pytestmark = pytest.mark.servers
PAGE = Path(__file__).parents[2] / "docs" / "mixed-fleet.md"


def test_they_name_one_lock_for_all(zookeeper: Server, tmp_path: Path) -> None:
    _, _, rest = PAGE.read_text(encoding="utf-8").partition("```properties\n")
    file = tmp_path / "hudi-defaults.conf"
    file.write_text(rest.partition("```")[0], encoding="utf-8")
    host, _, port = zookeeper.options["hoodie.write.lock.zookeeper.url"].partition(":")
    options = {
        **read_option_file(str(file)),
        "hoodie.base.path": "/data/trips",
        "hoodie.write.lock.zookeeper.url": host,
        "hoodie.write.lock.zookeeper.port": port,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        with LockManager.from_options(options) as manager, manager.lock() as held:
            held.check()
            with LockManager("zookeeper", options) as other:
                assert other.try_lock() is None
                assert other.holder() is not None
