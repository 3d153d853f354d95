"""The DynamoDB lock on DynamoDB Local: requests and time, beside the bare requests and other lock clients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import boto3
from botocore.config import Config
from hudi_locks_conformance.partners import awslabs
from hudi_locks_conformance.servers import KINDS, Server, start_server
from hudi_locks_providers.dynamodb import DynamoDBLockProvider

from benchmarks.contention import OWNER, crowds, distant, jvm_cycle_us, lock_cycle, many, processes, swarms
from benchmarks.figures import Figure, measure_together
from hudi_locks import Lease, LockManager, LockScope, SystemClock

_ROUNDS, _QUICK_ROUNDS, _REPEATS = 30, 4, 20
_CYCLES, _QUICK_CYCLES = 640, 128
_MANY = 1000
_TABLE, _PEER_TABLE = "hudi_locks", "peer_locks"
_ENDPOINT = "hoodie.write.lock.dynamodb.endpoint_url"
_NAME, _PEER = "dynamodb", "awslabs client (JVM)"


def run(*, quick: bool) -> list[Figure]:
    with start_server(KINDS["dynamodb"]) as server:
        options = {"hoodie.write.lock.provider": "dynamodb", **server.options}
        rounds, cycles = (_QUICK_ROUNDS, _QUICK_CYCLES) if quick else (_ROUNDS, _CYCLES)
        with _service(server) as service:
            figures = [*_count_requests(options), *_cycles(options, service, rounds)]
        figures += crowds(options, _NAME, cycles=cycles)
        figures.append(processes(options, _NAME, partner=awslabs(options), peer=_PEER, holds=cycles // 32))
        figures += swarms(options, _NAME, holds=cycles // 2)
        figures.append(many(lambda: _make(options), _NAME, "no network in between"))
        with distant(server.port) as port:
            far = {**options, _ENDPOINT: f"http://127.0.0.1:{port}"}
            figures.append(many(lambda: _make(far), _NAME, "20 ms away"))
    return figures


@contextmanager
def _service(server: Server) -> Iterator[Any]:
    client = boto3.client(
        "dynamodb",
        endpoint_url=server.options["hoodie.write.lock.dynamodb.endpoint_url"],
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=Config(retries={"total_max_attempts": 1}, parameter_validation=False),
    )
    yield client
    client.close()


def _make(options: Mapping[str, str]) -> DynamoDBLockProvider:
    return DynamoDBLockProvider(options, clock=SystemClock(), on_lost=lambda *_: None)


def _acquire(provider: DynamoDBLockProvider) -> Lease:
    lease = provider.try_acquire(LockScope.table(), OWNER, 0)
    assert lease is not None
    return lease


@contextmanager
def _counting(provider: DynamoDBLockProvider) -> Iterator[list[str]]:
    sent: list[str] = []
    send = provider.connection.send

    def noted(method: str, operation: str, **request: Any) -> dict[str, Any]:
        sent.append(operation)
        return send(method, operation, **request)

    provider.connection.send = noted  # type: ignore[method-assign]
    yield sent
    provider.connection.send = send  # type: ignore[method-assign]


def _count_requests(options: Mapping[str, str]) -> list[Figure]:
    """Requests of a lock cycle with its token, and of a thousand file-group locks."""
    groups = [LockScope.file_group("counted", str(number)) for number in range(_MANY)]
    with closing(_make(options)) as provider:
        provider.release(_acquire(provider))
        with _counting(provider) as cycle:
            provider.release(_acquire(provider))
        with _counting(provider) as many:
            assert provider.acquire_many(groups, OWNER, 0)
    return [
        Figure("requests of a lock cycle, dynamodb", len(cycle), "awslabs client", 3, "requests", "lower"),
        Figure("requests for 1,000 file groups, dynamodb", len(many), "one by one", _MANY, "requests", "lower"),
    ]


def _cycles(options: Mapping[str, str], service: Any, rounds: int) -> list[Figure]:
    with LockManager.from_options(options) as manager, _peer(service) as peer:
        actions = {
            "ours": lock_cycle(manager),
            "conditional put and delete, bare": _bare(service, _put),
            "transaction of two and delete, bare": _bare(service, _transact),
            "python-dynamodb-lock": peer,
        }
        found = measure_together(actions, rounds=rounds, repeats=_REPEATS)
    found[_PEER] = jvm_cycle_us(awslabs(options), rounds * _REPEATS)
    ours = found.pop("ours")
    return [Figure("lock cycle, dynamodb", ours, peer, value, "µs", "lower") for peer, value in found.items()]


def _bare(service: Any, put: Callable[[Any, Mapping[str, Any]], None]) -> Callable[[], None]:
    key = {"S": f"bare {put.__name__}"}
    item = {"key": key, "recordVersionNumber": {"S": "v"}, "leaseDuration": {"S": "60000"}, "data": {"S": "x" * 250}}

    def cycle() -> None:
        put(service, item)
        service.delete_item(
            TableName=_TABLE,
            Key={"key": key},
            ConditionExpression="recordVersionNumber = :v",
            ExpressionAttributeValues={":v": {"S": "v"}},
        )

    return cycle


def _put(service: Any, item: Mapping[str, Any]) -> None:
    service.put_item(TableName=_TABLE, Item=item, **_absent())


def _absent() -> dict[str, Any]:
    return {"ConditionExpression": "attribute_not_exists(#k)", "ExpressionAttributeNames": {"#k": "key"}}


def _transact(service: Any, item: Mapping[str, Any]) -> None:
    count = {
        "TableName": _TABLE,
        "Key": {"key": {"S": "bare counter"}},
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    put = {"TableName": _TABLE, "Item": item, **_absent()}
    service.transact_write_items(TransactItems=[{"Put": put}, {"Update": count}])


@contextmanager
def _peer(service: Any) -> Iterator[Callable[[], None]]:
    """One acquire and release of python-dynamodb-lock, which brings its own table and heartbeat threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from python_dynamodb_lock.python_dynamodb_lock import DynamoDBLockClient

        with_resource = boto3.resource(
            "dynamodb",
            endpoint_url=service.meta.endpoint_url,
            region_name="us-east-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
        )
        DynamoDBLockClient.create_dynamodb_table(service, table_name=_PEER_TABLE)
        client = DynamoDBLockClient(with_resource, table_name=_PEER_TABLE)

        def cycle() -> None:
            client.acquire_lock("peer").release()

        yield cycle
        client.close()
