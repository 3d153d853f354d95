"""A Hive Metastore behind TLS, with a certificate of an authority that no system knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from hudi_locks_conformance.servers import Server
from tls_proxy import open_tls_proxy

from hudi_locks import BackendRefused, ConfigError, LockManager

pytestmark = pytest.mark.servers
URIS = "hoodie.write.lock.hivemetastore.uris"
USE, CA = "hudi_locks.hive_metastore.use_ssl", "hudi_locks.hive_metastore.ca_file"


@pytest.fixture
def options(hive_metastore: Server, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Of a lock there, with the authority to trust."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with open_tls_proxy(authority, hive_metastore.port) as port:
        named = {URIS: f"thrift://127.0.0.1:{port}", "hoodie.write.lock.hivemetastore.table": tmp_path.name}
        yield {**hive_metastore.options, **named, USE: "true", CA: str(tmp_path / "ca.pem")}


def test_a_lock_is_held_by_tls_and_kept_from_others(options: dict[str, str]) -> None:
    with LockManager("hive_metastore", options) as first, LockManager("hive_metastore", options) as second:
        held = first.lock()
        assert second.try_lock() is None
        held.verify()
        held.release()
        assert second.try_lock() is not None


def test_the_site_of_hadoop_says_that_it_speaks_tls(
    options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"hive.metastore.uris": options.pop(URIS), "hive.metastore.use.SSL": "true"}
    del options[USE]
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in told.items()
    )
    (tmp_path / "hive-site.xml").write_text(f"<configuration>{properties}</configuration>")
    monkeypatch.setenv("HIVE_CONF_DIR", str(tmp_path))
    with LockManager("hive_metastore", options) as locks:
        locks.lock().release()


def test_a_certificate_that_is_not_trusted_is_told_with_the_way_out(options: dict[str, str]) -> None:
    with (
        LockManager("hive_metastore", {key: value for key, value in options.items() if key != CA}) as locks,
        pytest.raises(BackendRefused, match=r"is not trusted \(.*\): give .* by hudi_locks.hive_metastore.ca_file"),
    ):
        locks.lock()


def test_a_file_of_authorities_that_is_not_there_is_refused(options: dict[str, str]) -> None:
    with (
        LockManager("hive_metastore", {**options, CA: "/nowhere/ca.pem"}) as locks,
        pytest.raises(ConfigError, match=r"ca_file='/nowhere/ca.pem': there is no such file"),
    ):
        locks.lock()
