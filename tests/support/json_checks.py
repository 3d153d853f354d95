"""Whether what a command printed with --json is what the page of commands says, and no field more."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from command_page import SCHEMA
from jsonschema import Draft202012Validator

__all__ = ["check_json"]


def check_json(words: Sequence[str], out: str) -> Any:
    """What the command that these words call printed; raises `jsonschema.ValidationError` if it never prints that."""
    schema = _read_schema()
    names = (" ".join(words[:count]) for count in (2, 1))
    name = next(name for name in names if f"hudi-locks {name}" in schema["$defs"])
    told = [json.loads(line) for line in (out.splitlines() if name == "timeline" else [out])]
    for one in told:
        _find_validator(name).validate(one)
    return told if name == "timeline" else told[0]


@lru_cache
def _find_validator(name: str) -> Draft202012Validator:
    return Draft202012Validator({**_read_schema(), "$ref": f"#/$defs/hudi-locks {name}"})


@lru_cache
def _read_schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for described in found["$defs"].values():
        if "properties" in described:
            described["additionalProperties"] = False
    return found
