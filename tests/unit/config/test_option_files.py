"""Options in files, read as Hudi reads them, and those that a machine has for all jobs."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_locks import LockManager
from hudi_locks.config import Options, add_defaults, find_defaults_file, overlay, read_keys, read_option_file
from hudi_locks.errors import ConfigError, NoEffectWarning

GOLDEN = Path(__file__).parents[2] / "golden" / "option_files"
PROVIDER = "hoodie.write.lock.provider"


@pytest.fixture
def defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Give this machine options for all jobs."""

    def give(text: str) -> Path:
        path = tmp_path / "conf" / "hudi-defaults.conf"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        monkeypatch.setenv("HUDI_CONF_DIR", str(path.parent))
        return path

    return give


def test_a_file_is_read_as_the_jvm_reads_it() -> None:
    with pytest.warns(NoEffectWarning, match="lacks a value, and changes nothing") as told:
        found = read_option_file(str(GOLDEN / "odd.conf"))
    assert [str(warning.message).partition(" of ")[0] for warning in told] == ["line 10", "line 11"]
    assert found == json.loads((GOLDEN / "jvm.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hoodie.table.name=t\n  include=other.conf", "line 2 of .* is indented, so that Hudi includes no file"),
        ("include=gone.conf", "which .* includes, cannot be read: No such file"),
        ("include=file.conf", "includes itself"),
        ("include=s3://bucket/other.conf", "scheme 's3' is not supported"),
        ("hoodie.table.name=\xff", "is no text in UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_as_it_is_meant_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "file.conf").write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=said):
        read_option_file(str(tmp_path / "file.conf"))


def test_a_line_without_a_key_is_told(tmp_path: Path) -> None:
    (tmp_path / "file.conf").write_text("= x\nhoodie.table.name=t")
    with pytest.warns(NoEffectWarning, match="line 1 of .* lacks a key"):
        assert read_option_file(str(tmp_path / "file.conf")) == {"hoodie.table.name": "t"}


def test_what_a_job_gives_counts_before_what_its_machine_gives(defaults: Callable[[str], Path]) -> None:
    path = defaults("hoodie.cleaner.policy.failed.writes LAZY\nhoodie.table.name x\nhoodie.metadata.enable=false\n")
    assert find_defaults_file() == str(path)
    found = add_defaults({"hoodie.clean.failed.writes.policy": "EAGER", "hoodie.table.name": "t"})
    assert dict(found) == {
        "hoodie.clean.failed.writes.policy": "EAGER",
        "hoodie.table.name": "t",
        "hoodie.metadata.enable": "false",
    }
    assert dict(add_defaults(None)) == read_option_file(str(path))


def test_what_has_no_meaning_for_a_job_is_left_out(defaults: Callable[[str], Path]) -> None:
    defaults("hoodie.datasource.query.type=read_optimized\nhoodie.table.name=t")
    assert dict(add_defaults({}, without=read_keys.READ_KEYS)) == {"hoodie.table.name": "t"}


def test_secrets_that_were_left_out_of_a_pickle_stay_known(defaults: Callable[[str], Path]) -> None:
    defaults("hoodie.table.name=t")
    copied = add_defaults(pickle.loads(pickle.dumps(Options({"hoodie.aws.secret.key": "s"}))))
    assert copied["hoodie.table.name"] == "t"
    with pytest.raises(ConfigError, match="was left out when these options were pickled"):
        assert copied["hoodie.aws.secret.key"]


def test_a_slip_in_the_machines_file_is_named_with_the_file(defaults: Callable[[str], Path]) -> None:
    path = defaults("hoodie.write.lock.wait_time_ms=soon")
    with pytest.raises(ConfigError, match=f"^{path}: hoodie.write.lock.wait_time_ms='soon' is no int"):
        add_defaults({})


def test_without_such_a_file_nothing_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUDI_CONF_DIR", str(tmp_path))
    with pytest.warns(NoEffectWarning, match=f"HUDI_CONF_DIR={tmp_path} has no file hudi-defaults.conf"):
        assert dict(add_defaults({"a": 1})) == {"a": "1"}
    monkeypatch.setenv("HUDI_CONF_DIR", "s3://bucket/conf")
    with pytest.raises(ConfigError, match="HUDI_CONF_DIR=s3://bucket/conf: a folder of this machine is wanted"):
        add_defaults({})


def test_a_lock_manager_goes_by_them(defaults: Callable[[str], Path], tmp_path: Path) -> None:
    defaults(f"{PROVIDER} filesystem\nhoodie.base.path {tmp_path}\nhoodie.write.lock.num_retries 7")
    with LockManager.from_options({"hoodie.write.lock.num_retries": "3"}) as manager, manager.lock():
        assert manager.options["hoodie.base.path"] == str(tmp_path)
        assert manager.policy.num_retries == 3


def test_of_two_chained_providers_each_keeps_its_own_value() -> None:
    own = {f"hudi_locks.chain.first.{PROVIDER}": "zookeeper", PROVIDER: "chain"}
    assert overlay(own, {PROVIDER: "x"}) == {**own, PROVIDER: "x"}
