"""Options in files are read as JVM Hudi reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from other_readers import DEADLINE_S, Jvm

pytestmark = pytest.mark.interop

GOLDEN = Path(__file__).parents[1] / "golden" / "option_files"


def test_the_options_that_ours_are_compared_with_are_those_of_the_jvm(jvm: Jvm) -> None:
    found = jvm.ask("option_file", path=str(GOLDEN / "odd.conf")).result(DEADLINE_S)
    found.pop("")  # of a comment that is indented, which it takes for a value without a key
    assert found == json.loads((GOLDEN / "jvm.json").read_text(encoding="utf-8"))
