from hudi_locks_conformance.suite import Level, LockProviderSuite


class TestSqlite(LockProviderSuite):
    provider, options, level = "sqlite", {"my.sqlite.file": "{tmp_path}/locks.db"}, Level.FENCING
    checks = ("my_lock_provider.checks",)
