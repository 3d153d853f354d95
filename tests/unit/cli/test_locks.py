"""What a person meets who reads an error and types the next command."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hudi_locks import AcquireTimeout, LockManager, LockScope
from hudi_locks.cli.options import Given
from hudi_locks.storage import LocalStorage
from hudi_locks.table import Table, TableConfig

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[LockManager]:
    options = {"hoodie.write.lock.provider": "filesystem", "hoodie.base.path": str(tmp_path / "my table")}
    manager = LockManager.from_options(options, application="nightly etl")
    yield manager
    manager.close()


def test_show_tells_the_holder(hudi_locks: Run, manager: LockManager, tmp_path: Path) -> None:
    Table.create(LocalStorage(str(tmp_path / "my table")), TableConfig("t", ("id",)))
    where = (str(tmp_path / "my table"), "--provider", "filesystem")
    assert hudi_locks("show", *where) == (0, "nobody holds the lock on table\n", "")
    assert hudi_locks("show", *where, "--json") == (0, "null\n", "")
    with manager.lock():
        status, out, _ = hudi_locks("show", *where)
        told = json.loads(hudi_locks("show", *where, "--json")[1])
    assert status == 0
    assert "nightly etl" in out
    assert "never by itself" in out
    assert told["key"].endswith("my table/.hoodie/lock")
    assert told["token"] in out


def test_the_command_in_the_error_works_as_it_is(hudi_locks: Run, manager: LockManager, tmp_path: Path) -> None:
    scope = LockScope.file_group("month=1/day=2", "f-0")
    with LockManager("filesystem", manager.options) as other, manager.lock(scope):  # noqa: SIM117  # one raises
        with pytest.raises(AcquireTimeout) as caught:
            other.lock(scope, timeout_s=0)
    with manager.lock(scope):
        status, out, _ = hudi_locks(*shlex.split(caught.value.command)[1:])
    assert status == 0
    assert "nightly etl" in out


def test_unlock_removes_what_was_shown_and_nothing_else(hudi_locks: Run, manager: LockManager, tmp_path: Path) -> None:
    where = (str(tmp_path / "my table"), "-p", "filesystem")
    manager.lock()
    holder = manager.holder()
    assert holder is not None
    status, _, err = hudi_locks("unlock", *where, "--if-token", "another")
    assert status == 1
    assert f"it is held under {holder.token} by nightly etl" in err
    status, out, _ = hudi_locks("unlock", *where, "--if-token", holder.token)
    assert (status, out) == (0, f"removed the hold {holder.token} on table\n")
    status, _, err = hudi_locks("unlock", *where, "--if-token", holder.token)
    assert status == 1
    assert "nobody holds it" in err


def test_programs_learn_whether_a_hold_was_removed(hudi_locks: Run, manager: LockManager, tmp_path: Path) -> None:
    where = (str(tmp_path / "my table"), "-p", "filesystem", "--json")
    manager.lock()
    holder = manager.holder()
    assert holder is not None
    status, out, _ = hudi_locks("unlock", *where, "--if-token", "another")
    told = json.loads(out)
    assert (status, told["removed"], told["holder"]["token"]) == (1, False, holder.token)
    status, out, err = hudi_locks("unlock", *where, "--if-token", holder.token)
    assert (status, json.loads(out), err) == (0, {"removed": True, "holder": None}, "")


def test_unlock_without_a_token_is_a_wrong_command_line(hudi_locks: Run) -> None:
    status, _, err = hudi_locks("unlock", "/t", "-p", "filesystem")
    assert status == 2
    assert "--if-token" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "/t"), "error: which lock provider? give --provider"),
        (("show", "/t", "-p", "filesytem"), "error: no lock provider is called 'filesytem'; did you mean filesystem"),
        (("show", "/t", "-p", "filesystem", "-o", "path"), "error: --option path is not of the form key=value"),
        (("show", "/t", "-p", "filesystem", "-o", "pth=1"), "neither a Hudi key nor a short name of the provider"),
        (("show", "-p", "filesystem"), "error: the filesystem lock provider needs"),
        (("show", "/t", "-p", "filesystem", "-o", "expire=soon"), "expire='soon' is no int"),
    ],
)
def test_a_wrong_configuration_is_one_line_and_status_2(hudi_locks: Run, words: tuple[str, ...], said: str) -> None:
    status, out, err = hudi_locks(*words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_failure_of_the_service_is_one_line_and_status_1(hudi_locks: Run, tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    status, _, err = hudi_locks("show", "-p", "filesystem", "-o", f"path={tmp_path}")
    assert status == 1
    assert err == f"error: {tmp_path}/lock: Is a directory\n"


def test_all_locks_of_tables_are_listed(hudi_locks: Run, tmp_path: Path, manager: LockManager) -> None:
    table, other = str(tmp_path / "my table"), str(tmp_path / "other")
    words = ("ls", table, "-p", "filesystem")
    with manager.lock(), manager.lock(LockScope.file_group("2024/01", "f1")):
        listed = json.loads(hudi_locks(*words, "--json")[1])
        status, out, _ = hudi_locks(*words)
        (tmp_path / "other" / ".hoodie").mkdir(parents=True)
        (tmp_path / "other" / ".hoodie" / "lock").write_text('{"lockThreadName": "of a JVM"}')
        both = hudi_locks("ls", table, other, "-p", "filesystem")[1]
    assert [(one["table"], one["scope"], one["owner"]["application"]) for one in listed] == [
        (table, "table", "nightly etl"),
        (table, "2024/01/f1", "nightly etl"),
    ]
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == ["lock", "table", "2024/01/f1"]
    assert both.count(table) == 4  # beside each key too
    assert f"{other}/.hoodie/lock" in both
    assert hudi_locks("ls", "-p", "filesystem", "-o", f"hoodie.base.path={tmp_path}/x") == (
        0,
        "nobody holds a lock\n",
        "",
    )


def test_a_provider_that_cannot_list_is_said_to_be_one(hudi_locks: Run, tmp_path: Path) -> None:
    status, out, err = hudi_locks("ls", "-p", "noop", "-o", f"hoodie.base.path={tmp_path}")
    assert (status, out) == (0, "nobody holds a lock\n")
    assert err == "warning: NoopLockProvider lists no locks: those of file groups are not looked for\n"


def test_showing_makes_nothing(hudi_locks: Run, tmp_path: Path) -> None:
    where = ("-o", f"hoodie.base.path={tmp_path / 'later'}")
    assert hudi_locks("show", *where, "-p", "filesystem") == (0, "nobody holds the lock on table\n", "")
    assert list(tmp_path.iterdir()) == []


def test_a_properties_file_of_a_java_writer_works(hudi_locks: Run, tmp_path: Path, manager: LockManager) -> None:
    java = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    file = tmp_path / "writer.properties"
    file.write_text(f"hoodie.write.lock.provider={java}\nhoodie.base.path={tmp_path / 'my table'}\n")
    with manager.lock():
        status, out, _ = hudi_locks("show", "--config", str(file))
    assert status == 0
    assert "nightly etl" in out


def test_providers_are_listed_with_their_claims(hudi_locks: Run) -> None:
    status, out, _ = hudi_locks("providers")
    assert status == 0
    assert "SCOPE_HOSTS" in out
    listed = json.loads(hudi_locks("providers", "--json")[1])
    assert "FENCING" in listed["filesystem"]
    assert listed["noop"] == []


def test_config_explains_the_worst_case_and_hides_secrets(hudi_locks: Run) -> None:
    words = ("config", "/t", "-p", "filesystem", "-o", "hoodie.aws.secret.key=abc", "-o", "expire=5")
    status, out, _ = hudi_locks(*words)
    assert status == 0
    assert "A writer gives up after at most 55.2 minutes: 51 attempts" in out
    assert "abc" not in out
    told = json.loads(hudi_locks(*words, "--json")[1])
    assert told["worst_case_s"] == 3310
    assert told["options"]["hoodie.write.lock.filesystem.expire"] == "5"
    assert told["options"]["hoodie.write.lock.wait_time_ms"] == "60000"


def test_config_says_where_each_value_was_given(
    hudi_locks: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, job = tmp_path / "hudi-defaults.conf", tmp_path / "job.properties"
    waits = "hoodie.write.lock.wait_time_ms"
    machine.write_text(f"hoodie.write.lock.provider filesystem\n{waits} 1\nhoodie.write.lock.num_retries 1")
    job.write_text(f"{waits}=2\nhoodie.write.lock.client.num_retries=2\nhoodie.cleaner.policy.failed.writes=LAZY")
    monkeypatch.setenv("HUDI_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("HOODIE_WRITE_LOCK_WAIT_TIME_MS", "3")
    monkeypatch.setenv("HOODIE_WRITE_LOCK_CLIENT_NUM_RETRIES", "3")
    words = ("config", "/t", "--props", str(job), "-o", f"{waits}=4")
    status, out, _ = hudi_locks(*words, "--json")
    told = json.loads(out)
    assert status == 0
    assert told["origins"] == {
        "hoodie.base.path": "KEY",
        "hoodie.clean.failed.writes.policy": f"{job}, as hoodie.cleaner.policy.failed.writes",
        "hoodie.write.lock.client.num_retries": "HOODIE_WRITE_LOCK_CLIENT_NUM_RETRIES",
        "hoodie.write.lock.client.wait_time_ms_between_retry": "default",
        "hoodie.write.lock.max_wait_time_ms_between_retry": "default",
        "hoodie.write.lock.num_retries": str(machine),
        "hoodie.write.lock.provider": str(machine),
        "hoodie.write.lock.wait_time_ms": "--option",
        "hoodie.write.lock.wait_time_ms_between_retry": "default",
    }
    assert told["options"][waits] == "4"
    assert "--option" in hudi_locks(*words)[1]


def test_a_slip_in_a_variable_of_the_environment_is_refused(hudi_locks: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOODIE_WRITE_LOCK_WAIT_TIME_M", "3")
    status, _, err = hudi_locks("config", "/t", "-p", "filesystem")
    assert status == 2
    assert err.endswith("is no known key; did you mean hoodie.write.lock.wait_time_ms?\n")


def test_what_was_given_shows_no_secret() -> None:
    assert "s3cret" not in repr(Given({"hoodie.aws.secret.key": "s3cret"}, {"hoodie.aws.secret.key": "--option"}))


def test_help_lists_commands_and_imports_no_spark() -> None:
    script = (
        "import sys\nfrom hudi_locks.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as error:\n    assert not error.code\n"
        "assert not [name for name in sys.modules if name.startswith(('pyspark', 'pyarrow'))], 'heavy'\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for command in ("show", "unlock", "providers", "config"):
        assert command in done.stdout


def test_a_providers_own_keys_are_taken_by_their_full_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hudi_locks: Callable[..., tuple[int, str, str]]
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "examples" / "my_lock_provider"))
    words = ("conformance", "-p", "my_lock_provider:SqliteLockProvider", "--only", "A1")
    status, out, err = hudi_locks(*words, "-o", f"my.sqlite.file={tmp_path / 'locks.db'}")
    assert (status, err) == (0, ""), out
    status, _, err = hudi_locks(*words, "-o", "my.sqlite.fil=x")
    assert status == 2
    assert "neither a Hudi key nor a short name" in err
