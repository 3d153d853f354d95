"""Renamed public names: the old one stays for two minor versions, with a warning that names the new one."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

__all__ = ["RenamedMember", "forward_renamed"]


def forward_renamed(module: str, renamed: Mapping[str, str], *, removed_in: str) -> Callable[[str], Any]:
    """A module's `__getattr__` that answers for names which it has under other ones now.

    `__getattr__ = forward_renamed(__name__, {"OldName": "NewName"}, removed_in="0.3.0")`. Every use of an old name, an
    import of it too, warns at the line that uses it.

    Args:
        module: The module's `__name__`.
        renamed: New names by old ones; a dotted one (`package.module:Name`) says that the name lies elsewhere now.
        removed_in: The version that has the old names no more.

    Returns:
        A function that returns what an old name stands for, and raises AttributeError for any other name.
    """

    def find(name: str) -> Any:
        if name not in renamed:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        place, _, new = renamed[name].rpartition(":")
        message = f"{module}.{name} is now {place or module}.{new}; the old name goes in {removed_in}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(place or module), new)

    return find


class RenamedMember:
    """A method, property or attribute of a class under its old name: `old = RenamedMember("new", removed_in="0.3.0")`.

    Every use through an instance warns at the line that uses it.

    Args:
        new: The name that the class has for it now; `part.new` where a part of the object has it.
        removed_in: The version that has the old name no more.
    """

    def __init__(self, new: str, *, removed_in: str) -> None:
        self._new = new
        self._removed_in = removed_in
        self._old = ""

    def __set_name__(self, owner: type, name: str) -> None:
        """Learn the old name, from the class that is being made."""
        self._old = f"{owner.__name__}.{name}"

    def __get__(self, instance: object, owner: type) -> Any:
        """What the new name stands for."""
        message = f"{self._old} is now {owner.__name__}.{self._new}; the old name goes in {self._removed_in}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return attrgetter(self._new)(owner if instance is None else instance)
