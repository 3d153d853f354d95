"""Where the metastores are: by key, by hive-site.xml, by the running Spark."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hudi_locks_providers._hive.settings import find_addresses, uses_tls

from hudi_locks import ConfigError
from hudi_locks.config import Options, lock_keys

KEY = "hoodie.write.lock.hivemetastore.uris"
NOTHING = Options({})


@pytest.fixture(autouse=True)
def no_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HIVE_CONF_DIR", "HADOOP_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)


def write_site(folder: Path, **properties: str) -> None:
    body = "".join(
        f"<property><name>{name.replace('_', '.')}</name><value>{value}</value></property>"
        for name, value in properties.items()
    )
    folder.mkdir(exist_ok=True)
    (folder / "hive-site.xml").write_text(f"<configuration>{body}</configuration>")


def test_the_key_names_them() -> None:
    assert find_addresses(Options({KEY: "thrift://a:1, thrift://b"}), lock_keys.HIVE_URIS) == [("a", 1), ("b", 9083)]


@pytest.mark.parametrize("uri", ["a:1", "http://a:1", "thrift://", "thrift://a:port"])
def test_what_is_no_metastore_is_refused(uri: str) -> None:
    with pytest.raises(ConfigError, match="thrift://host:port"):
        find_addresses(Options({KEY: uri}), lock_keys.HIVE_URIS)


@pytest.mark.parametrize("variable", ["HIVE_CONF_DIR", "HADOOP_CONF_DIR"])
def test_hive_site_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    write_site(tmp_path, hive_metastore_uris="thrift://site:2")
    monkeypatch.setenv(variable, str(tmp_path))
    assert find_addresses(NOTHING, lock_keys.HIVE_URIS) == [("site", 2)]
    assert find_addresses(Options({KEY: "thrift://key:1"}), lock_keys.HIVE_URIS) == [("key", 1)]


def test_hive_comes_before_hadoop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("hive", "hadoop"):
        write_site(tmp_path / name, hive_metastore_uris=f"thrift://{name}:2")
        monkeypatch.setenv(f"{name.upper()}_CONF_DIR", str(tmp_path / name))
    assert find_addresses(NOTHING, lock_keys.HIVE_URIS) == [("hive", 2)]


def test_the_running_spark_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    hadoop = {"hive.metastore.uris": "thrift://spark:3"}
    context = SimpleNamespace(_jsc=SimpleNamespace(hadoopConfiguration=lambda: hadoop))
    fake = SimpleNamespace(SparkContext=SimpleNamespace(_active_spark_context=context))
    monkeypatch.setitem(sys.modules, "pyspark", fake)
    assert find_addresses(NOTHING, lock_keys.HIVE_URIS) == [("spark", 3)]


def test_kerberos_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_site(tmp_path, hive_metastore_uris="thrift://site:2", hive_metastore_sasl_enabled="true")
    monkeypatch.setenv("HIVE_CONF_DIR", str(tmp_path))
    with pytest.raises(ConfigError, match="Kerberos"):
        find_addresses(NOTHING, lock_keys.HIVE_URIS)


def test_a_metastore_that_is_named_is_taken_beside_a_site_that_asks_for_kerberos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the refusal advises; whether it speaks TLS is asked of the same site."""
    write_site(tmp_path, hive_metastore_uris="thrift://site:2", hive_metastore_sasl_enabled="true")
    monkeypatch.setenv("HIVE_CONF_DIR", str(tmp_path))
    named = Options({lock_keys.HIVE_URIS.name: "thrift://named:3"})
    assert find_addresses(named, lock_keys.HIVE_URIS) == [("named", 3)]
    assert not uses_tls(named)


def test_a_broken_site_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hive-site.xml").write_text("<configuration>")
    monkeypatch.setenv("HIVE_CONF_DIR", str(tmp_path))
    with pytest.raises(ConfigError, match=r"hive-site\.xml cannot be read"):
        find_addresses(NOTHING, lock_keys.HIVE_URIS)


def test_none_at_all_says_where_to_name_them() -> None:
    with pytest.raises(ConfigError, match="HIVE_CONF_DIR"):
        find_addresses(NOTHING, lock_keys.HIVE_URIS)
