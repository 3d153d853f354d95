"""What commands print with --json: the types that they declare, as JSON Schema, and as tables for people."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, Final, Union, get_args, get_origin, get_type_hints, is_typeddict

__all__ = ["describe_all", "find_output", "render_objects", "say"]

_WORDS: Final[Mapping[Any, tuple[str, str]]] = {
    str: ("string", "text"),
    int: ("integer", "whole number"),
    float: ("number", "number"),
    bool: ("boolean", "true or false"),
    type(None): ("null", "null"),
}
"""Of each plain type its name in JSON Schema, and for people."""
_ATTRIBUTE: Final = re.compile(r"^    (\w+): (.*(?:\n        .*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Field:
    """One field of an object.

    Attributes:
        kind: Its type.
        doc: What it holds.
        is_certain: Whether each object has it.
    """

    kind: Any
    doc: str
    is_certain: bool


def find_output(command: Any) -> Any:
    """The type of what a command of click prints with --json; None if it has no such option.

    Raises:
        ValueError: It has the option, and declares no type.
    """
    if not any("--json" in parameter.opts for parameter in command.params):
        return None
    declared = getattr(command.callback, "json_output", None)
    if declared is None:
        raise ValueError(f"{command.name} prints JSON, and declares no type of it (hudi_locks.cli.output.prints)")
    return declared


def list_fields(kind: Any) -> dict[str, Field]:
    """The fields of a dataclass or typed dictionary, with what their docstrings say."""
    classes = [one for one in reversed(kind.__mro__) if is_dataclass(one)] or [kind]
    docs = {name: _phrase(doc) for one in classes for name, doc in _read_attributes(one)}
    certain = getattr(kind, "__required_keys__", None)
    hints = get_type_hints(kind)
    return {name: Field(hints[name], docs[name], certain is None or name in certain) for name in hints}


def _phrase(doc: str) -> str:
    """On one line, in the words of JSON."""
    return re.sub(r"\bNone\b", "null", " ".join(doc.split()))


def _read_attributes(kind: Any) -> list[tuple[str, str]]:
    _, _, listed = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")
    return _ATTRIBUTE.findall(listed)


def list_objects(kind: Any) -> list[Any]:
    """The dataclasses and typed dictionaries that a value of this type is made of."""
    if _is_object(kind):
        parts = [field.kind for field in list_fields(kind).values()]
        return [kind, *(found for part in parts for found in list_objects(part))]
    return [found for part in get_args(kind) for found in list_objects(part)]


def _is_object(kind: Any) -> bool:
    return is_dataclass(kind) or is_typeddict(kind)


def describe(kind: Any) -> dict[str, Any]:
    """A type as JSON Schema; objects are named, and described under `$defs` of the same document."""
    if _is_object(kind):
        return {"$ref": f"#/$defs/{kind.__name__}"}
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return {"anyOf": [describe(part) for part in parts]}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": describe(parts[1])}
    if origin is not None and issubclass(origin, Sequence):
        return {"type": "array", "items": describe(parts[0])}
    return {"type": _WORDS[kind][0]}


def describe_object(kind: Any) -> dict[str, Any]:
    """An object as JSON Schema. A later release may add fields, so that others than these are no error."""
    fields = list_fields(kind)
    return {
        "type": "object",
        "description": _summarize(kind),
        "properties": {name: {**describe(field.kind), "description": field.doc} for name, field in fields.items()},
        "required": [name for name, field in fields.items() if field.is_certain],
    }


def _summarize(kind: Any) -> str:
    return inspect.cleandoc(kind.__doc__).partition("\n")[0]


def _sort_objects(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Each object that commands print, by name."""
    objects = {found.__name__: found for kind in outputs.values() for found in list_objects(kind)}
    return dict(sorted(objects.items()))


def describe_all(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """One document with the schema of each command's output, under the words that call it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What hudi-locks prints with --json",
        "$defs": {name: describe_object(kind) for name, kind in _sort_objects(outputs).items()}
        | {f"hudi-locks {name}": describe(kind) for name, kind in outputs.items()},
    }


def say(kind: Any) -> str:
    """A type in words, with links to the tables of objects."""
    if _is_object(kind):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(say(part) for part in parts)
    if origin is not None and issubclass(origin, Mapping):
        return f"object with names as keys, of {say(parts[1])}"
    if origin is not None and issubclass(origin, Sequence):
        return f"list of {say(parts[0])}"
    return _WORDS[kind][1]


def render_objects(outputs: Mapping[str, Any]) -> str:
    """A table of each object that commands print."""
    return "\n".join(map(_render, _sort_objects(outputs).values()))


def _render(kind: Any) -> str:
    rows = "".join(f"| `{name}` | {say(field.kind)} | {field.doc} |\n" for name, field in list_fields(kind).items())
    return f"### {kind.__name__}\n\n{_summarize(kind)}\n\n| field | type | meaning |\n|---|---|---|\n{rows}"
