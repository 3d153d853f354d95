"""The file lock on HDFS, raced before it is trusted, and beside JVM Hudi's provider, on HDFS and on this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_conformance import Harness, Level
from hudi_locks_conformance.partners import JvmContender, hudi
from hudi_locks_conformance.servers import Server
from hudi_locks_conformance.suite import LockProviderSuite
from hudi_locks_providers.filesystem import FileSystemLockProvider

from hudi_locks import BackendRefused, LockLost, LockManager, LockScope, LossReason, Owner, SystemClock

pytestmark = pytest.mark.servers
PATH, SUPPORT = "hoodie.write.lock.filesystem.path", "hoodie.fs.atomic_creation.support"
JAVA_CLASS = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
TABLE = LockScope.table()
ADA, BOB = Owner("ada", "host-a", 11), Owner("bob", "host-b", 22)
CONTENDERS, ROUNDS = 8, 30


@pytest.fixture
def make(minidfs: Server, request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    made: list[FileSystemLockProvider] = []
    path = f"hdfs://127.0.0.1/locks/conformance/{request.node.originalname}"
    web = {"hudi_locks.filesystem.webhdfs_url": f"http://127.0.0.1:{minidfs.port}"}

    def make_one(**options: object) -> FileSystemLockProvider:
        full = {**web, PATH: path, **options}
        made.append(FileSystemLockProvider(full, clock=SystemClock(), on_lost=lambda *_: None))
        return made[-1]

    yield make_one
    for provider in made:
        provider.close()


def race(work: Callable[[int], bool]) -> int:
    """How many of eight threads that begin at the same moment succeed."""
    barrier, wins, failures = threading.Barrier(CONTENDERS), [], []

    def begin(number: int) -> None:
        barrier.wait(10)
        try:
            wins.append(work(number))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(CONTENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    return sum(wins)


def test_of_eight_that_make_one_file_exactly_one_wins(make: Any) -> None:
    folders = [make()._folder for _ in range(CONTENDERS)]
    for turn in range(ROUNDS):
        files = [folder.lock_file(f"race-{turn}") for folder in folders]
        assert race(lambda number, of=files: of[number].create(b"%d" % number, None) is not None) == 1  # type: ignore[misc]
    assert sorted(folders[0].hdfs.list_names(folders[0]._path)) == sorted(f"race-{turn}" for turn in range(ROUNDS))


def test_of_eight_that_create_in_place_as_the_jvm_does_exactly_one_wins(make: Any) -> None:
    folder = make()._folder

    def create(number: int, name: str) -> bool:
        try:
            folder.hdfs.create(name, b"")
        except FileExistsError:
            return False
        return True

    for turn in range(ROUNDS):
        assert race(lambda number, t=turn: create(number, f"/in-place/{t}")) == 1  # type: ignore[misc]


def test_an_expired_file_is_taken_over_by_one_contender_only(make: Any) -> None:
    clients = [make(**{"hoodie.write.lock.filesystem.expire": 1}) for _ in range(CONTENDERS)]
    for turn in range(ROUNDS // 3):
        dead = clients[0].try_acquire(LockScope.file_group("p", str(turn)), ADA, 0)
        clients[0]._folder.hdfs.set_modified(clients[0].holder_path(dead.scope), 0)
        assert race(lambda number, s=dead.scope: bool(clients[number].try_acquire(s, BOB, 0))) == 1  # type: ignore[misc]


def test_a_renewal_sets_the_time_of_the_file_and_rewrites_nothing(make: Any) -> None:
    provider = make(**{"hoodie.write.lock.filesystem.expire": 1})
    lease = provider.try_acquire(TABLE, ADA, 0)
    hdfs, path = provider._folder.hdfs, provider.holder_path(TABLE)
    hdfs.set_modified(path, 5)
    before = hdfs.find_status(path)
    provider.renew(lease)
    after = hdfs.find_status(path)
    assert after.number == before.number
    assert abs(after.modified_ms - SystemClock().wall_ms()) < 5_000


def test_a_forbidden_folder_is_told_at_once(make: Any) -> None:
    provider = make()
    provider._folder.hdfs._user = "nobody"
    make()._folder.hdfs.make_folders("/locks")
    make()._folder.hdfs._ask("PUT", "/locks", op="SETPERMISSION", permission="700")
    try:
        with pytest.raises(BackendRefused, match="Permission denied: user=nobody"):
            provider.try_acquire(TABLE, ADA, 0)
    finally:
        make()._folder.hdfs._ask("PUT", "/locks", op="SETPERMISSION", permission="777")


@pytest.fixture(params=["hdfs", "this machine"])
def shared(request: pytest.FixtureRequest, tmp_path: Path, jvm: None) -> dict[str, str]:
    """Options of a folder that Hudi's provider and ours can both reach."""
    if request.param == "this machine":
        return {PATH: f"file://{tmp_path}/locks"}
    server = request.getfixturevalue("minidfs")
    return {PATH: f"webhdfs://127.0.0.1:{server.port}/jvm/{tmp_path.name}", SUPPORT: "webhdfs"}


def test_a_jvm_holder_keeps_us_out_and_we_it(shared: dict[str, str]) -> None:
    with LockManager("filesystem", shared) as manager:
        with JvmContender(hudi(JAVA_CLASS, shared), "hold", 1, until_told=True) as theirs:
            assert theirs.wait_held(60)
            assert manager.try_lock() is None
            theirs.let_go()
            held = manager.lock(timeout_s=60)
            theirs.finish()
        with JvmContender(hudi(JAVA_CLASS, shared), "hold", 0.1) as theirs:
            assert not theirs.wait_held(5)
            held.verify()
            held.release()
            assert theirs.wait_held(60)
            theirs.finish()


def test_our_holder_notices_that_the_jvm_removed_its_file(shared: dict[str, str]) -> None:
    """Hudi's unlock deletes the file under the name, whosever it is: exclusion beside it cannot be promised."""
    partner = hudi(JAVA_CLASS, shared)
    with LockManager("filesystem", shared) as manager, JvmContender(partner, "hold", 0, until_told=True) as theirs:
        assert theirs.wait_held(60)
        found = manager.holder()
        assert found is not None
        assert manager.break_if(found.token)
        held = manager.lock(timeout_s=5)
        held.verify()
        theirs.finish()
        with pytest.raises(LockLost) as lost:
            held.verify()
        assert lost.value.reason is LossReason.DELETED


class TestOnHdfs(LockProviderSuite):
    level = max(Level)
    claims = FileSystemLockProvider.capabilities

    @pytest.fixture
    def harness(self, minidfs: Server) -> Harness:
        return Harness("filesystem", minidfs.options, seed=1, server=minidfs)
