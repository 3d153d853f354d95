"""The provider under judgement: how to make it, what it claims, which back doors it has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hudi_locks import Capability, LockProvider
from hudi_locks.lock import load_provider_class
from hudi_locks_conformance.secrets import find_secrets, show_options

if TYPE_CHECKING:
    from hudi_locks_conformance.servers import Server

__all__ = ["Harness"]

_HOOKS = (
    "peek",
    "expire",
    "steal",
    "corrupt",
    "remove",
    "fail_acquire",
    "fresh_options",
    "unreachable_options",
    "lease_options",
    "short_lease_options",
    "record_form",
    "other_lease_options",
    "slow_renewal_options",
    "tamper",
    "tamper_os",
    "faults",
    "remove_parent",
    "restart",
    "waiters",
)


class Harness:
    """One provider with one set of options. The kit makes many clients of it, in this process and in others.

    Args:
        provider: As in `hoodie.write.lock.provider`. Other processes load it by this name.
        options: The keys that the provider needs.
        seed: For everything that is drawn at random.
        virtual_time: Whether the provider keeps the time of its clock alone; None to believe its hooks.
        contenders: How many take part in a storm, as processes where the provider reaches that far.
        partner: Whom to contend with in group M: `hudi-jvm`, or the full name of a Java class; none if empty.
        server: What the kit started for it, whose link can be cut and which can be started again; None otherwise.
    """

    def __init__(
        self,
        provider: str,
        options: Mapping[str, object] | None = None,
        *,
        seed: int = 0,
        virtual_time: bool | None = None,
        contenders: int = 4,
        partner: str = "",
        server: Server | None = None,
    ) -> None:
        self.name = provider
        self.options: dict[str, str] = {key: str(value) for key, value in (options or {}).items()}
        self.seed = seed
        self.contenders = contenders
        self.partner = partner
        self.server = server
        self._virtual_time = virtual_time
        self.shared: dict[str, Any] = {}

    @cached_property
    def kind(self) -> type[LockProvider]:
        """The provider's class.

        Raises:
            ProviderLoadError: The name does not lead to one.
        """
        return load_provider_class(self.name)

    @property
    def claims(self) -> frozenset[Capability]:
        """What the class claims."""
        return self.kind.capabilities

    @property
    def shown_options(self) -> dict[str, str]:
        """The options as they may be shown."""
        return show_options(self.options, self.kind.secret_options)

    @property
    def secrets(self) -> frozenset[str]:
        """What no output of a run may contain."""
        return find_secrets(self.options, self.kind.secret_options)

    @cached_property
    def hooks(self) -> Any:
        """The class of back doors, or None."""
        return self.kind.conformance_hooks()

    @property
    def virtual_time(self) -> bool:
        """Whether its leases and waits can be judged on a clock that the kit moves."""
        return bool(getattr(self.hooks, "virtual_time", False)) if self._virtual_time is None else self._virtual_time

    def hook_names(self) -> tuple[list[str], list[str]]:
        """The back doors that are there, and those that are missing; what has no meaning for it is neither."""
        there = [name for name in _HOOKS if getattr(self.hooks, name, None) is not None]
        return there, [name for name in _HOOKS if not hasattr(self.hooks, name)]
