"""The timeline server of a write: started with it, ended before its publish. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field

from hudi_locks.early_conflict import GuardedMarkers
from hudi_locks.errors import ConfigError
from hudi_locks.markers import FALLBACK_NUMBERS, FallbackMarkers, ServerFiles, StagedFiles
from hudi_locks.observe import TIMELINE_SERVER_FALLBACK, Metrics
from hudi_locks.redaction import open_log
from hudi_locks.timeline_server.client import Endpoint, ServerMarkers, Unreachable
from hudi_locks.timeline_server.settings import ServerSettings
from hudi_locks.transaction import Transaction

__all__ = ["MarkerHost"]

_log = open_log(__name__)


@dataclass(frozen=True)
class MarkerHost:
    """Gives the tasks of each write what makes their markers by a timeline server.

    Attributes:
        settings: Which server.
        metrics: Gets what the server does, and how often it could not be reached.
    """

    settings: ServerSettings
    metrics: Metrics = field(default_factory=Metrics)

    @contextmanager
    def open(self, transaction: Transaction) -> Iterator[StagedFiles]:
        """What makes the data files of a write; send it to the executors. Ends when they are done.

        Where no timeline server can be had, the markers are direct ones, and a warning says so.
        """
        fallback = FallbackMarkers(transaction.markers.storage, transaction.instant)
        guarded = transaction.guard(fallback)
        with self._reach(transaction, guarded) as endpoint:
            if endpoint is None:
                yield transaction.files
                return
            yield transaction.files_by(ServerMarkers(endpoint, transaction.instant, fallback=guarded or fallback))
        self._count_lost(transaction)

    @contextmanager
    def _reach(self, transaction: Transaction, guarded: GuardedMarkers | None) -> Iterator[Endpoint | None]:
        """A server that answers; None after a warning."""
        with ExitStack() as stack:
            try:
                endpoint = stack.enter_context(self._serve(transaction, guarded))
                endpoint.check(transaction.instant)
            except (ConfigError, ImportError, Unreachable) as error:
                stack.close()
                self._warn(transaction, error)
                yield None
                return
            yield endpoint

    def _warn(self, transaction: Transaction, error: Exception) -> None:
        self.metrics.count(TIMELINE_SERVER_FALLBACK)
        advice = "; install hudi-locks[server]" if isinstance(error, ImportError) else ""
        _log.warning("%s makes direct markers, for want of a timeline server: %s%s", transaction.instant, error, advice)

    def _serve(self, transaction: Transaction, guarded: GuardedMarkers | None) -> AbstractContextManager[Endpoint]:
        storage = transaction.markers.storage
        if not self.settings.is_embedded:
            return nullcontext(self.settings.find_remote(storage.base))
        from hudi_locks.timeline_server.embedding import embed  # an extra

        checker = None if guarded is None else self.settings.make_checker(guarded, self.metrics)
        return embed(storage, self.settings, make_checker=lambda _: checker, metrics=self.metrics)

    def _count_lost(self, transaction: Transaction) -> None:
        """Tasks that lost the server left files of their own."""
        markers = transaction.markers
        numbers = ServerFiles(markers.storage, markers.folder).numbers()
        if lost := sum(number in FALLBACK_NUMBERS for number in numbers):
            self.metrics.count(TIMELINE_SERVER_FALLBACK)
            _log.warning("%d tasks of %s did without the timeline server", lost, transaction.instant)
