"""A stand-in for a DynamoDB client that can fail at named points; right about the expressions that we send."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from hudi_locks_providers._dynamodb import connection
from hudi_locks_providers.dynamodb import DynamoDBLockProvider

from hudi_locks import ManualClock

Request = dict[str, Any]


class DynamoStub:
    """One table in memory. `before` and `after` see each request (method, parameters) and may raise."""

    def __init__(self) -> None:
        self.items: dict[str, Request] = {}
        self._atomic = threading.Lock()
        self.calls: list[str] = []
        self.requests: list[Request] = []
        self.before: Callable[[str, Request], None] = lambda *_: None
        self.after: Callable[[str, Request], None] = lambda *_: None
        self.table: Request | None = _described("key", "HASH", "S", "ACTIVE")
        self.made: list[Request] = []

    def __getattr__(self, name: str) -> Callable[..., Request]:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(**request: Any) -> Request:
            self.calls.append(name)
            self.requests.append(request)
            self.before(name, request)
            with self._atomic:
                answer: Request = getattr(self, f"_{name}")(request)
            self.after(name, request)
            return answer

        return call

    def close(self) -> None:
        pass

    @staticmethod
    def refusal(code: str, operation: str, *, status: int = 400, **more: Any) -> ClientError:
        """The error that boto3 raises for an answer that says no."""
        return _refusal(code, operation, status=status, **more)

    @staticmethod
    def described(name: str = "key", kind: str = "HASH", type_: str = "S", status: str = "ACTIVE") -> Request:
        """What DescribeTable says of a table with one key attribute."""
        return _described(name, kind, type_, status)

    def lose_answers(self, *methods: str, times: int = 1) -> None:
        """Let that many answers of these methods not come, after their effect."""
        left = [times]

        def lose(method: str, request: Request) -> None:
            if method in methods and left[0]:
                left[0] -= 1
                raise ReadTimeoutError(endpoint_url="http://stub")

        self.after = lose

    def fail(self, error: Exception, *methods: str) -> None:
        """Let these methods, or all, fail before any effect."""

        def fail(method: str, request: Request) -> None:
            if not methods or method in methods:
                raise error

        self.before = fail

    def put_jvm_item(self, version: str = "v1", **more: Any) -> None:
        """What the JVM's client puts for the lock of the table `trips`."""
        self.items["trips"] = {
            "key": {"S": "trips"},
            "ownerName": {"S": "jvm-host189d9444-1015-483b-8122-992889848e13"},
            "leaseDuration": {"S": "20000"},
            "recordVersionNumber": {"S": version},
            **more,
        }

    def count(self, since: int = 0) -> list[str]:
        """The calls so far, without those about the table."""
        return [call for call in self.calls[since:] if call not in ("describe_table", "create_table")]

    def _describe_table(self, request: Request) -> Request:
        if self.table is None:
            raise _refusal("ResourceNotFoundException", "DescribeTable")
        return {"Table": self.table}

    def _create_table(self, request: Request) -> Request:
        if self.table is not None:
            raise _refusal("ResourceInUseException", "CreateTable")
        self.made.append(request)
        self.table = _described("key", "HASH", "S", "ACTIVE")
        return {}

    def _get_item(self, request: Request) -> Request:
        assert request["ConsistentRead"] is True
        return _found(self.items.get(request["Key"]["key"]["S"]))

    def _transact_get_items(self, request: Request) -> Request:
        gets = [part["Get"]["Key"]["key"]["S"] for part in request["TransactItems"]]
        return {"Responses": [_found(self.items.get(key)) for key in gets]}

    def _put_item(self, request: Request) -> Request:
        return self._write("Put", request, "PutItem")

    def _update_item(self, request: Request) -> Request:
        return self._write("Update", request, "UpdateItem")

    def _delete_item(self, request: Request) -> Request:
        return self._write("Delete", request, "DeleteItem")

    def _write(self, kind: str, request: Request, operation: str) -> Request:
        item = self.items.get(_key(kind, request))
        if not _holds(request, item):
            raise _refusal("ConditionalCheckFailedException", operation, Item=item)
        self._apply(kind, request)
        return {"Attributes": self.items.get(_key(kind, request), {})}

    def _transact_write_items(self, request: Request) -> Request:
        parts = [next(iter(part.items())) for part in request["TransactItems"]]
        assert len(parts) <= 100
        reasons = [self._reason(kind, part) for kind, part in parts]
        if any(reason["Code"] != "None" for reason in reasons):
            raise _refusal("TransactionCanceledException", "TransactWriteItems", CancellationReasons=reasons)
        for kind, part in parts:
            self._apply(kind, part)
        return {}

    def _reason(self, kind: str, part: Request) -> Request:
        item = self.items.get(_key(kind, part))
        if _holds(part, item):
            return {"Code": "None"}
        return {"Code": "ConditionalCheckFailed", **_found(item)}

    def _apply(self, kind: str, part: Request) -> None:
        key = _key(kind, part)
        if kind == "Put":
            self.items[key] = part["Item"]
        elif kind == "Delete":
            self.items.pop(key, None)
        else:
            self.items[key] = _updated(self.items.get(key) or {"key": {"S": key}}, part)


def _found(item: Request | None) -> Request:
    return {"Item": item} if item else {}


def _key(kind: str, part: Request) -> str:
    key: str = (part["Item"] if kind == "Put" else part["Key"])["key"]["S"]
    return key


def _holds(part: Request, item: Request | None) -> bool:
    names, values = part.get("ExpressionAttributeNames", {}), part.get("ExpressionAttributeValues", {})
    there = item or {}
    for clause in filter(None, part.get("ConditionExpression", "").split(" AND ")):
        name = names[(re.findall(r"#\w+", clause))[0]]
        wanted = [values[value] for value in re.findall(r":\w+", clause)]
        if clause.startswith("attribute_exists"):
            holds = name in there
        elif clause.startswith("attribute_not_exists"):
            holds = name not in there
        else:
            holds = there.get(name) in wanted
        if not holds:
            return False
    return True


def _updated(item: Request, part: Request) -> Request:
    names, values = part["ExpressionAttributeNames"], part["ExpressionAttributeValues"]
    text = part["UpdateExpression"].removeprefix("SET ")
    if "if_not_exists" in text:
        now = int(item.get("token", values[":floor"])["N"])
        return {**item, "token": {"N": str(now + 1)}}
    steps = [step.split(" = ") for step in text.split(", ")]
    return {**item, **{names[name]: values[value] for name, value in steps}}


def _described(name: str, kind: str, type_: str, status: str) -> Request:
    return {
        "TableStatus": status,
        "KeySchema": [{"AttributeName": name, "KeyType": kind}],
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": type_}],
    }


def _refusal(code: str, operation: str, *, status: int = 400, **more: Any) -> ClientError:
    response = {"Error": {"Code": code, "Message": "planted"}, "ResponseMetadata": {"HTTPStatusCode": status}, **more}
    return ClientError(response, operation)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> DynamoStub:
    made = DynamoStub()
    monkeypatch.setattr(connection, "build_client", lambda *_: made)
    return made


@pytest.fixture
def client(stub: DynamoStub, clock: ManualClock) -> Iterator[Callable[..., DynamoDBLockProvider]]:
    """Make a provider over the stub."""
    made = []

    def make(**options: object) -> DynamoDBLockProvider:
        full = {"hoodie.table.name": "trips", "hoodie.write.lock.wait_time_ms": 60_000, **options}
        made.append(DynamoDBLockProvider(full, clock=clock, on_lost=lambda *_: None))
        return made[-1]

    yield make
    stub.before = stub.after = lambda *_: None
    for provider in made:
        provider.close()
