"""The tutorial, typed as it stands: each file is written, and each command runs, in a folder of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.servers
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def split_page(text: str) -> tuple[str, str]:
    """What is installed, which other tests do, and what is typed then."""
    begin, told, rest = text.partition("\n## A table\n")
    assert told
    return begin, rest


def run(command: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "SPARK_CONF_DIR": str(ROOT / "tests" / "support" / "spark_conf")}
    shell = ["bash", "-euo", "pipefail", "-c", command]
    done = subprocess.run(shell, cwd=folder, env=env, text=True, capture_output=True, timeout=600)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_every_command_does_what_the_page_says(tmp_path: Path) -> None:
    installing, typed = split_page(PAGE.read_text(encoding="utf-8"))
    assert "pip install" in installing
    shown = ""
    for language, title, body in BLOCK.findall(typed):
        if language == "python":
            (tmp_path / title).write_text(body, encoding="utf-8")
        else:
            shown += run(body, tmp_path)
    counted = {"10 accounts": 1, "ada committed 2": 3, "bob committed 2": 3, "every account holds 6": 1}
    counted |= {"not got: status 1": 1, "kept: status 1": 1, "\nthe lock is free\n": 1}
    assert {text: shown.count(text) for text in counted} == counted, shown
    assert "COPY_ON_WRITE" in shown
    assert "nightly" in shown


def test_no_block_is_left_out() -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = BLOCK.findall(split_page(text)[1])
    assert {language for language, _, _ in blocks} == {"python", "bash"}
    assert all(bool(title) is (language == "python") for language, title, _ in blocks)
    assert text.count("```") == 2 * len(BLOCK.findall(text))
