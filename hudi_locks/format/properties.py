"""Java properties files (the text form of java.util.Properties): `hoodie.properties`, `.hoodie_partition_metadata`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from hudi_locks.errors import DamagedTable

__all__ = ["decode_properties", "encode_properties", "split_properties"]

_BLANK: Final = " \t\f"
_UNESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED: Final = {value: f"\\{letter}" for letter, value in _UNESCAPED.items()} | {c: f"\\{c}" for c in "\\#!=:"}
_LINE_END = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|u|.)", re.DOTALL)


def decode_properties(data: bytes, path: str) -> dict[str, str]:
    """Read a properties file; of a key that stands there twice the last one counts, as in Java.

    Raises:
        DamagedTable: An escape is malformed, or bytes stand there that no writer of properties leaves; it names `path`.
    """
    return dict(split_properties(data, path))


def split_properties(data: bytes, path: str) -> list[tuple[str, str]]:
    """Every line of a properties file as key and value, in order.

    Raises:
        DamagedTable: See `decode_properties`.
    """
    if b"\x00" in data:
        raise DamagedTable(f"{path} is no properties file: it holds zero bytes, as after a crash", path=path)
    return [_split(line, path) for line in _logical_lines(data.decode("latin-1"))]


def encode_properties(properties: Mapping[str, str], comment: str = "") -> bytes:
    """A properties file, keys sorted, so that the same properties always give the same bytes."""
    head = "".join(f"#{line}\n" for line in comment.splitlines())
    lines = (f"{_escape(key, key=True)}={_escape(value, key=False)}\n" for key, value in sorted(properties.items()))
    return (_only_ascii(head) + "".join(lines)).encode("ascii")


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for natural in _LINE_END.split(text):
        line = natural.lstrip(_BLANK)
        if not pending and (not line or line[0] in "#!"):
            continue
        trailing = len(line) - len(line.rstrip("\\"))
        if trailing % 2:
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _split(line: str, path: str) -> tuple[str, str]:
    match = _KEY.fullmatch(line)
    if match is None:
        raise DamagedTable(f"{path}: the line {line!r} is no property", path=path)
    return _unescape(match[1], path), _unescape(match[2], path)


def _unescape(text: str, path: str) -> str:
    def replace(match: re.Match[str]) -> str:
        escape = match[1]
        if escape == "u":
            raise DamagedTable(f"{path}: malformed \\u escape in {text!r}", path=path)
        return chr(int(escape[1:], 16)) if escape[0] == "u" and len(escape) > 1 else _UNESCAPED.get(escape, escape)

    return _join_surrogates(_ESCAPE.sub(replace, text))


def _join_surrogates(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _escape(text: str, *, key: bool) -> str:
    escaped = "".join(_ESCAPED.get(character, character) for character in text)
    leading = len(escaped) - len(escaped.lstrip(" "))
    escaped = escaped.replace(" ", "\\ ") if key else "\\ " * leading + escaped[leading:]
    return _only_ascii(escaped)


def _only_ascii(text: str) -> str:
    return "".join(c if " " <= c <= "~" or c == "\n" else _as_units(c) for c in text)


def _as_units(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2))
