"""From a config string to a provider class."""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from hudi_locks.errors import ProviderLoadError
from hudi_locks.lock.aliases import BUNDLED, EXTRAS, JAVA_CLASSES
from hudi_locks.lock.capability import Capability
from hudi_locks.lock.provider import LockProvider

__all__ = ["ENTRY_POINT_GROUP", "available_providers", "import_extra", "load_provider_class"]

ENTRY_POINT_GROUP: Final = "hudi_locks.providers"
_SHORT_NAMES: Final = dict(JAVA_CLASSES)
_EXTRAS: Final = dict(EXTRAS)


def load_provider_class(name: str | type[LockProvider], *, require: Iterable[Capability] = ()) -> type[LockProvider]:
    """Load the provider class that `name` means; a class is judged likewise.

    Importing a provider runs its code: `name` must come from somebody who may run code here.

    Args:
        name: A short name or entry point ("filesystem"), `package.module:Class`, `package.module.Class`, or a Java
            class that Hudi documents.
        require: Capabilities that the class must claim.

    Raises:
        ProviderLoadError: Nothing is called so (with what is nearly called so), a module is not installed (with the
            command that installs it), or the class is no provider, is abstract, or lacks a capability.
    """
    found = _resolve(name.strip()) if isinstance(name, str) else name
    _check_class(name, found)
    missing = sorted(claim.name for claim in set(require) - found.capabilities)
    if missing:
        raise ProviderLoadError(
            f"lock provider {name!r} does not claim {', '.join(missing)}; it claims"
            f" {', '.join(sorted(claim.name for claim in found.capabilities)) or 'nothing'}",
            provider=name,
            missing=missing,
        )
    return found


def available_providers() -> dict[str, str]:
    """Short names that can be asked for now, each with its module and class, sorted."""
    _find_installed.cache_clear()
    return dict(sorted({**dict(BUNDLED), **_find_installed(tuple(sys.path))}.items()))


@lru_cache(maxsize=8)
def _find_installed(_path: tuple[str, ...]) -> Mapping[str, str]:
    """Short names that distributions installed on this path, which is `sys.path`, offer.

    Remembered, since reading what all of them offer takes longer than to lock and unlock; imported late, since a name
    with a colon needs none of it.
    """
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=ENTRY_POINT_GROUP)}


def import_extra(module: str, *, provider: str) -> Any:
    """Import a module that an extra brings, when `provider` first needs it; a provider's own module needs none.

    Raises:
        ProviderLoadError: It is not installed, with the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ProviderLoadError(_say_import(provider, provider, error), provider=provider, module=module) from error


def _resolve(name: str) -> type[LockProvider]:
    short = _SHORT_NAMES.get(name, name)
    target = short if ":" in short else _find_target(short)
    if ":" in target:
        return _import_class(name, *target.split(":", 1))
    if "." in target and not target.startswith("org.apache.hudi."):
        return _import_class(name, *target.rsplit(".", 1))
    raise ProviderLoadError(_say_unknown(name, short), provider=name)


def _find_target(short: str) -> str:
    """The class of a short name, which may have been installed a moment ago; any other name as it is."""
    known = _find_installed(tuple(sys.path)).get(short) or dict(BUNDLED).get(short)
    return known or (short if "." in short else available_providers().get(short, short))


def _say_unknown(name: str, short: str) -> str:
    if short != name:
        return f"lock provider {name} is {short!r} here, and no installed package offers that name"
    known = [*available_providers(), *_SHORT_NAMES]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or sorted(available_providers())
    return f"no lock provider is called {name!r}; did you mean {' or '.join(near)}?"


def _import_class(name: str, module: str, attribute: str) -> type[LockProvider]:
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise ProviderLoadError(_say_import(name, module, error), provider=name) from error
    try:
        return getattr(found, attribute)  # type: ignore[no-any-return]  # judged by _check_class
    except AttributeError:
        near = difflib.get_close_matches(attribute, dir(found), n=1)
        hint = f"; did you mean {module}:{near[0]}?" if near else ""
        raise ProviderLoadError(f"module {module} has no {attribute}{hint}", provider=name) from None


def _say_import(name: str, module: str, error: ImportError) -> str:
    missing = (error.name or "").partition(".")[0]
    if missing in _EXTRAS:
        return f"lock provider {name!r} needs {missing}: pip install 'hudi-locks[{_EXTRAS[missing]}]'"
    if missing and not module.startswith(missing):
        return f"lock provider {name!r} needs {missing}, which is not installed: pip install {missing}"
    return f"lock provider {name!r}: module {module} cannot be imported: {error}"


def _check_class(name: object, found: object) -> None:
    if not (isinstance(found, type) and issubclass(found, LockProvider)):
        raise ProviderLoadError(f"{name!r} is a {type(found).__name__}, not a class of LockProvider", provider=name)
    if inspect.isabstract(found):
        absent = ", ".join(sorted(found.__abstractmethods__))
        raise ProviderLoadError(f"{name!r} is abstract: it does not define {absent}", provider=name)
