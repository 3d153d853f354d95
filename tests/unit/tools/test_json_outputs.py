"""What commands print with --json is declared, documented, and described as JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

import pytest
from command_page import SCHEMA, render_schema
from json_checks import check_json
from json_outputs import describe_all, find_output, render_objects, say
from jsonschema import Draft202012Validator, ValidationError

from hudi_locks.cli.main import load_commands


class Left(TypedDict, total=False):
    """Some of it.

    Attributes:
        left: How many; None
            for all.
    """

    left: int | None


@dataclass(frozen=True)
class Made:
    """What was made.

    Attributes:
        names: Of the parts.
        shares: By name.
        left: What is left.
    """

    names: tuple[str, ...]
    shares: Mapping[str, float]
    left: list[Left]


def test_the_schema_is_as_its_generator_writes_it() -> None:
    assert render_schema() == SCHEMA.read_text(encoding="utf-8"), "run python tools/command_page.py"
    Draft202012Validator.check_schema(json.loads(render_schema()))


@pytest.mark.parametrize("name", load_commands())
def test_a_command_with_json_declares_it(name: str) -> None:
    command = load_commands()[name]
    assert (find_output(command) is None) is not any("--json" in parameter.opts for parameter in command.params)


def test_one_that_does_not_is_found() -> None:
    class Flag:
        opts = ("--json",)

    class Silent:
        name, params, callback = "silent", (Flag(),), len

    with pytest.raises(ValueError, match="silent prints JSON, and declares no type of it"):
        find_output(Silent())


def test_types_become_schemas_and_words() -> None:
    schema = describe_all({"make": Made | None})["$defs"]
    assert schema["hudi-locks make"] == {"anyOf": [{"$ref": "#/$defs/Made"}, {"type": "null"}]}
    assert schema["Made"]["required"] == ["names", "shares", "left"]
    assert schema["Made"]["properties"]["names"] == {
        "type": "array",
        "items": {"type": "string"},
        "description": "Of the parts.",
    }
    assert schema["Made"]["properties"]["shares"]["additionalProperties"] == {"type": "number"}
    assert schema["Left"]["required"] == []
    assert say(Made | None) == "[Made](#made) or null"
    assert say(list[Mapping[str, int]]) == "list of object with names as keys, of whole number"
    assert "| `left` | whole number or null | How many; null for all. |" in render_objects({"make": Made})


@pytest.mark.parametrize(
    "wrong",
    [
        {"removed": "yes", "holder": None},
        {"removed": True},
        {"removed": True, "holder": None, "more": 1},
        {"removed": True, "holder": {"key": "k"}},
        None,
    ],
)
def test_an_output_of_another_form_is_found(wrong: object) -> None:
    check_json(["unlock", "/t"], '{"removed": true, "holder": null}')
    with pytest.raises(ValidationError):
        check_json(["unlock", "/t"], json.dumps(wrong))
