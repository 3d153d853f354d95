"""A writer's options as far as timeline servers read them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hudi_locks.config import Options, write_keys
from hudi_locks.early_conflict import GuardedMarkers
from hudi_locks.errors import ConfigError
from hudi_locks.markers import TIMELINE_SERVER_BASED
from hudi_locks.observe import Metrics
from hudi_locks.timeline_server.checker import Checker
from hudi_locks.timeline_server.client import Endpoint

__all__ = ["TOKEN_VARIABLE", "ServerSettings"]

TOKEN_VARIABLE: Final = "HUDI_LOCKS_TIMELINE_SERVER_TOKEN"  # noqa: S105  # the name of a variable
"""Environment variable with the token of a server that runs by itself, where no option gives it."""


@dataclass(frozen=True)
class ServerSettings:
    """Which timeline server makes the markers of a writer, and how.

    Attributes:
        is_wanted: Whether one is to make them at all.
        is_embedded: Whether the driver runs it.
        host: Where the driver's listens, and executors reach it.
        port: Its port; 0 for any that is free.
        remote_host: Of one that runs by itself; "" if there is none.
        remote_port: Its port.
        token: What that one asks for. Never shown.
        files: How many files of markers an instant has.
        interval_s: How long a batch waits at most for one that is being written.
        initial_delay_s: Before the first look for conflicts.
        period_s: Between two looks.
    """

    is_wanted: bool = False
    is_embedded: bool = True
    host: str = "127.0.0.1"
    port: int = 0
    remote_host: str = ""
    remote_port: int = 0
    token: str = field(default="", repr=False)
    files: int = 20
    interval_s: float = 0.05
    initial_delay_s: float = 0.0
    period_s: float = 30.0

    @classmethod
    def of(cls, options: Mapping[str, object]) -> ServerSettings:
        """Read the options.

        Raises:
            ConfigError: A value is malformed.
        """
        given = Options(options)
        return cls(
            is_wanted=given.get_value(write_keys.MARKERS_TYPE).upper() == TIMELINE_SERVER_BASED,
            is_embedded=given.get_value(write_keys.EMBED_TIMELINE_SERVER),
            host=given.get_value(write_keys.TIMELINE_SERVER_HOST),
            port=given.get_value(write_keys.EMBED_TIMELINE_SERVER_PORT),
            remote_host=given.find(write_keys.REMOTE_TIMELINE_SERVER_HOST) or "",
            remote_port=given.get_value(write_keys.REMOTE_TIMELINE_SERVER_PORT),
            token=given.find(write_keys.TIMELINE_SERVER_TOKEN) or os.environ.get(TOKEN_VARIABLE, ""),
            files=given.get_value(write_keys.MARKERS_BATCH_NUM_THREADS),
            interval_s=given.get_value(write_keys.MARKERS_BATCH_INTERVAL_MS) / 1000,
            initial_delay_s=given.get_value(write_keys.ASYNC_CONFLICT_DETECTOR_INITIAL_DELAY_MS) / 1000,
            period_s=given.get_value(write_keys.ASYNC_CONFLICT_DETECTOR_PERIOD_MS) / 1000,
        )

    def make_checker(self, guarded: GuardedMarkers, metrics: Metrics) -> Checker:
        """What looks for conflicts of a write."""
        times = {"initial_delay_s": self.initial_delay_s, "period_s": self.period_s}
        return Checker(guarded.strategy, guarded.context, metrics=metrics, **times)

    def find_remote(self, base_path: str) -> Endpoint:
        """The server that runs by itself.

        Raises:
            ConfigError: None is named.
        """
        if not self.remote_host:
            off, host = write_keys.EMBED_TIMELINE_SERVER.name, write_keys.REMOTE_TIMELINE_SERVER_HOST.name
            raise ConfigError(f"{off}=false, and {host} names no other: give it, or leave both out", key=host)
        host = f"[{self.remote_host}]" if ":" in self.remote_host else self.remote_host
        return Endpoint(f"http://{host}:{self.remote_port}", base_path, self.token)
