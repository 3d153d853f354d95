"""Where the table of the demonstration lies: on this machine, or on a store that is started for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from hudi_locks.errors import ConfigError

__all__ = ["ENTRY_POINT_GROUP", "LOCAL", "DemoStore", "open_store"]

ENTRY_POINT_GROUP: Final = "hudi_locks.demo_stores"
"""Where a package names, for each store that it can start, a context manager that gives a `DemoStore`'s fields."""
LOCAL: Final = "local"


@dataclass(frozen=True)
class DemoStore:
    """A place for a table.

    Attributes:
        base: Below which the table lies.
        provider: Lock provider that suits it.
        options: Hudi's keys by which it is reached, for every writer and reader.
    """

    base: str
    provider: str = "filesystem"
    options: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def open_store(name: str, folder: Path) -> Iterator[DemoStore]:
    """The store of that name, for the length of the block: `local` for the folder, else one that is started.

    Raises:
        ConfigError: No package brings one of that name.
        HudiLocksError: It cannot be started here; the message says what to install.
    """
    if name == LOCAL:
        yield DemoStore(str(folder))
        return
    found = {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
    if name not in found:
        known = ", ".join([LOCAL, *sorted(found)])
        raise ConfigError(f"--storage {name} is not known; use one of {known}", storage=name)
    start: Any = found[name].load()
    serving: AbstractContextManager[Mapping[str, Any]] = start()
    with serving as told:
        yield DemoStore(**told)
