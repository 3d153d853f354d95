"""Write the reference of all commands: docs/commands.md.

python tools/command_page.py
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, Final

from hudi_locks.cli.main import load_commands

__all__ = ["PAGE", "find_example", "render_page"]

PAGE: Final = Path(__file__).parents[1] / "docs" / "commands.md"
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
"""


def render_page() -> str:
    """The page as the commands are declared."""
    return _HEAD + "".join(_render(name, command) for name, command in load_commands().items())


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
