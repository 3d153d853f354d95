"""The Hive Metastore provider against a stand-in that loses answers where a test says."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hudi_locks_providers._hive.requests import parse_duration_s
from hudi_locks_providers._wire.hive_lock import LockRow, decode_owner, encode_agent, is_request
from hudi_locks_providers.hive_metastore import HiveMetastoreLockProvider
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TType
from thrift.transport.TTransport import TMemoryBuffer
from thrift_files.libraries.thrift_hive_metastore_client import ttypes

from hudi_locks import BackendRefused, BackendUnavailable, LockLost, LockScope, LossReason, ManualClock, Owner

Client = Callable[..., HiveMetastoreLockProvider]
GROUPS = [LockScope.file_group("city=oslo", f"file-{number}") for number in range(20)]


def test_a_free_lock_costs_two_calls(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    provider = client()
    for _ in range(2):
        lease = provider.try_acquire(table, ada, 0)
        assert lease is not None
        provider.release(lease)
    assert stub.calls == ["get_config_value", "lock", "unlock", "lock", "unlock"]
    assert stub.rows == {}


def test_the_request_is_that_of_the_jvm(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    sent: list[Any] = []
    answer = stub._lock

    def note(request: Any) -> Any:
        sent.append(request)
        return answer(request)

    stub._lock = note
    client().try_acquire(table, ada, 0)
    assert fields_on_wire(sent[0]) == {
        1: [{1: 3, 2: 2, 3: "lake", 4: "Trips", 6: 5}],
        3: sent[0].user,
        4: "host-a",
        5: sent[0].agentInfo,
    }


def fields_on_wire(structure: Any) -> dict[int, Any]:
    """Numbers and values of the fields that are really sent."""
    buffer = TMemoryBuffer()
    structure.write(TBinaryProtocol(buffer))
    return read_fields(TBinaryProtocol(TMemoryBuffer(buffer.getvalue())))


def read_fields(protocol: TBinaryProtocol) -> dict[int, Any]:
    found: dict[int, Any] = {}
    while (field := protocol.readFieldBegin())[1] != TType.STOP:
        found[field[2]] = read_value(protocol, field[1])
    return found


def read_value(protocol: TBinaryProtocol, kind: int) -> Any:
    if kind == TType.LIST:
        inner, size = protocol.readListBegin()
        return [read_value(protocol, inner) for _ in range(size)]
    if kind == TType.STRUCT:
        return read_fields(protocol)
    return {TType.I32: protocol.readI32, TType.I64: protocol.readI64, TType.STRING: protocol.readString}[kind]()


def test_a_waiting_lock_is_withdrawn_at_once(
    client: Client, stub: Any, table: LockScope, ada: Owner, bob: Owner
) -> None:
    assert client().try_acquire(table, ada, 0) is not None
    assert client().try_acquire(table, bob, 0) is None
    assert list(stub.rows) == [1]


def test_a_withdrawal_whose_answer_is_lost_is_made_sure_of(
    client: Client, stub: Any, table: LockScope, ada: Owner, bob: Owner
) -> None:
    first, second = client(), client()
    assert first.try_acquire(table, ada, 0) is not None
    stub.before = raise_at(stub, "unlock")
    with pytest.raises(BackendUnavailable):
        second.try_acquire(table, bob, 0)
    assert len(stub.rows) == 2
    stub.before = lambda _: None
    assert second.try_acquire(table, bob, 0) is None
    assert list(stub.rows) == [1]


def raise_at(stub: Any, method: str) -> Callable[[str], None]:
    def fail(called: str) -> None:
        if called == method:
            raise OSError("planted: no connection")

    return fail


def test_a_granted_lock_whose_answer_is_lost_is_found(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    provider = client()
    stub.lose_answers("lock")
    lease = provider.try_acquire(table, ada, 0)
    assert lease is not None
    assert lease.token == 1
    provider.release(provider.renew(lease))
    assert stub.rows == {}


def test_a_waiting_lock_whose_answer_is_lost_is_withdrawn(
    client: Client, stub: Any, table: LockScope, ada: Owner, bob: Owner
) -> None:
    assert client().try_acquire(table, ada, 0) is not None
    stub.lose_answers("lock")
    assert client().try_acquire(table, bob, 0) is None
    assert list(stub.rows) == [1]


@pytest.mark.parametrize("by_close", [False, True])
def test_a_lock_that_nobody_can_confirm_is_let_go_of_later(
    client: Client, stub: Any, table: LockScope, ada: Owner, by_close: bool
) -> None:
    provider = client()
    stub.lose_answers("lock", "show_locks", times=2)
    with pytest.raises(BackendUnavailable):
        provider.try_acquire(table, ada, 0)
    assert list(stub.rows) == [1]
    if by_close:
        provider.close()
        assert stub.rows == {}
    else:
        assert provider.try_acquire(table, ada, 0) is not None


def test_a_release_whose_answer_is_lost_is_done(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    provider = client()
    lease = provider.try_acquire(table, ada, 0)
    assert lease is not None
    stub.lose_answers("unlock")
    provider.release(lease)
    provider.release(lease)
    assert stub.rows == {}


def test_a_release_that_failed_can_be_repeated(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    provider = client()
    lease = provider.try_acquire(table, ada, 0)
    assert lease is not None
    stub.before = raise_at(stub, "unlock")
    with pytest.raises(BackendUnavailable):
        provider.release(lease)
    stub.before = lambda _: None
    provider.release(lease)
    assert stub.rows == {}


@pytest.mark.parametrize(
    "error", [ttypes.NoSuchLockException(), ttypes.NoSuchTxnException(), ttypes.TxnAbortedException()]
)
def test_a_lock_that_is_gone_is_a_loss(
    client: Client, stub: Any, table: LockScope, ada: Owner, error: Exception
) -> None:
    provider = client()
    lease = provider.try_acquire(table, ada, 0)
    assert lease is not None

    def fail(method: str) -> None:
        if method == "heartbeat":
            raise error

    stub.before = fail
    with pytest.raises(LockLost) as loss:
        provider.renew(lease)
    assert loss.value.reason is LossReason.DELETED


def test_a_passing_failure_of_a_heartbeat_is_no_loss(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    provider = client()
    lease = provider.try_acquire(table, ada, 0)
    assert lease is not None
    for method_error in (OSError("no route"), TApplicationException(TApplicationException.INTERNAL_ERROR, "database")):
        stub.before = raise_once(method_error)
        with pytest.raises(BackendUnavailable):
            provider.renew(lease)
        provider.renew(lease)


def raise_once(error: Exception) -> Callable[[str], None]:
    errors = [error]

    def fail(method: str) -> None:
        if errors:
            raise errors.pop()

    return fail


def test_the_lease_is_the_metastores_own(
    client: Client, stub: Any, clock: ManualClock, table: LockScope, ada: Owner
) -> None:
    provider = client()
    lease = provider.try_acquire(table, ada, 0)
    assert lease is not None
    assert lease.deadline_s == clock.monotonic() + 300
    clock.advance(301)
    with pytest.raises(LockLost) as loss:
        provider.renew(lease)
    assert loss.value.reason is LossReason.EXPIRED


def test_a_catalog_without_locks_is_refused(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    stub.before = raise_always(TApplicationException(TApplicationException.UNKNOWN_METHOD, "Invalid method name"))
    with pytest.raises(BackendRefused, match="Glue"):
        client().try_acquire(table, ada, 0)


def raise_always(error: Exception) -> Callable[[str], None]:
    def fail(method: str) -> None:
        raise error

    return fail


def test_another_metastore_is_asked_when_one_is_down(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    stub.down.add("one")
    provider = client()
    assert provider.try_acquire(table, ada, 0) is not None
    assert stub.reached == [("one", 1), ("two", 9083)]
    stub.down.update({"one", "two"})
    provider.metastore.close()
    with pytest.raises(BackendUnavailable, match="thrift://two:9083, thrift://one:1"):
        provider.holder(table)


def test_many_locks_are_one_call_and_go_with_the_last(client: Client, stub: Any, ada: Owner, bob: Owner) -> None:
    provider, other = client(), client()
    leases = provider.acquire_many(GROUPS, ada, 0)
    assert leases is not None
    assert {lease.scope for lease in leases} == set(GROUPS)
    assert stub.calls.count("lock") == 1
    assert other.acquire_many(GROUPS[5:6], bob, 0) is None
    for lease in leases:
        provider.renew(lease)
    assert stub.calls.count("heartbeat") == 0, "the request itself is fresh proof"
    for lease in leases[:-1]:
        provider.release(lease)
    assert len(stub.rows) == 1
    with pytest.raises(LockLost):
        provider.renew(leases[0])
    provider.release(leases[-1])
    assert stub.rows == {}


def test_locks_taken_together_share_a_heartbeat(client: Client, stub: Any, clock: ManualClock, ada: Owner) -> None:
    provider = client()
    leases = provider.acquire_many(GROUPS, ada, 0)
    clock.advance(60)
    renewed = [provider.renew(lease) for lease in leases or []]
    assert stub.calls.count("heartbeat") == 1
    assert {lease.deadline_s for lease in renewed} == {clock.monotonic() + 300}


def test_a_forged_lease_is_worth_nothing(client: Client, stub: Any, table: LockScope, ada: Owner, bob: Owner) -> None:
    provider, other = client(), client()
    lease = provider.try_acquire(table, ada, 0)
    assert lease is not None
    provider.release(replace(lease, owner=bob))
    other.release(lease)
    assert list(stub.rows) == [1]
    with pytest.raises(LockLost):
        other.renew(lease)


def test_expiry_is_counted_from_the_last_sign_of_life_that_was_seen(
    client: Client, stub: Any, table: LockScope, ada: Owner, clock: ManualClock
) -> None:
    client().try_acquire(table, ada, 0)
    watching = client()
    (row,) = stub.rows[1]
    row.lastheartbeat = clock.wall_ms() - 3_600_000  # the metastore's clock is an hour behind

    def tell() -> int | None:
        holder = watching.holder(table)
        return holder.expires_in_ms if holder else None

    assert tell() == 300_000
    clock.advance(100)
    assert tell() == 200_000
    row.lastheartbeat += 1
    assert tell() == 300_000


def test_holders_are_named(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    provider = client()
    provider.try_acquire(table, ada, 0)
    holder = client().holder(table)
    assert holder is not None
    assert (holder.owner.id, holder.owner.host, holder.owner.pid, holder.owner.application) == (
        "ada",
        "host-a",
        11,
        "etl",
    )
    assert (holder.key, holder.token) == ("lake.Trips", "1")
    assert not client().break_if(table, "2")
    assert client().break_if(table, "1")
    assert client().holder(table) is None


def test_an_agent_fits_into_its_column() -> None:
    owner = Owner("a" * 36, "host", 123456, "main", "Überlandfahrten " * 20)
    agent = encode_agent(owner, "0123456789abcdef")
    row = LockRow(1, "lake", "trips", True, 0, "root", "host", agent, 1, 1)
    assert len(agent) <= 128
    assert is_request(row, "0123456789abcdef")
    assert decode_owner(row).id == owner.id
    jvm = replace(row, agent="Unknown", user="spark")
    assert decode_owner(jvm) == Owner("spark", "host")
    assert not is_request(jvm, "Unknown")


def test_names_of_file_groups_do_not_meet(client: Client) -> None:
    settings = client().settings
    pairs = [("a", "b/c"), ("a/b", "c"), ("", "a/b/c"), ("A", "b/c")]
    names = {settings.table_of(LockScope.file_group(*pair)) for pair in pairs}
    assert len(names) == len(pairs)
    long = client(**{"hoodie.write.lock.hivemetastore.table": "t" * 128}).settings
    assert len(long.table_of(LockScope.file_group("x" * 500, "f"))) <= 128


@pytest.mark.parametrize(
    ("text", "seconds"), [("300s", 300), ("5min", 300), ("300000ms", 300), ("300", 300), ("2h", 7200), ("?", 300)]
)
def test_durations_of_hive(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == pytest.approx(seconds)


def test_a_metastore_that_keeps_names_in_small_letters_is_understood(
    client: Client, stub: Any, table: LockScope, ada: Owner
) -> None:
    provider = client()
    assert provider.try_acquire(table, ada, 0) is not None
    for row in stub.rows[1]:
        row.tablename = row.tablename.lower()
    holder = provider.holder(table)
    assert holder is not None
    assert holder.owner.id == "ada"


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_holds_nothing_and_touches_nothing(
    client: Client, stub: Any, table: LockScope, ada: Owner
) -> None:
    provider = client()
    lease = provider.try_acquire(table, ada, 0)
    assert lease is not None
    pid = os.fork()
    if not pid:
        try:
            provider.release(lease)
            provider.close()
            provider.renew(lease)
        except LockLost as loss:
            os._exit(0 if loss.reason is LossReason.FORKED and stub.rows else 2)
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
