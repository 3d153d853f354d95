"""The storage lock on real object stores, each raced through obstore before it is trusted."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hudi_locks_conformance import Harness, Level
from hudi_locks_conformance.servers import Server
from hudi_locks_conformance.suite import LockProviderSuite
from hudi_locks_providers._crowd import run_all
from hudi_locks_providers._storage.objects import PreconditionFailed
from hudi_locks_providers.storage import StorageLockProvider

from hudi_locks import BackendRefused, LockScope, Owner, SystemClock

pytestmark = pytest.mark.servers
SERVICES = ("versitygw", "fake_gcs", "azurite")
ADA, BOB = Owner("ada", "host-a", 11), Owner("bob", "host-b", 22)
TABLE = LockScope.table()
CONTENDERS, KEYS, INCREMENTS = 8, 100, 12


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest) -> Server:
    server: Server = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def make(service: Server, request: pytest.FixtureRequest) -> Iterator[Callable[..., StorageLockProvider]]:
    made: list[StorageLockProvider] = []
    base = f"{service.options['hoodie.base.path']}/{request.node.originalname}"

    def make_one(**options: str) -> StorageLockProvider:
        full = {**service.options, "hoodie.base.path": base, **options}
        made.append(StorageLockProvider(full, clock=SystemClock(), on_lost=lambda *_: None))
        return made[-1]

    yield make_one
    for provider in made:
        provider.close()


def wins(provider: StorageLockProvider, key: str, data: bytes, mode: Any) -> bool:
    try:
        provider._objects.put(key, data, mode)
    except PreconditionFailed:
        return False
    return True


def together(work: Callable[[int], Any]) -> list[Any]:
    """What eight threads that begin at the same moment return."""
    barrier = threading.Barrier(CONTENDERS)

    def begin(number: int) -> Any:
        barrier.wait(10)
        return work(number)

    return run_all([lambda n=number: begin(n) for number in range(CONTENDERS)])  # type: ignore[misc]


def test_of_eight_creates_of_one_key_exactly_one_wins(make: Any) -> None:
    clients = [make() for _ in range(CONTENDERS)]

    def contend(number: int) -> list[bool]:
        return [wins(clients[number], f"race/{key}", b"%d" % number, "create") for key in range(KEYS)]

    outcomes = together(contend)
    assert [sum(won) for won in zip(*outcomes, strict=True)] == [1] * KEYS


def test_a_compare_and_set_counter_loses_no_increment(make: Any) -> None:
    clients = [make() for _ in range(CONTENDERS)]
    clients[0]._objects.put("counter", b"0", "overwrite")

    def increment(number: int) -> int:
        done, objects = 0, clients[number]._objects
        while done < INCREMENTS:
            seen = objects.read("counter")
            done += wins(clients[number], "counter", b"%d" % (int(seen.data) + 1), seen.version)
        return done

    assert together(increment) == [INCREMENTS] * CONTENDERS
    assert int(clients[0]._objects.read("counter").data) == INCREMENTS * CONTENDERS


def test_the_probe_finds_nothing_wrong(make: Any) -> None:
    findings = make().probe()
    assert [finding.name for finding in findings if not finding.ok] == []
    assert findings[-1].name == "clock-offset"


def test_a_record_of_the_jvm_keeps_us_out_until_it_ends(make: Any) -> None:
    provider, now_ms = make(), SystemClock().wall_ms()
    for expired, until_ms, free in ((False, now_ms + 60_000, False), (False, now_ms - 60_000, True), (True, 0, True)):
        fields = {"expired": expired, "validUntil": until_ms, "owner": "00000000-0000-4000-8000-000000000001"}
        provider._objects.put(provider.key(TABLE), json.dumps(fields).encode(), "overwrite")
        lease = make().try_acquire(TABLE, ADA, 0)
        assert bool(lease) is free


def test_a_thousand_file_groups_at_once_or_none(make: Any) -> None:
    patient = {"hoodie.write.lock.storage.validity.timeout.secs": "600"}  # with long leases answers may take longer
    one, two = make(**patient), make(**patient)
    scopes = [LockScope.file_group("p=1", str(number)) for number in range(200)]
    leases = one.acquire_many(scopes, ADA, 0)
    assert two.acquire_many(scopes[150:], BOB, 0) is None
    for lease in leases:
        one.release(lease)
    again = two.acquire_many(scopes, BOB, 0)
    assert all(new.token > old.token for old, new in zip(leases, again, strict=True))


def test_a_missing_bucket_is_named(make: Any, service: Server) -> None:
    base = service.options["hoodie.base.path"].replace("locks", "nobody", 1)
    with pytest.raises(BackendRefused, match="there is no such bucket"):
        make(**{"hoodie.base.path": base}).try_acquire(TABLE, ADA, 0)


def test_wrong_credentials_are_told_at_once(make: Any, service: Server) -> None:
    if "gs://" in service.options["hoodie.base.path"]:
        assert service.options["hudi_locks.storage.skip_signature"] == "true"  # the emulator asks for none
        return
    wrong = {"hoodie.aws.secret.key": "wrong", "hoodie.aws.session.token": ""}
    if "abfss://" in service.options["hoodie.base.path"]:
        connection = service.options["hoodie.write.lock.azure.connection.string"]
        wrong = {"hoodie.write.lock.azure.connection.string": connection.replace("Eby8", "AAAA")}
    with pytest.raises(BackendRefused, match="check the credentials"):
        make(**wrong).try_acquire(TABLE, ADA, 0)


def test_names_with_blanks_and_other_alphabets(make: Any, service: Server) -> None:
    base = f"{service.options['hoodie.base.path']}/größe=1/a b+c"
    one, two = (make(**{"hoodie.base.path": base}) for _ in range(2))
    lease = one.try_acquire(TABLE, ADA, 0)
    assert two.holder(TABLE).owner == ADA
    one.release(lease)
    assert two.try_acquire(TABLE, BOB, 0)


class TestOnVersityGw(LockProviderSuite):
    level = max(Level)
    claims = StorageLockProvider.capabilities

    @pytest.fixture
    def harness(self, versitygw: Server) -> Harness:
        return Harness("storage", versitygw.options, seed=1, server=versitygw)


class TestOnFakeGcs(LockProviderSuite):
    level = max(Level)
    claims = StorageLockProvider.capabilities

    @pytest.fixture
    def harness(self, fake_gcs: Server) -> Harness:
        return Harness("storage", fake_gcs.options, seed=1, server=fake_gcs)


class TestOnAzurite(LockProviderSuite):
    level = max(Level)
    claims = StorageLockProvider.capabilities

    @pytest.fixture
    def harness(self, azurite: Server) -> Harness:
        return Harness("storage", azurite.options, seed=1, server=azurite)
