"""From what was typed, the environment and files to options: `KEY`, `--provider`, `--option`, `--config`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import typer

from hudi_locks.cli.tables import find_table_name
from hudi_locks.clock import SystemClock
from hudi_locks.config import (
    KEYS,
    Options,
    check_options,
    find_defaults_file,
    find_key,
    lock_keys,
    nearest_key,
    overlay,
    redact,
    split_option_file,
    table_keys,
)
from hudi_locks.errors import ConfigError
from hudi_locks.lock import LockProvider, LockScope, available_providers, load_provider_class

__all__ = [
    "TABLE_ITSELF",
    "ConfigFile",
    "FileGroup",
    "Given",
    "Json",
    "Key",
    "OverruledValue",
    "Provider",
    "Settings",
    "gather",
    "gather_any",
    "make_provider",
    "open_provider",
    "parse_scope",
    "read_options",
]


def complete_provider(incomplete: str) -> list[str]:
    """Names of providers that begin so, for the shell."""
    return [name for name in available_providers() if name.startswith(incomplete)]


Key = Annotated[str | None, typer.Argument(metavar="KEY", help="Path of the table (hoodie.base.path).")]
Provider = Annotated[
    str | None,
    typer.Option(
        "--provider", "-p", help="Lock provider; see `hudi-locks providers`.", autocompletion=complete_provider
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="KEY=VALUE", help="A Hudi key, or a short name of the provider's."),
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", "--props", "-c", help="A properties file with Hudi keys.", exists=True)
]
FileGroup = Annotated[
    str | None,
    typer.Option("--file-group", metavar="PARTITION/FILE_ID", help="The lock of one file group, not the table's."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

TABLE_ITSELF: Final = "the table"
"""The origin of what the table at the path says of itself."""
_OWN_PREFIXES: Final = ("hoodie.", "hudi_locks.")
_VARIABLES: Final = "HOODIE_"
"""Variables of the environment that begin so stand for keys, also for unknown ones, of which the user is told."""


@dataclass(frozen=True)
class OverruledValue:
    """A value that does not count, since another place gives the key too.

    Attributes:
        origin: Where it was given.
        name: Under which name.
        value: What was given; hidden if it is a secret.
    """

    origin: str
    name: str
    value: str = field(repr=False)


@dataclass(frozen=True)
class Given:
    """The options of a command, and where each was given.

    Attributes:
        options: By the names under which they were given.
        origins: A file, a variable of the environment or a word of the command line, by the same names.
        overruled: What was given in places of less weight too, the least one first.
    """

    options: Mapping[str, str] = field(repr=False)
    origins: Mapping[str, str]
    overruled: tuple[OverruledValue, ...] = ()

    @property
    def provider(self) -> str:
        """Name of the lock provider."""
        return Options(self.options).get_value(lock_keys.PROVIDER)

    @property
    def without_provider(self) -> dict[str, str]:
        """The options but for that which names the provider."""
        return {name: value for name, value in self.options.items() if find_key(name) is not lock_keys.PROVIDER}

    def add(self, origin: str, values: Mapping[str, str]) -> Given:
        """With values of one place that win over those given so far."""
        return self.join(Given(values, dict.fromkeys(values, origin)))

    def join(self, upper: Given) -> Given:
        """With others that win over those given so far."""
        joined, shown = overlay(self.options, upper.options), redact(self.options)
        lost = [name for name in self.options if name in upper.options or name not in joined]
        origins = {name: upper.origins.get(name) or self.origins[name] for name in joined}
        overruled = (OverruledValue(self.origins[name], name, shown[name]) for name in lost)
        return Given(joined, origins, (*self.overruled, *overruled, *upper.overruled))


def gather(key: str | None, provider: str | None, *, settings: list[str] | None, config: Path | None) -> Given:
    """All options of a command that concerns locks, the provider's name among them.

    Raises:
        ConfigError: No provider was named, or an option is not `key=value`.
    """
    found = gather_any(key, provider, settings=settings, config=config)
    if not Options(found.options).find(lock_keys.PROVIDER):
        raise ConfigError("which lock provider? give --provider, such as --provider filesystem; there is no default")
    return found


def gather_any(key: str | None, provider: str | None, *, settings: list[str] | None, config: Path | None) -> Given:
    """All options of a command that does without a lock provider too.

    Raises:
        ConfigError: An option is not `key=value`.
    """
    found, pairs = _read_layers(config), dict(map(_split, settings or []))
    name = provider or pairs.get(lock_keys.PROVIDER.name) or Options(found.options).find(lock_keys.PROVIDER)
    short = load_provider_class(name).short_options if name else {}
    found = found.add("--option", {_full_key(word, short): value for word, value in pairs.items()})
    found = found.add("--provider", {lock_keys.PROVIDER.name: provider}) if provider else found
    found = found.add("KEY", {table_keys.BASE_PATH.name: key}) if key else found
    return found.add(TABLE_ITSELF, _find_name(found.options))


def _find_name(options: Mapping[str, str]) -> dict[str, str]:
    """The table's own name, which is the key of its lock in services that have a key for each table."""
    path = options.get(table_keys.BASE_PATH.name)
    given = Options(options).has(table_keys.TABLE_NAME)
    name = None if given or not path else find_table_name(path, options)
    return {} if name is None else {table_keys.TABLE_NAME.name: name}


def read_options(settings: list[str] | None, config: str | Path | None) -> dict[str, str]:
    """Options of a table job; of two that name one key the last of these counts.

    They are those of this machine for all jobs, of the file, of the environment, and of the command line.

    Raises:
        ConfigError: An option is not `key=value`, or a file cannot be read.
    """
    return dict(_read_layers(config).add("--option", dict(map(_split, settings or []))).options)


def _read_layers(config: str | Path | None) -> Given:
    found = Given({}, {})
    for path in filter(None, (find_defaults_file(), config)):
        found = found.join(_read_file(str(path)))
    known = {name.upper().replace(".", "_"): name for name in KEYS if name.startswith(_OWN_PREFIXES)}
    for variable in sorted(name for name in os.environ if name in known or name.startswith(_VARIABLES)):
        name = known.get(variable) or variable.lower().replace("_", ".")
        found = found.add(variable, {name: os.environ[variable]})
    return found


def _read_file(address: str) -> Given:
    """The options of a file. Two names of one key stay both: a writer refuses them if they contradict each other."""
    options, origins = dict[str, str](), dict[str, str]()
    lost: list[OverruledValue] = []
    for place, part in split_option_file(address):
        shown = redact(options)
        lost += [OverruledValue(origins[name], name, shown[name]) for name in part if name in options]
        options |= part
        origins |= dict.fromkeys(part, place)
    return Given(options, origins, tuple(lost))


def _split(setting: str) -> tuple[str, str]:
    key, equals, value = setting.partition("=")
    if not equals:
        raise ConfigError(f"--option {setting} is not of the form key=value")
    return key.strip(), value


def _full_key(word: str, short: dict[str, str]) -> str:
    if word in short:
        return short[word]
    if find_key(word) or word.startswith(_OWN_PREFIXES) or word in short.values():
        return word
    nearest = nearest_key(word)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    raise ConfigError(
        f"--option {word} is neither a Hudi key nor a short name of the provider ({', '.join(sorted(short))}){hint}",
        key=word,
    )


def make_provider(
    key: str | None, provider: str | None, *, settings: list[str] | None, config: Path | None
) -> LockProvider:
    """The provider alone, for commands that look at locks of others."""
    return open_provider(gather(key, provider, settings=settings, config=config))


def open_provider(given: Given) -> LockProvider:
    """The provider that options name; it asks nobody yet."""
    kind = load_provider_class(given.provider)
    checked = check_options(given.options, known=kind.short_options.values())
    return kind(checked, clock=SystemClock(), on_lost=lambda *_: None)


def parse_scope(file_group: str | None) -> LockScope:
    """The scope that `--file-group` means; the last part of it is the file id."""
    if file_group is None:
        return LockScope.table()
    partition, _, file_id = file_group.rpartition("/")
    return LockScope.file_group(partition, file_id)
