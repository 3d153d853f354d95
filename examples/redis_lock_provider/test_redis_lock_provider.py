import os

from hudi_locks_conformance.suite import Level, LockProviderSuite


class TestRedis(LockProviderSuite):
    """On the server that `REDIS_URL` names; without it, on the one of this machine."""

    provider, level = "redis", Level.FENCING
    options = {"my.redis.url": os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")}
