"""The lock table: found and judged once, and made when it is missing."""

from __future__ import annotations

import threading
from typing import Any, Final

from hudi_locks.clock import Clock
from hudi_locks.config import lock_keys
from hudi_locks.errors import BackendRefused, BackendUnavailable
from hudi_locks.lock import SetupStep
from hudi_locks.redaction import open_log
from hudi_locks_providers._dynamodb.connection import Connection
from hudi_locks_providers._dynamodb.failures import NO_TABLE
from hudi_locks_providers._wire.dynamodb_item import KEY

__all__ = ["LockTable"]

_logger = open_log(__name__)
_USABLE: Final = frozenset({"ACTIVE", "UPDATING", "ARCHIVING"})
_POLL_S: Final = 0.5
_MORE_LOOKS: Final = 2
_LATE: Final = "ReadTimeoutError"
_PROVISIONED: Final = "PROVISIONED"
_STEP: Final = "lock-table"


class LockTable:
    """Makes sure that the table is there and has the key that Hudi needs; remembers that it is. Thread-safe."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._settings = connection.settings
        self._clock = clock
        self._lock = threading.Lock()
        self._ready = False

    def ensure(self) -> None:
        """Return once the table can be used. Any number of writers may make it at the same moment.

        Raises:
            BackendRefused: Its key is another one, it is missing and must not be made, or a permission is missing.
            BackendUnavailable: No answer, or it did not become usable in time.
        """
        if not self._ready:
            with self._lock:
                if not self._ready:
                    self._find_or_make()
                    self._ready = True

    def forget(self) -> None:
        """Look again before the next use: somebody says that the table is gone."""
        self._ready = False

    def set_up(self, *, dry_run: bool) -> SetupStep:
        """Find the table, or make it; it is judged as by `ensure`."""
        gives_up_s = self._clock.monotonic() + self._settings.creation_timeout_s
        place, billing = self._settings.place, self._say_billing()
        try:
            found = self._describe_patiently()
            if found is None and dry_run:
                return SetupStep.to_make(_STEP, f"{place}, {billing}")
            if found is None:
                self._make()
            usable = self._await_usable(found, gives_up_s)
            self._check_schema(usable)
        except (BackendRefused, BackendUnavailable) as error:
            return SetupStep.failed(_STEP, error)
        self._ready = True
        if found is None:
            return SetupStep.made(_STEP, f"{place}, {billing}")
        return SetupStep.there(_STEP, f"{place}, {_read_billing(usable)}", self._advise_billing(usable))

    def _say_billing(self) -> str:
        settings = self._settings
        if settings.billing_mode != _PROVISIONED:
            return settings.billing_mode
        return f"{_PROVISIONED} with {settings.read_capacity} read and {settings.write_capacity} write units"

    def _advise_billing(self, found: dict[str, Any]) -> str:
        """A table is made once: the option has no say over one that is there."""
        asked, present = self._settings.billing_mode, _read_billing(found)
        if asked == present:
            return ""
        key = lock_keys.DYNAMODB_BILLING_MODE.name
        return f"{key}={asked} has no effect on a table that is there: change it by `aws dynamodb update-table`"

    def _find_or_make(self) -> None:
        gives_up_s = self._clock.monotonic() + self._settings.creation_timeout_s
        try:
            found = self._describe_patiently()
        except BackendRefused as error:
            if error.facts.get("permission") is None:
                raise
            _logger.info("the schema of the lock table is not checked: %s", error)
            return
        if found is None:
            self._make()
        self._check_schema(self._await_usable(found, gives_up_s))

    def _describe_patiently(self, more: int = _MORE_LOOKS) -> dict[str, Any] | None:
        """A service that is busy, or has just begun, may answer late; the question changes nothing."""
        try:
            return self._describe()
        except BackendUnavailable as error:
            if not more or error.facts.get("code") != _LATE:
                raise
        return self._describe_patiently(more - 1)

    def _describe(self) -> dict[str, Any] | None:
        try:
            answer = self._connection.send("describe_table", "DescribeTable", TableName=self._settings.table)
        except BackendRefused as error:
            if error.facts.get("code") == NO_TABLE:
                return None
            raise
        table: dict[str, Any] = answer["Table"]
        return table

    def _make(self) -> None:
        """Ask for the table; that somebody else asked first is as good."""
        settings = self._settings
        request: dict[str, Any] = {
            "TableName": settings.table,
            "AttributeDefinitions": [{"AttributeName": KEY, "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": KEY, "KeyType": "HASH"}],
            "BillingMode": settings.billing_mode,
        }
        if settings.billing_mode == _PROVISIONED:
            request["ProvisionedThroughput"] = {
                "ReadCapacityUnits": settings.read_capacity,
                "WriteCapacityUnits": settings.write_capacity,
            }
        try:
            self._connection.send("create_table", "CreateTable", **request)
        except BackendRefused as error:
            if error.facts.get("code") != "ResourceInUseException":
                raise
        else:
            _logger.info("made the %s", settings.place)

    def _await_usable(self, found: dict[str, Any] | None, gives_up_s: float) -> dict[str, Any]:
        """The table once it is usable; for a while after its making, reads may not know of it."""
        while True:
            if found is None:
                found = self._describe()
            if found is not None and found["TableStatus"] in _USABLE:
                return found
            if self._clock.monotonic() >= gives_up_s:
                status = found["TableStatus"] if found else "not there"
                raise BackendUnavailable(
                    f"{self._settings.place} is still {status} after {self._settings.creation_timeout_s:g} s"
                    " (hoodie.write.lock.dynamodb.table_creation_timeout)",
                    table=self._settings.table,
                    status=status,
                )
            self._clock.sleep(_POLL_S)
            found = None

    def _check_schema(self, found: dict[str, Any]) -> None:
        types = {part["AttributeName"]: part["AttributeType"] for part in found["AttributeDefinitions"]}
        schema = [(part["AttributeName"], part["KeyType"], types[part["AttributeName"]]) for part in found["KeySchema"]]
        if schema != [(KEY, "HASH", "S")]:
            told = ", ".join(f"{name} ({kind} key, type {type_})" for name, kind, type_ in schema)
            raise BackendRefused(
                f"{self._settings.place} has the key {told}; a lock table has one string partition key {KEY!r} and no"
                " sort key: give another table by hoodie.write.lock.dynamodb.table, one that is missing will be made",
                table=self._settings.table,
                schema=schema,
            )


def _read_billing(found: dict[str, Any]) -> str:
    """As DynamoDB describes it, which says nothing of a table that always was PROVISIONED."""
    return str((found.get("BillingModeSummary") or {}).get("BillingMode") or _PROVISIONED)
