"""The way between some clients and their lock service, to be cut and healed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hudi_locks import LockManager, LockProvider
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.faults.meddler import Meddler, fail_with
from hudi_locks_conformance.faults.proxy import FaultProxy

__all__ = ["Link"]

_CUT = fail_with(TimeoutError("planted by the conformance kit: the link is cut"))


class Link:
    """Makes clients whose way to the lock service can be cut: through a proxy to a server that the kit started.

    For others the hook `tamper` stands in: while the link is cut no request is sent, and no answer comes.

    Args:
        bench: Of the check; closes the clients, and then the proxy.
        options: For the clients.

    Raises:
        NotRun: There is neither.
    """

    def __init__(self, bench: Bench, options: Mapping[str, str]) -> None:
        self._bench = bench
        self._meddler = Meddler()
        self._options = dict(options)
        self._proxy: FaultProxy | None = None
        server = bench.harness.server
        if server is None:
            bench.need_hook("tamper")
            return
        self._proxy = bench.stack.enter_context(FaultProxy(server.port))
        before, behind = server.kind.options(server.port), server.kind.options(self._proxy.port)
        self._options |= {name: value for name, value in behind.items() if before[name] != value}

    def provider(self) -> LockProvider:
        """A client at this end of the link."""
        return self._watch(self._bench.provider(self._options))

    def manager(self) -> LockManager:
        """A manager at this end of the link."""
        made = self._bench.manager(self._options)
        self._watch(made.provider)
        return made

    def _watch(self, provider: LockProvider) -> LockProvider:
        return provider if self._proxy else self._meddler.watch(self._bench, provider)

    def cut(self) -> None:
        """Let nothing through, and break what is connected."""
        if self._proxy is not None:
            self._proxy.cut()
        self._meddler.always = _CUT

    def heal(self) -> None:
        """Let all through again."""
        if self._proxy is not None:
            self._proxy.heal()
        self._meddler.rest()

    @contextmanager
    def broken(self) -> Iterator[None]:
        """Cut within the block, healed after it."""
        self.cut()
        try:
            yield
        finally:
            self.heal()
