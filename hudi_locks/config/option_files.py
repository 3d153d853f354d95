"""Options in files: those of a job, and those that a machine has for all of its jobs.

Source: Hudi's `DFSPropertiesConfiguration`.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from hudi_locks.config.addresses import local_path
from hudi_locks.config.checks import check_options
from hudi_locks.config.key import Key
from hudi_locks.config.options import Options
from hudi_locks.config.registry import find_key, strip_member
from hudi_locks.errors import ConfigError, NoEffectWarning

__all__ = ["add_defaults", "find_defaults_file", "overlay", "own_name", "read_option_file", "split_option_file"]

_FOLDER: Final = "HUDI_CONF_DIR"
_USUAL_FOLDER: Final = "/etc/hudi/conf"
_DEFAULTS: Final = "hudi-defaults.conf"
_BLANKS: Final = re.compile(r"[ \t\v\f\r]+")
_INCLUDE: Final = "include"


def read_option_file(address: str) -> dict[str, str]:
    """The options of a file, read as Hudi reads it.

    Each line has a key and a value, apart by the first `=`, or by blanks where there is no `=`. A line that begins with
    `#` is a comment. A line `include=FILE` stands for the lines of that file, which lies relative to this one. Of two
    lines with one key the later one counts. A backslash is a backslash, and blanks in a row are one.

    Args:
        address: A path, or a `file:` address.

    Raises:
        ConfigError: A file cannot be read, or includes itself.
    """
    return {key: value for _, part in split_option_file(address) for key, value in part.items()}


def split_option_file(address: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The options of a file in the parts that one file after the other gives: its own lines, and those of each include.

    Raises what `read_option_file` raises.

    Yields:
        Where the file of a part lies, and its options; those of later parts count before these.
    """
    for place, lines in groupby(_read_lines(address, above=()), key=itemgetter(0)):
        yield place, {key: value for _, key, value in lines}


def _read_lines(address: str, *, above: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """Of each line the file, key and value."""
    path = os.path.realpath(local_path(address))
    by = f", which {above[-1]} includes," if above else ""
    if path in above:
        raise ConfigError(f"the properties file {path}{by} includes itself; take that line out", path=path)
    for number, line in enumerate(_read_text(path, f"the properties file {address}{by}").split("\n"), 1):
        key, value = _split(line, f"line {number} of {path}")
        if key == _INCLUDE:
            beside = os.path.join(os.path.dirname(path), local_path(value))  # noqa: PTH118, PTH120  # a text, as given
            yield from _read_lines(beside, above=(*above, path))
        elif key:
            yield address, key, value


def _read_text(path: str, called: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{called} cannot be read: {error.strerror}; check the path", path=path) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{called} is no text in UTF-8: {error.reason} at byte {error.start}", path=path) from error


def _split(line: str, place: str) -> tuple[str, str]:
    """Key and value of a line; no key where it changes nothing."""
    text = _BLANKS.sub(" ", line).strip()
    key, _, value = (part.strip() for part in text.partition("=" if "=" in text else " "))
    if not text or text.startswith("#"):
        return "", ""
    if key == _INCLUDE and not line.startswith(_INCLUDE):
        raise ConfigError(f"{place} is indented, so that Hudi includes no file; let it begin with {_INCLUDE}")
    if key and text != key:
        return key, value
    warnings.warn(f"{place} lacks a {'value' if key else 'key'}, and changes nothing", NoEffectWarning, stacklevel=4)
    return "", ""


def find_defaults_file() -> str | None:
    """Where this machine has options for all of its Hudi jobs; None if it has none.

    It is `hudi-defaults.conf` in the folder that HUDI_CONF_DIR names, else in /etc/hudi/conf.

    Raises:
        ConfigError: The folder does not lie on this machine.
    """
    named = os.environ.get(_FOLDER, "").strip()
    path = Path(_read_folder(named) if named else _USUAL_FOLDER, _DEFAULTS)
    if path.is_file():
        return str(path)
    if named:
        warnings.warn(f"{_FOLDER}={named} has no file {_DEFAULTS}", NoEffectWarning, stacklevel=3)
    return None


def _read_folder(named: str) -> str:
    try:
        return local_path(named)
    except ConfigError as error:
        message = f"{_FOLDER}={named}: a folder of this machine is wanted; copy {_DEFAULTS} to one, and name that"
        raise ConfigError(message, path=named) from error


def add_defaults(options: Mapping[str, object] | None, *, without: Collection[Key[Any]] = ()) -> Options:
    """The options with those of this machine for all jobs, which count where the job gives none.

    Args:
        options: Of the job.
        without: Keys that have no meaning for it.

    Raises:
        ConfigError: The machine's file cannot be read, or a value of it is malformed.
    """
    given, path = options if isinstance(options, Options) else Options(options), find_defaults_file()
    if path is None:
        return given
    found = {name: value for name, value in read_option_file(path).items() if find_key(name) not in without}
    try:
        check_options(found, is_writer=False)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}", path=path) from error
    return given | _leave_out(found, given)


def overlay(lower: Mapping[str, str], upper: Mapping[str, str]) -> dict[str, str]:
    """Both, where a key that `upper` gives under any of its names counts in place of that of `lower`."""
    return {**_leave_out(lower, upper), **upper}


def _leave_out(lower: Mapping[str, str], upper: Mapping[str, object]) -> dict[str, str]:
    given = set(map(own_name, upper))
    return {name: value for name, value in lower.items() if own_name(name) not in given}


def own_name(name: str) -> str:
    """A key by its own name, whatever alias was given; what is for one of two chained providers stays so."""
    known, bare = find_key(name), strip_member(name)
    return name if known is None else name.removesuffix(bare) + known.name
