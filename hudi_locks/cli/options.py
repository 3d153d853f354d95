"""From what was typed to the options of a provider: `KEY`, `--provider`, `--option`, `--config`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from hudi_locks.cli.tables import find_table_name
from hudi_locks.clock import SystemClock
from hudi_locks.config import Options, check_options, find_key, lock_keys, nearest_key, table_keys
from hudi_locks.errors import ConfigError
from hudi_locks.lock import LockProvider, LockScope, available_providers, load_provider_class
from hudi_locks.storage import local_path

__all__ = [
    "ConfigFile",
    "FileGroup",
    "Json",
    "Key",
    "Provider",
    "Settings",
    "gather",
    "make_provider",
    "parse_scope",
    "read_options",
    "read_properties",
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
    Path | None, typer.Option("--config", "-c", help="A Java properties file with Hudi keys.", exists=True)
]
FileGroup = Annotated[
    str | None,
    typer.Option("--file-group", metavar="PARTITION/FILE_ID", help="The lock of one file group, not the table's."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

_OWN_PREFIXES: Final = ("hoodie.", "hudi_locks.")


def gather(
    key: str | None, provider: str | None, *, settings: list[str] | None, config: Path | None
) -> tuple[str, dict[str, str]]:
    """The provider's name and all options, what stands on the command line winning over the file.

    Raises:
        ConfigError: No provider was named, or an option is not `key=value`.
    """
    options = read_properties(str(config)) if config else {}
    pairs = dict(_split(setting) for setting in settings or [])
    name = provider or pairs.get(lock_keys.PROVIDER.name) or options.get(lock_keys.PROVIDER.name)
    if not name:
        raise ConfigError("which lock provider? give --provider, such as --provider filesystem; there is no default")
    short = load_provider_class(name).short_options
    options |= {_full_key(word, short): value for word, value in pairs.items()}
    options |= {lock_keys.PROVIDER.name: name}
    options |= {table_keys.BASE_PATH.name: key} if key else {}
    return name, _name_table(options)


def _name_table(options: dict[str, str]) -> dict[str, str]:
    """With the table's own name, which is the key of its lock in services that have a key for each table."""
    path = options.get(table_keys.BASE_PATH.name)
    given = Options(options).has(table_keys.TABLE_NAME)
    name = None if given or not path else find_table_name(path, options)
    return options if name is None else options | {table_keys.TABLE_NAME.name: name}


def read_options(settings: list[str] | None, config: Path | None) -> dict[str, str]:
    """Options of a table job, what stands on the command line winning over the file.

    Raises:
        ConfigError: An option is not `key=value`.
    """
    options = read_properties(str(config)) if config else {}
    return options | dict(_split(setting) for setting in settings or [])


def read_properties(address: str, *, above: tuple[str, ...] = ()) -> dict[str, str]:
    """The properties of a file; a line `include=FILE` stands for those of that file, which lies relative to this one.

    Args:
        address: A path, or a `file:` address.
        above: The files that include this one.

    Raises:
        ConfigError: A file cannot be read, or includes itself.
    """
    from hudi_locks.format import split_properties  # brings Arrow along, which no other command needs

    path = os.path.realpath(local_path(address))
    by = f", which {above[-1]} includes," if above else ""
    if path in above:
        raise ConfigError(f"the properties file {path}{by} includes itself; take that line out", path=path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        message = f"the properties file {address}{by} cannot be read: {error.strerror}; check the path"
        raise ConfigError(message, path=address) from error
    options: dict[str, str] = {}
    for key, value in split_properties(data, path):
        options |= read_properties(_beside(path, value), above=(*above, path)) if key == "include" else {key: value}
    return options


def _beside(path: str, included: str) -> str:
    return os.path.join(os.path.dirname(path), local_path(included.strip()))  # noqa: PTH118, PTH120  # a text, as given


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
    name, options = gather(key, provider, settings=settings, config=config)
    kind = load_provider_class(name)
    return kind(check_options(options, known=kind.short_options.values()), clock=SystemClock(), on_lost=lambda *_: None)


def parse_scope(file_group: str | None) -> LockScope:
    """The scope that `--file-group` means; the last part of it is the file id."""
    if file_group is None:
        return LockScope.table()
    partition, _, file_id = file_group.rpartition("/")
    return LockScope.file_group(partition, file_id)
