"""Which two providers are chained, and what each of them is told."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hudi_locks.config import Options, check_options, lock_keys
from hudi_locks.errors import ConfigError
from hudi_locks.lock import Capability, LockProvider, load_provider_class

__all__ = ["NEEDED", "PLACES", "Member", "combine_claims", "find_members", "merge_policies"]

PLACES: Final = (("first", lock_keys.CHAIN_FIRST), ("second", lock_keys.CHAIN_SECOND))
NEEDED: Final = frozenset(
    {
        Capability.SCOPE_HOSTS,
        Capability.LEASE,
        Capability.RENEWAL,
        Capability.FENCING,
        Capability.OWNER_INFO,
        Capability.BREAK,
        Capability.LINEARIZABLE,
        Capability.CREATES_BACKEND,
        Capability.FORK_AWARE,
    }
)
"""What both must claim, so that the chain can claim it for any two."""
_OF_BOTH: Final = frozenset({Capability.CLOCK_FREE, Capability.LOSS_NOTICE, Capability.SESSION})
_MORE_OF_BOTH: Final = frozenset({Capability.SURVIVES_RECONNECT, Capability.JVM_COMPATIBLE})
_COUNT: Final = 2


@dataclass(frozen=True)
class Member:
    """One of the two.

    Attributes:
        place: "first" or "second".
        name: As it was asked for.
        kind: Its class.
        options: What it is told.
    """

    place: str
    name: str
    kind: type[LockProvider]
    options: Options


def find_members(options: Mapping[str, object]) -> tuple[Member, Member]:
    """The two providers that `options` name; each gets all keys that are not the other's alone.

    Raises:
        ConfigError: They are not two, or one is not fit for it, or both are one lock.
        ProviderLoadError: One cannot be loaded.
    """
    given = options if isinstance(options, Options) else Options(options)
    names = [name.strip() for name in given.get_value(lock_keys.CHAIN_PROVIDERS).split(",") if name.strip()]
    if len(names) != _COUNT:
        raise ConfigError(
            f"{lock_keys.CHAIN_PROVIDERS.name}={','.join(names)} names {len(names)} providers instead of two, the old"
            " one and the new one",
            key=lock_keys.CHAIN_PROVIDERS.name,
        )
    first, second = (_make(given, name, *place) for name, place in zip(names, PLACES, strict=True))
    if first.kind is second.kind and _without_name(first) == _without_name(second):
        raise ConfigError(
            f"both providers of {lock_keys.CHAIN_PROVIDERS.name} are the same lock, which would wait for itself; give"
            f" one of them keys of its own, as in {lock_keys.CHAIN_FIRST}<key>",
            key=lock_keys.CHAIN_PROVIDERS.name,
        )
    return first, second


def _make(given: Options, name: str, place: str, prefix: str) -> Member:
    kind = _load(name)
    missing = sorted(claim.name for claim in NEEDED - kind.capabilities)
    if missing:
        raise ConfigError(
            f"lock provider {name!r} cannot be chained: it does not claim {', '.join(missing)}",
            key=lock_keys.CHAIN_PROVIDERS.name,
            missing=missing,
        )
    shared = {key: value for key, value in given.items() if not key.startswith("hudi_locks.chain.")}
    own = {key.removeprefix(prefix): value for key, value in given.items() if key.startswith(prefix)}
    merged = Options({**shared, **own, lock_keys.PROVIDER.name: name})
    return Member(place, name, kind, check_options(merged, known=merged))


@functools.lru_cache
def _load(name: str) -> type[LockProvider]:
    """Looked up once: it reads what distributions are installed, and a constructor reads no files."""
    return load_provider_class(name)


def _without_name(member: Member) -> dict[str, str]:
    return {key: value for key, value in member.options.items() if key != lock_keys.PROVIDER.name}


def combine_claims(*claims: frozenset[Capability]) -> frozenset[Capability]:
    """What holds for locks with these claims that are held together."""
    both = frozenset.intersection(*claims)
    either = frozenset.union(*claims)
    return NEEDED | (both & (_OF_BOTH | _MORE_OF_BOTH)) | (either & {Capability.NEEDS_CLOCK_SYNC})


def merge_policies(policies: list[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """One AWS policy document of several; None if there are none."""
    found = [policy for policy in policies if policy is not None]
    if not found:
        return None
    return {**found[0], "Statement": [statement for policy in found for statement in policy["Statement"]]}
