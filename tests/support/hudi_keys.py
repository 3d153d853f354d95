"""The names of keys in the configuration classes of JVM Hudi: text constants of a bundle's class files."""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["GOLDEN", "read_golden_keys", "read_keys"]

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "hudi_keys.txt"
"""A name, and the releases that have it, on each line."""
_CLASSES: Final = re.compile(r"org/apache/hudi/.*(onfig|Options|Prop|Strategy).*\.class")
_NAME: Final = re.compile(r"hoodie(\.[a-zA-Z0-9_\-]+)+")
_TEXT, _TEXT_CONSTANT, _HANDLE = 1, 8, 15
_TWO_SLOTS: Final = (5, 6)
_SIZES: Final = {**dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 5), **dict.fromkeys(_TWO_SLOTS, 9), _HANDLE: 4}
_OTHER: Final = 3
_HEAD: Final = 10


def read_golden_keys() -> dict[str, list[str]]:
    """Each name with the releases that have it."""
    lines = GOLDEN.read_text(encoding="utf-8").splitlines()
    return {name: releases for name, *releases in map(str.split, lines)}


def read_keys(jar: Path) -> set[str]:
    """Names of keys in a bundle."""
    with zipfile.ZipFile(jar) as bundle:
        classes = [name for name in bundle.namelist() if _CLASSES.fullmatch(name)]
        return {text for name in classes for text in _list_texts(bundle.read(name)) if _NAME.fullmatch(text)}


def _list_texts(data: bytes) -> Iterator[str]:
    """The text constants of a class file (JVM specification, 4.4)."""
    (count,), at, number = struct.unpack_from(">H", data, 8), _HEAD, 1
    texts: dict[int, str] = {}
    used: list[int] = []
    while number < count:
        tag = data[at]
        if tag == _TEXT:
            (size,) = struct.unpack_from(">H", data, at + 1)
            texts[number] = data[at + 3 : at + 3 + size].decode("utf-8", "replace")
            at += 3 + size
        else:
            used += struct.unpack_from(">H", data, at + 1) if tag == _TEXT_CONSTANT else ()
            at += _SIZES.get(tag, _OTHER)
        number += 2 if tag in _TWO_SLOTS else 1
    return (texts[number] for number in used)
