"""A base path's scheme says which storage serves it; whoever brings a storage of a scheme is asked for it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hudi_locks.errors import ConfigError, ProviderLoadError
from hudi_locks.storage import LocalStorage, Storage, open_storage, opening, register_storage


class BucketStorage(LocalStorage):
    """Stands for a storage of another scheme."""


def open_bucket(address: str, options: Mapping[str, object]) -> Storage:
    return BucketStorage(f"/buckets/{address.partition('://')[2]}", base=address)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers goes with it."""
    with monkeypatch.context() as patch:
        patch.setattr(opening, "_registered", {})
        yield


def install(folder: Path, name: str, points: str) -> None:
    """As a package that was installed in this folder."""
    (folder / f"{name}-1.0.dist-info").mkdir()
    (folder / f"{name}-1.0.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    (folder / f"{name}-1.0.dist-info" / "entry_points.txt").write_text(f"[{opening.ENTRY_POINT_GROUP}]\n{points}\n")


@pytest.mark.parametrize("path", ["/data/t", "file:/data/t", "file:///data/t/", "file://localhost/data/t", "/data/t/"])
def test_opens_local_paths_however_written(path: str) -> None:
    storage = open_storage(path)
    assert storage.address("x") == "/data/t/x"
    assert storage.base == path.rstrip("/")


def test_opens_a_relative_path_below_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    storage = open_storage("t")
    monkeypatch.chdir("/")
    assert storage.address("x") == str(tmp_path / "t" / "x")


def test_percent_signs_of_an_address_are_decoded() -> None:
    assert open_storage("file:///a%20b").address("x") == "/a b/x"


@pytest.mark.parametrize("path", ["ftp://bucket/t", "file://elsewhere/t", "file:relative", " "])
def test_other_places_are_refused_by_name(path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_storage(path)
    assert caught.value.path == path


def test_an_unknown_scheme_is_refused_with_those_that_are_served() -> None:
    register_storage("oss", open_bucket)
    with pytest.raises(
        ConfigError, match=r"scheme 'ftp'; served are plain paths and .*file, gs, hdfs, oss, s3"
    ) as caught:
        open_storage("ftp://bucket/t")
    assert caught.value.scheme == "ftp"
    assert {"file", "oss", "s3", "s3a", "abfss"} <= set(caught.value.known)


@pytest.mark.parametrize("address", ["s3://bucket/t", "S3://bucket/t"])
def test_a_registered_scheme_is_served_by_its_opener(address: str) -> None:
    register_storage("s3", open_bucket)
    storage = open_storage(address)
    assert type(storage) is BucketStorage
    assert (storage.base, storage.address("x")) == (address, "/buckets/bucket/t/x")
    assert pickle.loads(pickle.dumps(storage)).place == storage.place


def test_the_last_opener_of_a_scheme_serves_it() -> None:
    register_storage("s3", lambda address, _: LocalStorage("/old", base=address))
    register_storage("s3", open_bucket)
    assert type(open_storage("s3://bucket/t")) is BucketStorage


@pytest.mark.parametrize("scheme", ["file", "", "S3", "s3:", "s3://", "3s", "a b"])
def test_what_is_no_scheme_or_is_served_here_cannot_be_registered(scheme: str) -> None:
    with pytest.raises(ConfigError, match="cannot be registered") as caught:
        register_storage(scheme, open_bucket)
    assert caught.value.scheme == scheme


def test_a_package_that_was_installed_a_moment_ago_serves_its_scheme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "late_storage.py").write_text(
        "from hudi_locks.storage import LocalStorage\n\n\ndef open_late(address, options):\n"
        "    return LocalStorage('/late', base=address)\n"
    )
    install(tmp_path, "late", "late = late_storage:open_late")
    assert open_storage("late://x").address("y") == "/late/y"
    with pytest.raises(ConfigError, match="abfs, abfss, file, gs, hdfs, late, s3"):
        open_storage("later://x")


@pytest.mark.parametrize("target", ["no_such_module_of_a_storage:opener", "hudi_locks.storage:no_such_opener"])
def test_a_package_that_cannot_be_imported_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    install(tmp_path, "broken", f"broken = {target}")
    with pytest.raises(ProviderLoadError, match=rf"scheme 'broken' cannot be imported: .*{target}") as caught:
        open_storage("broken://x")
    assert caught.value.scheme == "broken"


def test_an_opener_that_makes_something_else_is_named() -> None:
    register_storage("s3", lambda address, _: address)  # type: ignore[arg-type, return-value]
    with pytest.raises(ConfigError, match="scheme 's3' made a str of s3://bucket/t, which is no Storage"):
        open_storage("s3://bucket/t")


def test_a_plain_path_asks_no_installed_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", None)
    assert open_storage("/data/t").base == "/data/t"
