"""Write the reference of all commands, docs/commands.md, and the schema of what they print, docs/command-output.json.

python tools/command_page.py
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from json_outputs import describe_all, find_output, render_objects, say

from hudi_locks.cli.main import load_commands

__all__ = ["PAGE", "SCHEMA", "find_example", "render_page", "render_schema"]

PAGE: Final = Path(__file__).parents[1] / "docs" / "commands.md"
SCHEMA: Final = PAGE.with_name("command-output.json")
_EXAMPLE: Final = re.compile(r"^Example: (.*)$", re.MULTILINE)
_STATUS: Final = "Exit status: "
_HEAD: Final = """# Commands

Every command takes `--help`, ends with one line on standard error if something is wrong, and lets go of what it holds
at Ctrl-C and SIGTERM. Options of Hudi are given [in files, in the environment or on the command
line](configuration.md#where-options-are-given). What some commands are for stands under [Command
line](command-line.md).

| status | of every command, where it says nothing else |
|---|---|
| 0 | done |
| 1 | it failed |
| 2 | a wrong command line or configuration; nothing was done |
| 130, 143 | Ctrl-C, SIGTERM |

With `--json` a command prints one value on a line, of the type that it says. [Below](#what-json-prints) are the fields
of each object, and in [command-output.json](command-output.json) the same as JSON Schema. Fields are added, and none is
taken away or changed.
"""
_OBJECTS: Final = """
## What --json prints

"""


def render_page() -> str:
    """The page as the commands are declared."""
    commands = load_commands()
    parts = "".join(_render(name, command) for name, command in commands.items())
    return _HEAD + parts + _OBJECTS + render_objects(_list_outputs(commands))


def render_schema() -> str:
    """JSON Schema of what each command prints with --json, under `$defs`."""
    return json.dumps(describe_all(_list_outputs(load_commands())), indent=1) + "\n"


def _list_outputs(commands: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: find_output(command) for name, command in commands.items()}
    return {name: kind for name, kind in found.items() if kind is not None}


def find_example(command: Any) -> str:
    """The command line that the help of a command gives as an example."""
    found = _EXAMPLE.search(_help(command))
    if found is None:
        raise ValueError(f"{command.name} has no line with an example in its help")
    return found[1]


def _help(command: Any) -> str:
    return inspect.cleandoc(command.help or "")


def _render(name: str, command: Any) -> str:
    paragraphs = [" ".join(part.split()) for part in _help(command).split("\n\n")]
    said = [part for part in paragraphs if not part.startswith(("Example: ", _STATUS))]
    statuses = [part.removeprefix(_STATUS) for part in paragraphs if part.startswith(_STATUS)]
    parts = [
        f"## hudi-locks {name}",
        *said,
        f"```bash\n{find_example(command)}\n```",
        *(f"**Exit status:** {status}" for status in statuses),
        *([] if (kind := find_output(command)) is None else [f"**With `--json`:** {say(kind)}"]),
        _render_parameters(command),
    ]
    return "\n" + "\n\n".join(parts)


def _render_parameters(command: Any) -> str:
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    rows = "".join(f"| {_name(one)} | {_describe(one)} |\n" for one in shown if one.name != "help")
    return f"| | |\n|---|---|\n{rows}" if rows else ""


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    words = ", ".join(f"`{word}`" for word in (*parameter.opts, *parameter.secondary_opts))
    takes = "" if parameter.is_flag else f" `{parameter.metavar or parameter.name.upper()}`"
    return words + takes.replace("|", "\\|")


def _describe(parameter: Any) -> str:
    facts = [parameter.help or ""]
    if parameter.required:
        facts.append("Required.")
    if not isinstance(parameter.default, (bool, type(None))) and parameter.default not in ("", [], ()):
        facts.append(f"By default {parameter.default}.")
    return " ".join(filter(None, facts)).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(render_page(), encoding="utf-8")
    SCHEMA.write_text(render_schema(), encoding="utf-8")
