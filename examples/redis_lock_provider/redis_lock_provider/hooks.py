"""Back doors for the conformance kit: with them no check that the provider is asked for stays not-run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

from hudi_locks import BackendUnavailable, LockScope


class RedisHooks:
    lease_options: Mapping[str, str] = {"my.redis.lease_s": "2"}  # the server measures leases, so they are short here
    other_lease_options = {"my.redis.lease_s": "4"}
    short_lease_options = {"my.redis.lease_s": "1"}

    def __init__(self, provider: Any) -> None:
        self.provider = provider

    @staticmethod
    def fresh_options(options: Mapping[str, str], name: str) -> dict[str, str]:
        return {**options, "my.redis.prefix": name}

    @staticmethod
    def unreachable_options(options: Mapping[str, str]) -> dict[str, str]:
        return {**options, "my.redis.url": "redis://127.0.0.1:1/0"}

    def peek(self, scope: LockScope) -> bytes | None:
        found: bytes | None = self.provider.send("GET", self.provider.key(scope))
        return found

    def remove(self, scope: LockScope) -> None:
        self.provider.send("DEL", self.provider.key(scope))

    def corrupt(self, scope: LockScope, data: bytes) -> None:
        self.provider.send("SET", self.provider.key(scope), data)

    @contextmanager
    def fail_acquire(self, *, after_effect: bool) -> Iterator[None]:
        send, failures = self.provider.send, iter([True])

        def fail(name: str, *words: object) -> Any:
            if not next(failures, False):  # what cleans up after it passes
                return send(name, *words)
            if after_effect:
                send(name, *words)
            raise BackendUnavailable("planted by the conformance kit")

        with mock.patch.object(self.provider, "send", fail):
            yield
