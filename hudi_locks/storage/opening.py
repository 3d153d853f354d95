"""From a table's base path to its storage, by the scheme of the path."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from hudi_locks.config import LOCAL_SCHEME, local_path, split_scheme
from hudi_locks.errors import ConfigError, ProviderLoadError, UnsupportedTable
from hudi_locks.storage.local import LocalStorage
from hudi_locks.storage.storage import Storage

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["ENTRY_POINT_GROUP", "open_beside", "open_storage", "register_storage"]

ENTRY_POINT_GROUP: Final = "hudi_locks.storages"
"""Where a package names an opener for each scheme that it serves."""
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*")

Opener = Callable[[str, Mapping[str, object]], Storage]
"""Makes the storage of a base path, as the user wrote it, by the table's options; makes no I/O.

What it makes can be pickled.
"""

_registered: dict[str, Callable[[str, Mapping[str, object]], object]] = {}


def open_storage(path: str | os.PathLike[str], options: Mapping[str, object] = MappingProxyType({})) -> Storage:
    """The storage under a table's base path; makes no I/O.

    Args:
        path: A path of this machine, relative or absolute, a `file:` address as Spark or a browser writes it, or an
            address of a scheme that `register_storage` or an installed package brought. This package brings
            `s3`, `s3a`, `s3n`, `gs`, `abfs`, `abfss`, `wasb`, `wasbs`, `hdfs`, `webhdfs` and `swebhdfs`.
        options: How the store is reached, as `hudi_locks.storage.endpoint_url` and `hoodie.aws.access.key`.

    Raises:
        ConfigError: The path is empty, an option is wrong, or its scheme is served by none; the message lists those
            that are.
        ProviderLoadError: The package that serves the scheme cannot be imported.
    """
    path = os.fspath(path)
    if not path.strip():
        raise ConfigError("the base path of a table is empty: give a folder such as /data/flights", path=path)
    scheme = split_scheme(path)[0] or LOCAL_SCHEME
    return _open_local(path) if scheme == LOCAL_SCHEME else _open_other(path, scheme, options)


def open_beside(storage: Storage, folder: str) -> Storage:
    """Files that belong to a table and lie outside of its base path, to be read; makes no I/O.

    Args:
        storage: Of the table.
        folder: Its address as Hadoop writes it, which escapes nothing: `file:/data/day=1`.

    Raises:
        UnsupportedTable: The two do not lie in one kind of store, or in one where files outside of a table are not
            read.
    """
    scheme, root = split_scheme(folder)
    schemes = {scheme or LOCAL_SCHEME, split_scheme(storage.base)[0] or LOCAL_SCHEME}
    if schemes == {LOCAL_SCHEME}:
        return LocalStorage(f"/{root.lstrip('/')}", base=folder)
    found = storage.open_elsewhere(folder)
    if found is None:
        message = (
            f"files of the table {storage.base} lie in {folder}: those outside of a table are read here if both are on"
            " disks of this machine, or in buckets of S3, of Google Cloud Storage or of one account of Azure; use JVM"
            " Hudi for this table"
        )
        raise UnsupportedTable(message, path=folder, table=storage.base)
    return found


def register_storage(scheme: str, opener: Opener) -> None:
    """Let `open_storage` open the addresses of a scheme, in this process; the last opener of a scheme serves it.

    Executors need none of it, since they get storages and not addresses. A package that serves a scheme in every
    process where it is installed names its opener under the entry points `hudi_locks.storages` instead.

    Args:
        scheme: As it stands before the colon, in lower case.
        opener: Makes the storage of a base path.

    Raises:
        ConfigError: It is no scheme, or `file`, which this package serves itself.
    """
    if scheme == LOCAL_SCHEME or not _SCHEME.fullmatch(scheme):
        message = (
            f"{scheme!r} cannot be registered: a scheme is letters, digits, +, - and ., and {LOCAL_SCHEME!r} is served"
        )
        raise ConfigError(message, scheme=scheme)
    _registered[scheme] = opener


def _open_local(path: str) -> Storage:
    return LocalStorage(str(Path(local_path(path)).absolute()), base=path)


def _open_other(path: str, scheme: str, options: Mapping[str, object]) -> Storage:
    opener = _registered.get(scheme) or _load_installed(scheme)
    if opener is None:
        known = tuple(sorted({LOCAL_SCHEME, *_registered, *(point.name for point in _list_installed())}))
        message = (
            f"{path}: no storage serves the scheme {scheme!r}; served are plain paths and {', '.join(known)}. Install a"
            f" package that names one under the entry points {ENTRY_POINT_GROUP!r}, or register_storage one"
        )
        raise ConfigError(message, path=path, scheme=scheme, known=known)
    made = opener(path, options)
    if not isinstance(made, Storage):
        message = f"the opener of the scheme {scheme!r} made a {type(made).__name__} of {path}, which is no Storage"
        raise ConfigError(message, path=path, scheme=scheme)
    return made


def _load_installed(scheme: str) -> Callable[[str, Mapping[str, object]], object] | None:
    point = next((point for point in _list_installed() if point.name == scheme), None)
    try:
        return point and point.load()
    except (ImportError, AttributeError) as error:
        message = f"the storage of the scheme {scheme!r} cannot be imported: {error}; its package names {point}"
        raise ProviderLoadError(message, scheme=scheme) from error


def _list_installed() -> Iterable[EntryPoint]:
    """What installed packages serve; imported late, since a plain path needs none of it."""
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINT_GROUP)
