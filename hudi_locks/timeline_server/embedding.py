"""The timeline server inside a driver, for one write. Needs the extra `server`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hudi_locks.observe import Metrics
from hudi_locks.storage import Storage
from hudi_locks.timeline_server.app import make_app
from hudi_locks.timeline_server.client import Endpoint
from hudi_locks.timeline_server.server import TimelineServer
from hudi_locks.timeline_server.service import MakeChecker, MarkerService
from hudi_locks.timeline_server.settings import ServerSettings

__all__ = ["embed", "make_server"]


@contextmanager
def embed(
    storage: Storage, settings: ServerSettings, *, make_checker: MakeChecker, metrics: Metrics
) -> Iterator[Endpoint]:
    """Serve markers of a table in this process, with a token of its own; what asks for them.

    Args:
        storage: Of the table.
        settings: Where to listen, and how to batch.
        make_checker: What looks for conflicts of an instant; None where nothing does.
        metrics: Gets what the server does.

    Raises:
        ConfigError: It cannot listen there.
    """
    server = make_server(
        storage,
        settings,
        make_checker=make_checker,
        metrics=metrics,
        token=None,
        place=(settings.host, settings.port),
    )
    with server:
        yield Endpoint(server.url, storage.base, server.token)


def make_server(
    storage: Storage,
    settings: ServerSettings,
    *,
    make_checker: MakeChecker,
    metrics: Metrics,
    token: str | None,
    place: tuple[str, int],
) -> TimelineServer:
    """A server of the markers of a table, not started yet.

    For arguments see `embed` and `TimelineServer`; a place is host and port.

    Raises:
        ConfigError: It cannot listen there.
    """
    service = MarkerService(
        storage,
        files=settings.files,
        interval_s=settings.interval_s,
        make_checker=make_checker,
        metrics=metrics,
    )
    host, port = place
    return TimelineServer(
        lambda token: make_app(
            service, base_path=storage.base, token=token, metrics=metrics, hosts=[host, settings.remote_host]
        ),
        host=host,
        port=port,
        token=token,
    )
