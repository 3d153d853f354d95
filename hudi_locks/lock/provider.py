"""The contract of a lock provider, and how one is loaded by name."""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from typing import Any, ClassVar, Final

from hudi_locks.clock import Clock
from hudi_locks.config import Options
from hudi_locks.errors import ProviderLoadError, Unsupported, refuse_pickling
from hudi_locks.lock.aliases import BUNDLED, EXTRAS, JAVA_CLASSES
from hudi_locks.lock.capability import Capability
from hudi_locks.lock.lease import Holder, Lease, LockScope, LossReason, Owner
from hudi_locks.lock.probe import Finding
from hudi_locks.lock.setup import SetupStep, SetupTerms

__all__ = [
    "ENTRY_POINT_GROUP",
    "LockProvider",
    "LossCallback",
    "available_providers",
    "import_extra",
    "load_provider_class",
]

LossCallback = Callable[[Lease, LossReason], None]


class LockProvider(ABC):
    """One client of one lock service: thread-safe, many leases over one connection. Runs on driver and executors.

    The constructor takes the configuration and does no I/O. Where a method raises, it raises `BackendUnavailable` for
    what another attempt may heal and `BackendRefused` for what none will.

    Attributes:
        capabilities: What this class claims; the conformance kit judges every claim.
        short_options: Short names for `--option` on the command line, each for a full key. Keys listed here
            belong to the provider and are exempt from the misspelling check.
        secret_options: Full keys of the provider's own whose values must never be shown.

    Args:
        options: All keys of the writer, Hudi's own and the provider's.
        clock: The only source of time.
        on_lost: Called at most once for a lease that the provider itself learns to be lost (LOSS_NOTICE).
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    short_options: ClassVar[dict[str, str]] = {}
    secret_options: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        self.options: Options = options if isinstance(options, Options) else Options(options)
        self.clock = clock
        self.on_lost = on_lost

    @abstractmethod
    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Try to acquire `scope` once; None if somebody holds it.

        Waits up to `timeout_s` seconds only when the class claims TIMED_WAIT; otherwise `timeout_s` is ignored and the
        manager polls. An attempt that fails in any way leaves nothing behind that could block others.

        Raises:
            AlreadyHeld: `owner` holds it, and the class claims neither REENTRANT nor REACQUIRE.
            ProviderClosed: After `close`.
        """

    @abstractmethod
    def renew(self, lease: Lease) -> Lease:
        """Extend a lease and return its new form; a lease that never expires is verified.

        Raises:
            LockLost: The hold is no longer ours; its fact `reason` is a `LossReason`.
        """

    @abstractmethod
    def release(self, lease: Lease) -> None:
        """Let go of a lease. Quiet when it is released or lost already; never touches a lock that is not ours."""

    @abstractmethod
    def holder(self, scope: LockScope) -> Holder | None:
        """Who holds `scope` now, asked of the backend; None if nobody does."""

    def list_holders(self) -> list[Holder]:
        """Every hold of the table now, asked of the backend: that of its own lock, and those of file groups.

        Raises:
            Unsupported: The class does not claim LIST.
        """
        raise Unsupported(f"{type(self).__name__} cannot list the locks of a table: it does not claim LIST")

    @abstractmethod
    def close(self) -> None:
        """Release what is held and the connection. May be called twice."""

    def acquire_many(self, scopes: Sequence[LockScope], owner: Owner, timeout_s: float) -> list[Lease] | None:
        """Acquire all of `scopes` or none, in one fixed order so that two callers cannot block each other."""
        held: list[Lease] = []
        complete = False
        try:
            for scope in sorted(scopes, key=str):
                lease = self.try_acquire(scope, owner, timeout_s)
                if lease is None:
                    return None
                held.append(lease)
            complete = True
        finally:
            if not complete:
                self.release_many(held)
        return held

    def release_many(self, leases: Sequence[Lease]) -> None:
        """Let go of several leases, the last one first; one that fails does not keep the others. See `release`."""
        with ExitStack() as stack:
            for lease in leases:
                stack.callback(self.release, lease)

    def break_if(self, scope: LockScope, token: str) -> bool:
        """Remove the hold whose `Holder.token` is `token`; False if another hold, or none, is there now.

        Raises:
            Unsupported: The class does not claim BREAK.
        """
        raise Unsupported(
            f"{type(self).__name__} cannot remove {scope} held under {token!r}: it does not claim BREAK",
            scope=scope,
            token=token,
        )

    @property
    def renewal_interval_s(self) -> float | None:
        """Seconds between two renewals of a hold, where the class has a key of its own; None for Hudi's heartbeat."""
        return None

    def probe(self) -> tuple[Finding, ...]:
        """Try on scratch keys whether the lock service keeps what locks need: for `hudi-locks doctor`.

        Touches no lock, and leaves nothing behind. Empty where a class has nothing to try. What the service does wrong
        is a finding; that it cannot be asked is an error.

        Raises:
            BackendUnavailable: It does not answer.
            BackendRefused: It refuses the requests that locks need.
        """
        return ()

    def set_up(self, terms: SetupTerms) -> tuple[SetupStep, ...]:  # noqa: ARG002  # for subclasses
        """Make what the lock service needs before the first lock, such as a table or a node: for `hudi-locks init`.

        May be called again and again, by several at a time; takes no lock. What cannot be made is a step that failed,
        and ends no other. Empty where a class has nothing to make.

        Raises:
            BackendUnavailable: The service does not answer.
            BackendRefused: It refuses to be looked at.
        """
        return ()

    @classmethod
    def iam_policy(cls, options: Mapping[str, object]) -> Mapping[str, Any] | None:  # noqa: ARG003  # for subclasses
        """The AWS policy document that users of the lock service need, for `hudi-locks doctor --iam`; None without."""
        return None

    @classmethod
    def conformance_hooks(cls) -> Any:
        """Back doors for the conformance kit (peek, expire, steal …); None leaves those checks not-run."""
        return None

    def __enter__(self) -> LockProvider:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        refuse_pickling(self, "send the options, and build a provider where it is needed")


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
