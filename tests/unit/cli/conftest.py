"""Runs a command line within the test's own process."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from json_checks import check_json

from hudi_locks.cli import main

_HEARING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
"""A shell lets what it starts in the background be deaf to Ctrl-C, and all that this starts in turn."""


@pytest.fixture
def hudi_locks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Run `hudi-locks` with the given words: exit status, standard output, of --json a sound one, standard error."""
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(list(words))
        out, err = capsys.readouterr()
        if "--json" in words and out:
            check_json(words, out)
        return int(caught.value.code or 0), out, err

    return run


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a program, in a session of its own, that imports what the test can; it is killed in the end."""
    with ExitStack() as stack:

        def begin(code: str, *words: str, **variables: str) -> subprocess.Popen[str]:
            environment = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(sys.path)}
            command = [sys.executable, "-c", f"{_HEARING}; {code}", *words]
            process = subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield begin
