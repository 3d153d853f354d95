"""A user's options, read through declared keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from hudi_locks.config.key import Key
from hudi_locks.errors import ConfigError

__all__ = ["Options"]

T = TypeVar("T", str, int, bool)
_TRUE, _FALSE = ("true",), ("false",)


class Options(Mapping[str, str]):
    """An unchangeable copy of a mapping of keys to values; picklable; its repr shows names only.

    Args:
        values: Keys as the user wrote them. Values of type str, int, float or bool.
    """

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        self._values = {str(key): _text(value) for key, value in (values or {}).items() if value is not None}

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Options({', '.join(sorted(self._values))})"

    def __or__(self, other: Mapping[str, object]) -> Options:
        return Options({**self._values, **other})

    def has(self, key: Key[T]) -> bool:
        """Whether the user gave `key`, under any of its names."""
        return self.name_used(key) is not None

    def name_used(self, key: Key[T]) -> str | None:
        """The name under which the user gave `key`: its own before its aliases; None if absent."""
        return next((name for name in (key.name, *key.aliases) if name in self._values), None)

    def find(self, key: Key[T]) -> T | None:
        """The value of `key`, else its default, which may be None.

        Raises:
            ConfigError: The text is no value of the key's type, or out of its bounds.
        """
        name = self.name_used(key)
        return key.default if name is None else _parse(key, name, self._values[name])

    def get_value(self, key: Key[T]) -> T:
        """The value of `key`, else its default.

        Raises:
            ConfigError: Neither is there, or the text is malformed.
        """
        value = self.find(key)
        if value is None:
            raise ConfigError(f"{key.name} is required and was not given: {key.doc}", key=key.name)
        return value


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parse(key: Key[T], name: str, text: str) -> T:
    try:
        value = _convert(key.kind, text.strip())
    except ValueError:
        shown = "***" if key.secret else repr(text)
        raise ConfigError(f"{name}={shown} is no {key.kind.__name__}: {key.doc}", key=name) from None
    _check_bounds(key, name, value)
    return value


def _convert(kind: type[T], text: str) -> T:
    if kind is bool:
        if text.lower() not in _TRUE + _FALSE:
            raise ValueError(text)
        return kind(text.lower() in _TRUE)
    return kind(text)


def _check_bounds(key: Key[T], name: str, value: T) -> None:
    if key.minimum is not None and isinstance(value, int) and value < key.minimum:
        raise ConfigError(f"{name}={value} is below the least allowed value {key.minimum}: {key.doc}", key=name)
    if key.choices and str(value).lower() not in {choice.lower() for choice in key.choices}:
        raise ConfigError(f"{name}={value} is none of {', '.join(key.choices)}: {key.doc}", key=name)
