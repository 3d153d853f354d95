"""The page of commands tells the truth, and the examples of their help are taken."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from command_page import PAGE, find_example, render_page

from hudi_locks.cli.main import load_commands

COMMANDS = load_commands()


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


def test_an_example_is_missed_where_there_is_none() -> None:
    class Silent:
        name, help = "silent", "Do something."

    with pytest.raises(ValueError, match="silent has no line with an example"):
        find_example(Silent())
