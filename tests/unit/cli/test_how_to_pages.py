"""The how-to pages tell the truth: their options are honoured, their code runs, their commands are taken."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.cli.main import load_commands
from hudi_locks.config import Options, find_key, read_option_file
from hudi_locks.format import CommitMetadata
from hudi_locks.lock import LockManager, Owner
from hudi_locks.storage import open_storage
from hudi_locks.table import Table, TableConfig
from hudi_locks.transaction import Transactions

Run = Callable[..., tuple[int, str, str]]
DOCS = Path(__file__).parents[3] / "docs"
PAGES = ("kubernetes", "managed-clusters", "migrate-a-lock", "tables-on-stores")
BLOCK = re.compile(r'^( *)```(\w+)(?: title="([^"]+)")?\n(.*?)^\1```$', re.MULTILINE | re.DOTALL)
KNOWN = ("bash", "console", "dockerfile", "properties", "python", "yaml")


def find_blocks(page: str, kind: str) -> list[tuple[str, str]]:
    """Title and text of each block of a kind."""
    found = BLOCK.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))
    return [
        (title, re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)) for indent, of, title, text in found if of == kind
    ]


def read_yaml(page: str) -> list[Any]:
    yaml = pytest.importorskip("yaml", reason="needs pyyaml")
    return [yaml.safe_load(text) for _, text in find_blocks(page, "yaml")]


OPTION_FILES = [(page, text) for page in PAGES for _, text in find_blocks(page, "properties")]


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_of_a_kind_that_is_checked(page: str) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    kinds = [kind for _, kind, _, _ in BLOCK.findall(text)]
    assert text.count("```") == 2 * len(kinds)
    assert set(kinds) <= set(KNOWN)


def read_options(text: str, folder: Path) -> Options:
    file = folder / "hudi-defaults.conf"
    file.write_text(text, encoding="utf-8")
    return Options(read_option_file(str(file)))


def list_others(options: Options) -> list[str]:
    """Those that are not known, or not honoured as they are given."""
    keys = {name: find_key(name) for name in options}
    return [n for n, key in keys.items() if key is None or key.effect != "honoured" or options.find(key) is None]


@pytest.mark.parametrize(("page", "text"), OPTION_FILES)
def test_options_of_a_page_are_honoured(page: str, text: str, tmp_path: Path) -> None:
    options = read_options(text, tmp_path)
    assert options, page
    assert list_others(options) == [], page


def test_options_in_a_config_map_are_honoured(tmp_path: Path) -> None:
    [text] = [one["data"]["hudi-defaults.conf"] for one in read_yaml("kubernetes") if one["kind"] == "ConfigMap"]
    options = read_options(text, tmp_path)
    assert options
    assert list_others(options) == []


def test_a_cron_job_runs_a_command_that_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [job] = [one for one in read_yaml("kubernetes") if one["kind"] == "CronJob"]
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    program, name, *words = container["args"]
    assert program == "hudi-locks"
    file = tmp_path / "hudi-defaults.conf"
    file.touch()
    given = [str(file) if word.endswith("/hudi-defaults.conf") else word for word in words]
    assert given != words
    assert load_commands()[name].make_context(name, given).params["path"] == words[0]
    mounted = {one["name"] for one in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_the_write_to_a_store_is_one_that_the_function_takes() -> None:
    [(_, code)] = find_blocks("tables-on-stores", "python")
    imported, given, written = ast.parse(code).body
    assert ast.unparse(imported) == "from hudi_locks.spark import write"
    assert ast.unparse(written) == "write(df, path, options, 'append')"
    assert isinstance(given, ast.Assign)
    options: dict[str, str] = ast.literal_eval(given.value)
    assert {getattr(find_key(name), "effect", name) for name in options} == {"honoured"}


def read_steps(tmp_path: Path) -> dict[str, dict[str, str]]:
    """The options of each step, with locks in files of this machine in place of ZooKeeper."""
    steps = {}
    for title, text in find_blocks("migrate-a-lock", "properties"):
        file = tmp_path / title
        file.write_text(text, encoding="utf-8")
        named = {name: value.replace("zookeeper", "filesystem") for name, value in read_option_file(str(file)).items()}
        own = {name: value for name, value in named.items() if ".zookeeper." not in name}
        folder = {"hoodie.write.lock.filesystem.path": str(tmp_path / "locks")} if own != named else {}
        steps[title.partition(".")[0]] = {**own, **folder, "hoodie.base.path": "memory://lake/trips-on-the-move"}
    return steps


def test_the_steps_of_a_migration_lead_from_one_lock_to_the_other(hudi_locks: Run, tmp_path: Path) -> None:
    steps = read_steps(tmp_path)
    assert list(steps) == ["old", "both", "new"]
    table = Table.create(open_storage(str(tmp_path / "table")), TableConfig("t", ("id",)))

    def write(job: str, step: str) -> str:
        with LockManager.from_options(steps[step]) as locks:
            owner = Owner(job, host="a", pid=7, application=job)
            tx = Transactions(table, locks, options=steps[step], owner=owner).begin("commit", "UPSERT")
            assert tx.publish(CommitMetadata.of((), "UPSERT", schema=None)).is_committed
        status, out, _ = hudi_locks("migrate", table.storage.base, "--from", "filesystem", "--to", "storage")
        return f"{status} {out.splitlines()[-1]}"

    assert write("etl", "old").startswith("0 Every job holds filesystem alone.")
    assert write("stream", "old").startswith("0 Every job holds filesystem alone.")
    assert write("etl", "both").startswith("0 Next: give stream hoodie.write.lock.provider=chain")
    assert write("stream", "both").startswith("0 Every job holds both.")
    assert write("etl", "new").startswith("0 Next: give stream hoodie.write.lock.provider=storage alone too.")
    assert write("stream", "new").startswith("0 Every job holds storage alone: the migration is done.")
    assert write("stream", "old").startswith("1 These jobs do not keep each other out")
