"""A server as a container, where a Docker engine answers."""

from __future__ import annotations

from typing import Any, Final

from hudi_locks import SystemClock
from hudi_locks_conformance.servers.cache import ServerUnavailable
from hudi_locks_conformance.servers.kind import Container, ServerKind

__all__ = ["ContainerServer", "is_engine_running"]

_POLL_S: Final = 0.1


def is_engine_running() -> bool:
    """Whether a Docker engine answers and testcontainers is installed; a client on the path says nothing."""
    try:
        import docker.errors
        import testcontainers  # noqa: F401  # asked whether it is there
    except ImportError:
        return False
    try:
        return bool(docker.from_env().ping())
    except docker.errors.DockerException:
        return False


class ContainerServer:
    """A server in a container, with the same verbs as one that is a process.

    Args:
        kind: What to run; has a container.
        port: On loopback.
    """

    def __init__(self, kind: ServerKind, port: int) -> None:
        if kind.container is None:
            raise ServerUnavailable(f"{kind.name} has no container; it runs as a process only", server=kind.name)
        self.kind = kind
        self.port = port
        self._container = _make(kind.container, port)

    @property
    def options(self) -> dict[str, str]:
        """The keys with which its provider reaches it."""
        return self.kind.options(self.port)

    def start(self) -> None:
        """Start it, and return when it answers.

        Raises:
            ServerUnavailable: It does not answer in time.
        """
        self._container.start()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Return once it answers.

        Raises:
            ServerUnavailable: It does not answer in time.
        """
        clock = SystemClock()
        ends_s = clock.monotonic() + self.kind.patience_s
        while not self.kind.is_ready(self.port):
            if clock.monotonic() > ends_s:
                self.stop()
                raise ServerUnavailable(
                    f"{self.kind.name} does not answer after {self.kind.patience_s:.0f} s; see docker logs",
                    server=self.kind.name,
                )
            clock.sleep(_POLL_S)

    def stop(self) -> None:
        """End it and remove it."""
        self._container.stop()

    def kill(self) -> None:
        """End it as a crash would; its data stays for `restart`."""
        self._container.get_wrapped_container().kill()

    def restart(self) -> None:
        """Kill it and start it again on its data."""
        self._container.get_wrapped_container().restart(timeout=0)
        self.wait_until_ready()

    def pause(self) -> None:
        """Stop it in its tracks; connections stay open."""
        self._container.get_wrapped_container().pause()

    def resume(self) -> None:
        """Let it go on."""
        self._container.get_wrapped_container().unpause()

    def __enter__(self) -> ContainerServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _make(container: Container, port: int) -> Any:
    from testcontainers.core.container import DockerContainer

    made = DockerContainer(container.image)
    made.ports[f"{container.port}/tcp"] = ("127.0.0.1", port)  # with_bind_ports knows no address
    if container.command:
        made = made.with_command(container.command)
    for name, value in container.env.items():
        made = made.with_env(name, value)
    return made
