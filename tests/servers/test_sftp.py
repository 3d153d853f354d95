"""The file lock over SFTP, on asyncssh's server, through fsspec and paramiko."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_providers.filesystem import FileSystemLockProvider

from hudi_locks import AcquireTimeout, LockLost, LockManager, LockScope, Owner, SystemClock

pytestmark = pytest.mark.servers
asyncssh: Any = pytest.importorskip("asyncssh", reason="pip install asyncssh paramiko")
pytest.importorskip("paramiko", reason="pip install asyncssh paramiko")
TABLE = LockScope.table()
ADA, BOB = Owner("ada"), Owner("bob")
PASSWORD = "pass-of-the-test"


async def serve(folder: Path) -> Any:
    class Server(asyncssh.SSHServer):  # type: ignore[misc]
        def begin_auth(self, username: str) -> bool:
            return True

        def password_auth_supported(self) -> bool:
            return True

        def validate_password(self, username: str, password: str) -> bool:
            return (username, password) == ("etl", PASSWORD)

    return await asyncssh.listen(
        "127.0.0.1",
        0,
        server_factory=Server,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        sftp_factory=lambda channel: asyncssh.SFTPServer(channel, chroot=str(folder)),
    )


@pytest.fixture
def options(tmp_path: Path) -> Iterator[dict[str, str]]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(serve(tmp_path), loop).result(20)
    yield {
        "hoodie.write.lock.filesystem.path": f"sftp://etl:{PASSWORD}@127.0.0.1:{server.get_port()}/locks",
        "hoodie.fs.atomic_creation.support": "sftp",
    }
    loop.call_soon_threadsafe(server.close)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


@pytest.fixture
def make(options: dict[str, str]) -> Iterator[Callable[[], Any]]:
    made: list[FileSystemLockProvider] = []

    def make_one() -> FileSystemLockProvider:
        made.append(FileSystemLockProvider(options, clock=SystemClock(), on_lost=lambda *_: None))
        return made[-1]

    yield make_one
    for provider in made:
        provider.close()


def test_the_probe_finds_nothing_wrong(make: Callable[[], Any]) -> None:
    assert [finding.name for finding in make().probe() if not finding.ok] == []


def test_one_holds_it_and_the_next_gets_it(make: Callable[[], Any], tmp_path: Path) -> None:
    one, two = make(), make()
    lease = one.try_acquire(TABLE, ADA, 0)
    assert two.try_acquire(TABLE, BOB, 0) is None
    assert two.holder(TABLE).owner.id == "ada"
    one.renew(lease)
    one.release(lease)
    again = two.try_acquire(TABLE, BOB, 0)
    assert again.token > lease.token
    (tmp_path / "locks" / "lock").unlink()
    with pytest.raises(LockLost):
        two.renew(again)


def test_threads_of_one_manager_share_it_without_taking_each_others_answers(options: dict[str, str]) -> None:
    inside: list[int] = []
    with LockManager("filesystem", options) as manager:

        def work(number: int) -> None:
            for _ in range(3):
                with manager.lock(timeout_s=60):
                    inside.append(number)
                    assert inside.pop() == number

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        assert manager.metrics.snapshot()["lock.acquire.success"] == 12


def test_the_password_is_never_shown(options: dict[str, str]) -> None:
    with LockManager("filesystem", options) as manager, manager.lock(), LockManager("filesystem", options) as other:
        with pytest.raises(AcquireTimeout) as refused:
            other.lock(timeout_s=0)
        assert PASSWORD not in str(refused.value)
        assert PASSWORD not in repr(manager.holder())
