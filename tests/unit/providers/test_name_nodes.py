"""Where name nodes speak HTTP: by the address, by our key, by Hadoop's configuration of Spark and of this machine."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hudi_locks_providers._files import webhdfs
from hudi_locks_providers._files.name_nodes import find_name_nodes
from hudi_locks_providers._files.webhdfs import WebHdfs

from hudi_locks import ConfigError
from hudi_locks.config import Options
from hudi_locks.errors import StorageError
from hudi_locks.format.records import reading_parquet
from hudi_locks.storage import open_storage

KEY = "hudi_locks.filesystem.webhdfs_url"
NOTHING = Options({})
HTTP, HTTPS = "dfs.namenode.http-address", "dfs.namenode.https-address"
SERVICE = {
    "dfs.nameservices": "other, lake",
    "dfs.ha.namenodes.lake": "nn1, nn2",
    f"{HTTP}.lake.nn1": "one:9870",
    f"{HTTP}.lake.nn2": "two:9870",
}


@pytest.fixture(autouse=True)
def no_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    monkeypatch.setitem(sys.modules, "hdfs_native", None)


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The settings of a Spark that runs."""
    settings: dict[str, str] = {}
    context = SimpleNamespace(_jsc=SimpleNamespace(hadoopConfiguration=lambda: settings))
    monkeypatch.setitem(
        sys.modules, "pyspark", SimpleNamespace(SparkContext=SimpleNamespace(_active_spark_context=context))
    )
    return settings


def write_site(folder: Path, name: str, settings: dict[str, str]) -> None:
    body = "".join(f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items())
    (folder / name).write_text(f"<configuration>{body}</configuration>")


def addresses_of(path: str, **options: str) -> Any:
    return open_storage(path, options).addresses  # type: ignore[attr-defined]


def test_a_name_service_is_looked_up_in_spark(spark: dict[str, str]) -> None:
    spark.update(SERVICE)
    assert addresses_of("hdfs://lake/t") == ("http://one:9870", "http://two:9870")
    assert addresses_of("hdfs://lake/t", **{KEY: "http://told:1"}) == ("http://told:1",)


def test_a_name_service_is_looked_up_in_the_files_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_site(tmp_path, "hdfs-site.xml", SERVICE)
    write_site(tmp_path, "core-site.xml", {"fs.defaultFS": "hdfs://lake"})
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert addresses_of("hdfs:///t") == addresses_of("hdfs://lake/t") == ("http://one:9870", "http://two:9870")


def test_what_spark_does_not_say_the_files_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: dict[str, str]
) -> None:
    write_site(tmp_path, "hdfs-site.xml", SERVICE)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    spark[f"{HTTP}.lake.nn1"] = "three:1"
    assert addresses_of("hdfs://lake/t") == ("http://three:1", "http://two:9870")


def test_a_name_service_of_one_name_node_and_of_https(spark: dict[str, str]) -> None:
    spark.update({"dfs.nameservices": "lake", f"{HTTPS}.lake": "one:9871", "dfs.http.policy": "HTTPS_ONLY"})
    assert addresses_of("hdfs://lake/t") == ("https://one:9871",)


def test_a_name_service_without_addresses_is_refused(spark: dict[str, str]) -> None:
    spark.update({key: value for key, value in SERVICE.items() if not key.endswith("nn2")})
    with pytest.raises(ConfigError, match=rf"name service lake, and no {HTTP}\.lake\.nn2; set that, or give {KEY}"):
        addresses_of("hdfs://lake/t")


@pytest.mark.parametrize(
    ("address", "default", "found"),
    [
        ("nn:5", "", "http://nn:5"),
        ("0.0.0.0:5", "", "http://nn:5"),
        ("0.0.0.0:9870", "", "http://nn:9870"),
        ("elsewhere:5", "", "http://nn:9870"),
        ("nn.example.com:5", "hdfs://nn:8020", "http://nn.example.com:5"),
        ("", "s3a://nn:8020", "http://nn:9870"),
    ],
)
def test_the_address_of_a_host(spark: dict[str, str], address: str, default: str, found: str) -> None:
    spark.update({HTTP: address, "fs.defaultFS": default})
    assert addresses_of("hdfs://nn:8020/t") == (found,)


def test_a_path_without_a_host_is_of_the_default_file_system(spark: dict[str, str]) -> None:
    spark["fs.defaultFS"] = "hdfs://nn:8020"
    assert addresses_of("hdfs:///t") == ("http://nn:9870",)
    spark["fs.defaultFS"] = "s3a://bucket"
    with pytest.raises(ConfigError, match=f"hdfs:///t names no name node; give {KEY}.*HADOOP_CONF_DIR"):
        addresses_of("hdfs:///t")


def test_a_lock_is_left_to_libhdfs_where_nothing_names_webhdfs_and_under_kerberos(spark: dict[str, str]) -> None:
    assert find_name_nodes("hdfs://lake/t", NOTHING) == ()
    spark.update(SERVICE)
    assert find_name_nodes("viewfs://lake/t", NOTHING) == ()
    assert find_name_nodes("hdfs://lake/t", NOTHING) == ("http://one:9870", "http://two:9870")
    spark["hadoop.security.authentication"] = "kerberos"
    assert find_name_nodes("hdfs://lake/t", NOTHING) == ()


def test_a_host_that_nobody_knows_says_where_to_name_it() -> None:
    with pytest.raises(StorageError, match=rf"cannot read 'a': .*{KEY}, or by hdfs-site\.xml in HADOOP_CONF_DIR"):
        open_storage("hdfs://lake.invalid/t").read("a")


def remote(kind: str, message: str) -> bytes:
    return json.dumps({"RemoteException": {"exception": kind, "message": message}}).encode()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"<html>", "WebHDFS asks for Kerberos"),
        (403, remote("SafeModeException", "Name node is in safe mode"), "SafeModeException: Name node is in safe mode"),
        (403, remote("AccessControlException", "Permission denied: user=etl"), "Permission denied: user=etl"),
    ],
)
def test_what_the_name_node_says_is_told_and_is_no_damage(
    monkeypatch: pytest.MonkeyPatch, status: int, body: bytes, said: str
) -> None:
    entry = {"pathSuffix": "", "type": "FILE", "length": 9, "modificationTime": 1, "fileId": 1}

    def send(method: str, url: str, data: bytes | None) -> tuple[int, dict[str, str], bytes]:
        found = "GETFILESTATUS" in url
        return (200, {}, json.dumps({"FileStatus": entry}).encode()) if found else (status, {}, body)

    monkeypatch.setattr(webhdfs, "_send", send)
    storage = open_storage("webhdfs://nn:9870/t")
    with pytest.raises(StorageError, match=f"cannot read 'a': {said}"):
        storage.read("a")
    with pytest.raises(StorageError, match=f"cannot read '/t/a': {said}"), reading_parquet("a base file", "a"):
        storage.open_input("a").read()


def test_threads_that_find_the_active_name_node_at_once_all_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def send(method: str, url: str, data: bytes | None) -> tuple[int, dict[str, str], bytes]:
        said = b'{"boolean": true}' if "active" in url else b'{"RemoteException": {"exception": "StandbyException"}}'
        return (200 if "active" in url else 403), {}, said

    monkeypatch.setattr(webhdfs, "_send", send)
    for _ in range(20):
        client = WebHdfs(["http://standby", "http://active"])
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(lambda _, client=client: client.delete("/a"), range(16)))
