import os

from hudi_locks_conformance.suite import Level, LockProviderSuite


class TestPostgresql(LockProviderSuite):
    """On the server that `POSTGRESQL_DSN` names; without it, on the one of this machine."""

    provider, level = "postgresql", Level.FENCING
    options = {"my.postgresql.dsn": os.environ.get("POSTGRESQL_DSN", "host=127.0.0.1 dbname=postgres user=postgres")}
