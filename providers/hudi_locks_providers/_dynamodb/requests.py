"""The requests that make, renew, remove and read locks. Each is one round trip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hudi_locks.errors import BackendRefused
from hudi_locks_providers._dynamodb.connection import CONDITION_FAILED, ConditionFailed, Connection, Reason
from hudi_locks_providers._dynamodb.failures import NO_TABLE
from hudi_locks_providers._wire.dynamodb_item import (
    IS_RELEASED,
    KEY,
    LEASE_DURATION,
    OWNER_NAME,
    RECORD_VERSION,
    TOKEN,
    Item,
    decode_token,
)

__all__ = ["MOST_ACTIONS", "DynamoRequests", "Instead"]

MOST_ACTIONS: Final = 100
"""How many parts one transaction may have."""
_NAMES: Final = {"#key": KEY, "#released": IS_RELEASED, "#version": RECORD_VERSION, "#owner": OWNER_NAME}


@dataclass(frozen=True)
class Instead:
    """What a lock item takes the place of: nothing, an item marked as released, or one version of an item.

    Attributes:
        version: The record version number; None for nothing.
        released: Whether an item marked as released is meant, whatever its version.
    """

    version: str | None = None
    released: bool = False

    def as_condition(self) -> dict[str, Any]:
        """The condition under which the item is put."""
        if self.released:
            return _condition("attribute_exists(#released)")
        if self.version is None:
            return _condition("attribute_not_exists(#key)")
        return _condition("#version = :version", {":version": {"S": self.version}})


def _condition(expression: str, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
    names = {name: attribute for name, attribute in _NAMES.items() if name in expression}
    condition = {"ConditionExpression": expression, "ExpressionAttributeNames": names}
    return {**condition, "ExpressionAttributeValues": dict(values)} if values else condition


def _own(versions: Sequence[str], owner_name: str) -> dict[str, Any]:
    """The condition that an item is there and ours: of our name, under a version that we may have given it."""
    values = {f":version{number}": {"S": version} for number, version in enumerate(versions)}
    version = f"= {next(iter(values))}" if len(values) == 1 else f"IN ({', '.join(values)})"
    return _condition(f"#owner = :owner AND #version {version}", {**values, ":owner": {"S": owner_name}})


_TELL: Final = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
"""So that a refusal shows the holder without a read."""


class DynamoRequests:
    """Requests to one lock table. Raises what `Connection.send` raises."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._table = connection.settings.table

    def _send(self, method: str, operation: str, **request: Any) -> dict[str, Any]:
        return self._connection.send(method, operation, **request)

    def _change(self, method: str, operation: str, **request: Any) -> None:
        """Change items that are there; without the table there are none."""
        try:
            self._send(method, operation, **request)
        except BackendRefused as error:
            if error.facts.get("code") != NO_TABLE:
                raise
            raise ConditionFailed([Reason(CONDITION_FAILED)]) from error

    def find(self, key: str) -> Item | None:
        """The item, read consistently; None if there is none, or no table."""
        wanted = {KEY: {"S": key}}
        try:
            answer = self._send("get_item", "GetItem", TableName=self._table, Key=wanted, ConsistentRead=True)
        except BackendRefused as error:
            if error.facts.get("code") != NO_TABLE:
                raise
            return None
        found: Item | None = answer.get("Item")
        return found

    def find_by_prefix(self, prefix: str) -> list[Item]:
        """All items whose key begins so, read consistently out of the whole lock table; none if there is no table."""
        wanted = {
            "TableName": self._table,
            "ConsistentRead": True,
            "FilterExpression": "begins_with(#key, :prefix)",
            "ExpressionAttributeNames": {"#key": KEY},
            "ExpressionAttributeValues": {":prefix": {"S": prefix}},
        }
        found: list[Item] = []
        page: dict[str, Any] = {}
        while True:
            try:
                answer = self._send("scan", "Scan", **wanted, **page)
            except BackendRefused as error:
                if error.facts.get("code") != NO_TABLE:
                    raise
                return []
            found += answer.get("Items", [])
            if "LastEvaluatedKey" not in answer:
                return found
            page = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def find_all(self, keys: Sequence[str]) -> list[Item | None]:
        """Several items in order, in one round trip unless one of them is being written."""
        gets = [{"Get": {"TableName": self._table, "Key": {KEY: {"S": key}}}} for key in keys]
        try:
            answer = self._send("transact_get_items", "TransactGetItems", TransactItems=gets)
        except ConditionFailed:  # somebody writes one of them at this moment
            return [self.find(key) for key in keys]
        return [part.get("Item") for part in answer["Responses"]]

    def put(self, item: Item, instead: Instead) -> None:
        """Put a lock item in place of what `instead` names."""
        condition = instead.as_condition()
        self._send("put_item", "PutItem", TableName=self._table, Item=item, **condition, **_TELL)

    def advance(self, counter: str, floor: int) -> int:
        """Step a counter of fencing tokens and return it; one that is missing begins above `floor`."""
        answer = self._send(
            "update_item",
            "UpdateItem",
            TableName=self._table,
            Key={KEY: {"S": counter}},
            UpdateExpression="SET #token = if_not_exists(#token, :floor) + :one",
            ExpressionAttributeNames={"#token": TOKEN},
            ExpressionAttributeValues={":floor": {"N": str(floor)}, ":one": {"N": "1"}},
            ReturnValues="UPDATED_NEW",
        )
        return decode_token(answer["Attributes"], counter) or 0

    def put_all(self, puts: Sequence[tuple[Item, Instead]], counters: Mapping[str, tuple[int | None, int]]) -> None:
        """Put lock items and step counters, all or nothing.

        Args:
            puts: Each item, with what it takes the place of.
            counters: For each counter its value that is expected (None if it is missing), and the next one. A refusal
                has its reasons in this order, after those of `puts`.
        """
        parts = [{"Put": {"TableName": self._table, "Item": item, **at.as_condition(), **_TELL}} for item, at in puts]
        steps = [{"Update": self._step(counter, *values)} for counter, values in counters.items()]
        self._send("transact_write_items", "TransactWriteItems", TransactItems=[*parts, *steps])

    def _step(self, counter: str, last: int | None, following: int) -> dict[str, Any]:
        values = {":next": {"N": str(following)}, **({} if last is None else {":last": {"N": str(last)}})}
        return {
            "TableName": self._table,
            "Key": {KEY: {"S": counter}},
            "UpdateExpression": "SET #token = :next",
            "ConditionExpression": "attribute_not_exists(#token)" if last is None else "#token = :last",
            "ExpressionAttributeNames": {"#token": TOKEN},
            "ExpressionAttributeValues": values,
            **_TELL,
        }

    def renew(self, key: str, owner_name: str, versions: Sequence[str], *, version: str, lease_ms: int) -> None:
        """Give our own item a new version, whichever of ours it has now."""
        own = _own(versions, owner_name)
        own["ExpressionAttributeNames"]["#lease"] = LEASE_DURATION
        own["ExpressionAttributeValues"] |= {":lease": {"S": str(lease_ms)}, ":next": {"S": version}}
        self._change(
            "update_item",
            "UpdateItem",
            TableName=self._table,
            Key={KEY: {"S": key}},
            UpdateExpression="SET #lease = :lease, #version = :next",
            **own,
            **_TELL,
        )

    def remove(self, key: str, owner_name: str, versions: Sequence[str]) -> None:
        """Delete our own item, whichever of our versions it has."""
        own = _own(versions, owner_name)
        self._change("delete_item", "DeleteItem", TableName=self._table, Key={KEY: {"S": key}}, **own, **_TELL)

    def remove_found(self, item: Item) -> None:
        """Delete an item as it was seen, and no other one; also one that is no lock."""
        version = item.get(RECORD_VERSION)
        condition = (
            _condition("#version = :version", {":version": version})
            if version
            else _condition("attribute_exists(#key) AND attribute_not_exists(#version)")
        )
        key = {KEY: item[KEY]}
        self._change("delete_item", "DeleteItem", TableName=self._table, Key=key, **condition, **_TELL)

    def remove_all(self, owned: Sequence[tuple[str, str, Sequence[str]]]) -> None:
        """Delete several of our own items (key, owner name, versions), all or none of them."""
        parts = [
            {"Delete": {"TableName": self._table, "Key": {KEY: {"S": key}}, **_own(versions, name), **_TELL}}
            for key, name, versions in owned
        ]
        self._change("transact_write_items", "TransactWriteItems", TransactItems=parts)
