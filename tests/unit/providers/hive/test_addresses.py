"""Where the metastores are: by key, by hive-site.xml, by the running Spark."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hudi_locks_providers._hive.settings import KerberosTerms, find_addresses, find_kerberos

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


SITE = {"hive_metastore_sasl_enabled": "true", "hive_metastore_kerberos_principal": "hive/_HOST@SITE"}
PRINCIPAL, USE = "hudi_locks.hive_metastore.principal", "hudi_locks.hive_metastore.use_kerberos"


def test_without_a_word_of_it_nobody_logs_in() -> None:
    assert find_kerberos(NOTHING) is None


@pytest.mark.parametrize("prefix", ["hive_", ""])
def test_the_site_asks_for_a_login_also_where_a_key_names_the_metastore(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    """As with Hive's own client; Hive 3 has other names."""
    write_site(tmp_path, **{name.replace("hive_", prefix, 1): value for name, value in SITE.items()})
    monkeypatch.setenv("HIVE_CONF_DIR", str(tmp_path))
    said = KerberosTerms("hive/_HOST@SITE", ("auth", "auth-int", "auth-conf"))
    for options in (NOTHING, Options({KEY: "thrift://named:3"})):
        assert find_kerberos(options) == said
    assert find_kerberos(Options({PRINCIPAL: "hive/h@KEY"})) == replace(said, principal="hive/h@KEY")
    assert find_kerberos(Options({USE: "false", KEY: "thrift://named:3"})) is None


@pytest.mark.parametrize("given", [{PRINCIPAL: "hive/h@KEY"}, {PRINCIPAL: "hive/h@KEY", USE: "true"}])
def test_a_key_asks_for_a_login(given: dict[str, str]) -> None:
    found = find_kerberos(Options(given))
    assert found is not None
    assert found.principal == "hive/h@KEY"


def test_a_login_needs_a_principal_and_no_contradiction() -> None:
    with pytest.raises(ConfigError, match=rf"no principal of theirs is named: give {PRINCIPAL}=hive/_HOST@REALM"):
        find_kerberos(Options({USE: "true"}))
    with pytest.raises(ConfigError, match=rf"{PRINCIPAL} is given, but {USE} is false: leave one out"):
        find_kerberos(Options({USE: "false", PRINCIPAL: "hive/h@KEY"}))


@pytest.mark.parametrize("file", ["hive-site.xml", "core-site.xml"])
def test_connections_are_guarded_as_hadoop_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    write_site(tmp_path, hadoop_rpc_protection="privacy, Integrity")
    (tmp_path / "hive-site.xml").rename(tmp_path / file)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    by_tls = {PRINCIPAL: "hive/h@KEY", "hudi_locks.hive_metastore.use_ssl": "true"}
    assert find_kerberos(Options({PRINCIPAL: "hive/h@KEY"})) == KerberosTerms("hive/h@KEY", ("auth-conf", "auth-int"))
    assert find_kerberos(Options(by_tls)) == KerberosTerms("hive/h@KEY", ("auth", "auth-int", "auth-conf"))


def test_a_protection_that_hadoop_does_not_have_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_site(tmp_path, hadoop_rpc_protection="private")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with pytest.raises(ConfigError, match="'private' is none of authentication, integrity, privacy"):
        find_kerberos(Options({PRINCIPAL: "hive/h@KEY"}))


def test_a_broken_site_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hive-site.xml").write_text("<configuration>")
    monkeypatch.setenv("HIVE_CONF_DIR", str(tmp_path))
    with pytest.raises(ConfigError, match=r"hive-site\.xml cannot be read"):
        find_addresses(NOTHING, lock_keys.HIVE_URIS)


def test_none_at_all_says_where_to_name_them() -> None:
    with pytest.raises(ConfigError, match="HIVE_CONF_DIR"):
        find_addresses(NOTHING, lock_keys.HIVE_URIS)
