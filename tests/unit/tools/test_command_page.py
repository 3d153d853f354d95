"""The page of commands tells the truth, and the examples of their help are taken."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from command_page import PAGE, find_example, render_page

from hudi_locks.cli.main import load_commands

COMMANDS = load_commands()
ROOT = PAGE.parents[1]


def test_the_page_is_as_its_generator_writes_it() -> None:
    assert render_page() == PAGE.read_text(encoding="utf-8"), "run python tools/command_page.py"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_a_command_is_taken(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("writer.properties", "job.properties", "token"):
        Path(file).touch()
    words = shlex.split(find_example(COMMANDS[name]))
    assert words[: len(name.split()) + 1] == ["hudi-locks", *name.split()]
    context = COMMANDS[name].make_context(name, words[len(name.split()) + 1 :])
    assert context.params


def find_typed(text: str) -> list[str]:
    """The commands of this package in the blocks of a page that are typed into a shell; `\\` joins lines."""
    blocks = re.findall(r"^```(?:bash|sh)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in re.sub(r"\\\n", " ", block).splitlines()]
    typed = re.compile(r"^(?:\$ |until |[a-z]+=\$\()?(hudi-locks [^|]*?)(?: &| \|.*|; do\b.*|\))?$")
    return [found[1] for line in lines if (found := typed.match(re.sub(r"\s#.*", "", line).rstrip()))]


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
TYPED = [(path.relative_to(ROOT).as_posix(), line) for path in PAGES for line in find_typed(path.read_text("utf-8"))]


@pytest.mark.parametrize(("page", "line"), TYPED, ids=lambda text: text[:60])
def test_what_a_page_types_is_taken(page: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file in re.findall(r"[\w./-]+\.(?:properties|jsonl?)", line):
        if not file.startswith("/"):
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).touch()
    words = shlex.split(line)[1:]
    name = max((one for one in COMMANDS if words[: len(one.split())] == one.split()), key=len, default="")
    assert name, f"{page}: there is no such command: {line}"
    assert COMMANDS[name].make_context(name, words[len(name.split()) :]).params


def test_pages_type_commands() -> None:
    assert {"README.md", "docs/stuck-lock.md", "docs/tutorial.md", "docs/commands.md"} <= {page for page, _ in TYPED}
    text = "```bash\n$ hudi-locks ls a -p b | less\nuntil hudi-locks show a; do\nx=$(hudi-locks table a)\n```\n"
    assert find_typed(text)[:2] == ["hudi-locks ls a -p b", "hudi-locks show a"]


def test_an_example_is_missed_where_there_is_none() -> None:
    class Silent:
        name, help = "silent", "Do something."

    with pytest.raises(ValueError, match="silent has no line with an example"):
        find_example(Silent())
