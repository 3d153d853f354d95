"""From a config string to a provider class."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hudi_locks_providers.filesystem import FileSystemLockProvider
from hudi_locks_providers.in_process import InProcessLockProvider
from hudi_locks_providers.noop import NoopLockProvider

from hudi_locks import Capability, LockProvider, ProviderLoadError
from hudi_locks.lock import ENTRY_POINT_GROUP, available_providers, load_provider_class
from hudi_locks.lock.aliases import BUNDLED, EXTRAS, JAVA_CLASSES

JAVA = "org.apache.hudi.client.transaction.lock."


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A module of somebody else's, with the source given by the parameter."""
    name = f"stranger_{abs(hash(request.param))}"
    (tmp_path / f"{name}.py").write_text(request.param)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("filesystem", FileSystemLockProvider),
        ("in_process", InProcessLockProvider),
        ("noop", NoopLockProvider),
        ("hudi_locks_providers.filesystem:FileSystemLockProvider", FileSystemLockProvider),
        ("hudi_locks_providers.filesystem.FileSystemLockProvider", FileSystemLockProvider),
        (" filesystem ", FileSystemLockProvider),
        (JAVA + "FileSystemBasedLockProvider", FileSystemLockProvider),
        (JAVA + "InProcessLockProvider", InProcessLockProvider),
        (JAVA + "NoopLockProvider", NoopLockProvider),
    ],
)
def test_every_way_of_naming_a_provider(name: str, kind: type[LockProvider]) -> None:
    assert load_provider_class(name) is kind
    assert load_provider_class(kind) is kind


def test_tables_are_sorted_and_without_doubles() -> None:
    for table in (BUNDLED, JAVA_CLASSES, EXTRAS):
        names = [name for name, _ in table]
        assert names == sorted(set(names))


def test_the_distribution_declares_the_bundled_providers_as_entry_points() -> None:
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"][ENTRY_POINT_GROUP] == dict(BUNDLED)


def test_bundled_providers_are_listed() -> None:
    assert {"filesystem", "in_process", "noop"} <= set(available_providers())


def test_a_provider_that_was_installed_a_moment_ago_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ProviderLoadError, match="no lock provider is called 'late'"):
        load_provider_class("late")
    (tmp_path / "late-1.0.dist-info").mkdir()
    (tmp_path / "late-1.0.dist-info" / "METADATA").write_text("Name: late\nVersion: 1.0\n")
    points = f"[{ENTRY_POINT_GROUP}]\nlate = {NoopLockProvider.__module__}:NoopLockProvider\n"
    (tmp_path / "late-1.0.dist-info" / "entry_points.txt").write_text(points)
    assert load_provider_class("late") is NoopLockProvider


def test_what_is_installed_is_read_once_for_known_names_and_never_for_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    load_provider_class("filesystem")
    monkeypatch.setattr("importlib.metadata.entry_points", None)
    assert load_provider_class("filesystem") is FileSystemLockProvider
    monkeypatch.syspath_prepend("/elsewhere")
    assert load_provider_class("hudi_locks_providers.noop:NoopLockProvider") is NoopLockProvider


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("filesytem", "did you mean filesystem"),
        ("FileSystemBasedLockProvider", "did you mean .*FileSystemBasedLockProvider"),
        (JAVA + "FileSytemBasedLockProvider", "did you mean org.apache.hudi"),
        ("quite something else", "did you mean .*filesystem or .*in_process"),
        ("hudi_locks_providers.filesystem:FileSystemProvider", "did you mean .*:FileSystemLockProvider"),
        ("no_such_package.module:Class", "needs no_such_package, which is not installed|cannot be imported"),
        ("hudi_locks.lock.provider:LockProvider", "is abstract: it does not define close, holder"),
        ("hudi_locks.lock:LockScope", "not a class of LockProvider"),
        ("hudi_locks.lock:load_provider_class", "is a function, not a class"),
        ("org.apache.hudi.hive.HiveMetastoreBasedLockProviderX", "did you mean .*Hive"),
    ],
)
def test_what_cannot_be_loaded_says_why(name: str, said: str) -> None:
    with pytest.raises(ProviderLoadError, match=said):
        load_provider_class(name)


@pytest.mark.parametrize("module", ["import kazoo_missing_here", "import boto3_gone"], indirect=True)
def test_a_module_that_lacks_something_names_it(module: str) -> None:
    with pytest.raises(ProviderLoadError, match=r"needs \w+, which is not installed: pip install \w+"):
        load_provider_class(f"{module}:Any")


def test_a_missing_extra_gets_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "kazoo", None)
    (tmp_path / "needs_zookeeper.py").write_text("import kazoo\n")
    with pytest.raises(ProviderLoadError, match=r"needs kazoo: pip install 'hudi-locks\[zookeeper\]'"):
        load_provider_class("needs_zookeeper:Any")


def test_a_capability_that_is_required_and_not_claimed_is_refused() -> None:
    assert load_provider_class("filesystem", require={Capability.FENCING}) is FileSystemLockProvider
    with pytest.raises(ProviderLoadError, match="does not claim CLOCK_FREE, FAIR") as caught:
        load_provider_class("filesystem", require={Capability.FAIR, Capability.CLOCK_FREE})
    assert caught.value.missing == ["CLOCK_FREE", "FAIR"]
