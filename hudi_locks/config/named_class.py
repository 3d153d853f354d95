"""Classes that an option names as `package.module:Class`."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TypeVar

from hudi_locks.errors import ConfigError

__all__ = ["import_class"]

Base = TypeVar("Base")


def import_class(name: str, base: type[Base], *, key: str, known: Iterable[str]) -> type[Base]:
    """The subclass of `base` that `name` says.

    Args:
        name: As written, `package.module:Class`.
        base: What it has to be.
        key: The option, for the error.
        known: What the option might say instead, for the error.

    Raises:
        ConfigError: The name is of another form, cannot be imported, or is no such class.
    """
    module, found, attribute = name.partition(":")
    if not found:
        names = ", ".join(sorted(known))
        raise ConfigError(f"{key}={name} is no strategy; known are {names}, and package.module:Class", key=key)
    try:
        kind = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{key}={name} cannot be loaded: {error}", key=key) from error
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise ConfigError(f"{key}={name} is no {base.__name__}", key=key)
    return kind
