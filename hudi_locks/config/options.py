"""A user's options, read through declared keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from hudi_locks.config.key import Key
from hudi_locks.config.registry import find_key
from hudi_locks.errors import ConfigError
from hudi_locks.redaction import HIDDEN, hide_secrets, sounds_secret

__all__ = ["Options"]

T = TypeVar("T", str, int, bool)
_TRUE, _FALSE = ("true",), ("false",)


class Options(Mapping[str, str]):
    """An unchangeable copy of a mapping of keys to values; its repr shows names only.

    A pickle leaves the values of secrets out. Its copy knows their names, and refuses to give them.

    Args:
        values: Keys as the user wrote them. Values of type str, int, float or bool.
    """

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        copied = values if isinstance(values, Options) else None
        given = values or {} if copied is None else copied._values  # noqa: SLF001  # of this class
        self._values: dict[str, str] = {str(key): _text(value) for key, value in given.items() if value is not None}
        self._left_out: frozenset[str] = frozenset() if copied is None else copied._left_out  # noqa: SLF001  # of this class

    def __getitem__(self, name: str) -> str:
        if name in self._left_out:
            message = (
                f"{name} is a secret, and was left out when these options were pickled; read it where they are used,"
                " and give it there: options | {...}"
            )
            raise ConfigError(message, key=name)
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Options({', '.join(sorted(self._values))})"

    def __or__(self, other: Mapping[str, object]) -> Options:
        joined = Options({**self._values, **other})
        joined._left_out = self._left_out - set(other)
        return joined

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.redacted(), self._left_out.union(self._secrets()))

    def redacted(self) -> dict[str, str]:
        """The options as they may be shown: secrets are hidden, whether their key or their form says so."""
        return {name: _show_value(name, value) for name, value in self._values.items()}

    def _secrets(self) -> set[str]:
        return {name for name, shown in self.redacted().items() if shown != self._values[name]}

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
        return key.default if name is None else _parse(key, name, self[name])

    def get_value(self, key: Key[T]) -> T:
        """The value of `key`, else its default.

        Raises:
            ConfigError: Neither is there, or the text is malformed.
        """
        value = self.find(key)
        if value is None:
            raise ConfigError(f"{key.name} is required and was not given: {key.doc}", key=key.name)
        return value


def _show_value(name: str, value: str) -> str:
    """The value of an option as it may be shown.

    Nothing is shown of keys that are declared as secrets, and of unknown ones that sound so. Of all others that is
    hidden which is a secret by its form, such as a password in an address.
    """
    key = find_key(name)
    is_secret = key.secret if key else sounds_secret(name)
    return HIDDEN if is_secret else hide_secrets(value)


def _rebuild(values: dict[str, str], left_out: frozenset[str]) -> Options:
    options = Options(values)
    options._left_out = left_out  # noqa: SLF001  # a part of `Options`
    return options


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parse(key: Key[T], name: str, text: str) -> T:
    try:
        value = _convert(key.kind, text.strip())
    except ValueError:
        shown = HIDDEN if key.secret else repr(text)
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
    shown = HIDDEN if key.secret else value
    if key.minimum is not None and isinstance(value, int) and value < key.minimum:
        raise ConfigError(f"{name}={shown} is below the least allowed value {key.minimum}: {key.doc}", key=name)
    if key.choices and str(value).lower() not in {choice.lower() for choice in key.choices}:
        raise ConfigError(f"{name}={shown} is none of {', '.join(key.choices)}: {key.doc}", key=name)
