"""What a kind of server is: how it is fetched, started, and reached."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

__all__ = ["QUICK_JVM", "Container", "Launch", "ServerKind"]

QUICK_JVM: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""What lets a JVM that lives for minutes start sooner, and take less of the processor."""


@dataclass(frozen=True)
class Launch:
    """A command that runs the server in the foreground.

    Attributes:
        words: The command.
        env: On top of this process's environment.
    """

    words: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Container:
    """The same server as a container.

    Attributes:
        image: With its tag.
        port: On which it listens inside.
        command: Replaces the image's own; empty to keep that.
        env: Its environment.
    """

    image: str
    port: int
    command: str = ""
    env: Mapping[str, str] = field(default_factory=dict)


class ServerKind(ABC):
    """One kind of lock service, with its settings as attributes.

    Attributes:
        name: What people call it on the command line.
        provider: Short name of the lock provider that it serves.
        container: How it runs in a container; None if it is only run as a process.
        patience_s: Longest wait for its first answer.
    """

    name: ClassVar[str]
    provider: ClassVar[str]
    container: ClassVar[Container | None] = None
    patience_s: ClassVar[float] = 60.0

    @abstractmethod
    def fetch(self) -> None:
        """Get all that it needs into the cache.

        Raises:
            ServerUnavailable: This machine lacks a tool; says which command installs it.
        """

    @abstractmethod
    def launch(self, folder: Path, port: int) -> Launch:
        """Write its configuration into `folder` and give the command; the same folder again keeps its data.

        Args:
            folder: Its own, there already.
            port: On loopback.
        """

    @abstractmethod
    def is_ready(self, port: int) -> bool:
        """Whether it answers its own protocol on loopback."""

    @abstractmethod
    def options(self, port: int) -> dict[str, str]:
        """The keys with which its provider reaches it, fit for a quick test."""

    def prepare(self, port: int) -> None:  # noqa: B027  # most need nothing
        """Make what a client expects to find, such as a bucket; called once it is ready."""
