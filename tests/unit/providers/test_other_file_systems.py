"""Lock files where fsspec reaches, and where they are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fsspec
import pytest

from hudi_locks import BackendRefused, BackendUnavailable, ConfigError, LockLost, LockManager, ManualClock, Owner

Make = Callable[..., Any]


@pytest.mark.parametrize("path", ["s3://bucket/locks", "gs://b/l", "memory://locks"])
def test_a_scheme_without_atomic_create_is_refused(make: Make, path: str) -> None:
    with pytest.raises(ConfigError, match=r"not known to create files atomically.*hoodie.fs.atomic_creation.support"):
        make(path=path)


def test_a_scheme_that_fsspec_cannot_open_is_final(make: Make, table: Any, ada: Owner) -> None:
    with pytest.raises(BackendRefused, match=r"viewfs://cluster/locks: fsspec cannot open it"):
        make(path="viewfs://cluster/locks").try_acquire(table, ada, 0)


@pytest.mark.parametrize(
    ("told", "raised", "said"),
    [
        ('RPCError("org.apache.hadoop.security.AccessControlException", "no\\n\\tat a.b")', BackendRefused, "no$"),
        ('RPCError("org.apache.hadoop.ipc.RetriableException", "later\\n\\tat a.b")', BackendUnavailable, "later$"),
    ],
)
def test_what_hdfs_native_raises_is_an_error_of_the_service(
    make: Make, table: Any, ada: Owner, monkeypatch: Any, told: str, raised: type[Exception], said: str
) -> None:
    fs = fsspec.filesystem("memory", skip_instance_cache=True)
    fs.exists = lambda *_: (_ for _ in ()).throw(RuntimeError(told))
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda url: (fs, "/hdfs"))
    with pytest.raises(raised, match=said):
        make(path="hdfs://locks").try_acquire(table, ada, 0)


@pytest.mark.parametrize("scheme", ["memory", "hdfs"])
def test_other_file_systems_through_fsspec(
    scheme: str, table: Any, ada: Owner, bob: Owner, clock: ManualClock, monkeypatch: Any
) -> None:
    if scheme == "hdfs":
        monkeypatch.setattr(fsspec.core, "url_to_fs", lambda url: (no_replace(fsspec.filesystem("memory")), "/hdfs"))
    options = {
        "hoodie.write.lock.filesystem.path": f"{scheme}://locks",
        "hoodie.fs.atomic_creation.support": "memory",
        "hoodie.write.lock.filesystem.expire": 0,
    }
    one, two = (LockManager("filesystem", options, clock=clock).provider for _ in range(2))
    lease = one.try_acquire(table, ada, 0)
    assert lease is not None
    assert two.try_acquire(table, bob, 0) is None
    assert one.renew(lease).token == lease.token
    holder = two.holder(table)
    assert holder is not None
    assert holder.owner == ada
    two.close()
    one.release(lease)
    again = one.try_acquire(table, ada, 0)
    assert again is not None
    assert (again.token or 0) > (lease.token or 0)
    assert two.break_if(table, holder.token) is False
    shown = two.holder(table)
    assert shown is not None
    assert two.break_if(table, shown.token) is True
    with pytest.raises(LockLost):
        one.renew(again)


def no_replace(fs: Any) -> Any:
    """A memory file system whose moves never replace, as on HDFS."""
    move = type(fs).mv

    def mv(source: str, target: str) -> None:
        if fs.exists(target):
            raise FileExistsError(target)
        move(fs, source, target)

    fs.mv = mv
    return fs
