"""Runs a command line within the test's own process."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

from hudi_locks.cli import main


@pytest.fixture
def hudi_locks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Run `hudi-locks` with the given words: exit status, standard output, standard error."""
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(list(words))
        out, err = capsys.readouterr()
        return int(caught.value.code or 0), out, err

    return run
