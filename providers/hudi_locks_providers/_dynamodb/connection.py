"""Requests to one lock table, and what comes of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hudi_locks.config import Options
from hudi_locks.errors import BackendUnavailable
from hudi_locks.lock import import_extra
from hudi_locks.lock.lease import generation
from hudi_locks_providers._dynamodb.client import build_client
from hudi_locks_providers._dynamodb.failures import translate_client_error, translate_sdk_error
from hudi_locks_providers._dynamodb.settings import DynamoSettings
from hudi_locks_providers._wire.dynamodb_item import Item

__all__ = ["CONDITION_FAILED", "ConditionFailed", "Connection", "Reason"]

CONDITION_FAILED = "ConditionalCheckFailed"
_CONFLICT = "TransactionConflict"
_CONFLICT_TRIES = 5


@dataclass(frozen=True)
class Reason:
    """Why one part of a request was refused.

    Attributes:
        code: Empty for a part that was not; else as DynamoDB has it.
        item: What was found there instead; None for nothing.
    """

    code: str = ""
    item: Item | None = None

    @property
    def failed(self) -> bool:
        """Whether the condition of this part did not hold."""
        return self.code == CONDITION_FAILED


class ConditionFailed(Exception):  # an outcome of a conditional request, never seen outside
    """A condition did not hold, or a transaction met another one: nothing was written.

    Args:
        reasons: One for each part of the request, in order.
    """

    def __init__(self, reasons: list[Reason]) -> None:
        super().__init__(", ".join(reason.code or "-" for reason in reasons))
        self.reasons = reasons


class Connection:
    """One client for all threads of this process; a forked child makes its own. Thread-safe; made by the first call.

    Args:
        options: For the credentials.
        settings: For the table.
    """

    def __init__(self, options: Options, settings: DynamoSettings) -> None:
        self._options = options
        self.settings = settings
        self._lock = threading.Lock()
        self._generation = generation()
        self._client: Any = None
        self._errors: Any = None

    def send(self, method: str, operation: str, **request: Any) -> dict[str, Any]:
        """Make one request: the boto3 method, the name of the operation in AWS's terms, and its parameters.

        Raises:
            ConditionFailed: A condition did not hold.
            BackendUnavailable: No answer, or one that may be another next time.
            BackendRefused: An answer that stays.
        """
        call = getattr(self._open(), method)
        for _ in range(_CONFLICT_TRIES):
            answer = self._try(call, operation, request)
            if answer is not None:
                return answer
        raise BackendUnavailable(
            f"{self.settings.place}: {operation} met one transaction of somebody after the other",
            table=self.settings.table,
        )

    def _try(
        self, call: Callable[..., dict[str, Any]], operation: str, request: dict[str, Any]
    ) -> dict[str, Any] | None:
        """The answer; None if the request was rejected for somebody's transaction, which ends within milliseconds."""
        try:
            return self.pass_on(operation, lambda: call(**request))
        except self._errors.ClientError as error:
            if _code(error.response) == f"{_CONFLICT}Exception":
                return None
            raise self._judge(getattr(error, "operation_name", operation), error.response) from error
        except self._errors.BotoCoreError as error:
            raise translate_sdk_error(self.settings, operation, error) from error

    def pass_on(self, operation: str, request: Callable[[], dict[str, Any]]) -> dict[str, Any]:  # noqa: ARG002  # for whoever stands between
        """Send one request: all of them pass here."""
        return request()

    def _open(self) -> Any:
        if self._client is None or self._generation != generation():
            if self._generation != generation():
                self._lock, self._generation, self._client = threading.Lock(), generation(), None
            with self._lock:
                if self._client is None:
                    self._errors = import_extra("botocore.exceptions", provider="dynamodb")
                    self._client = build_client(self._options, self.settings)
        return self._client

    def _judge(self, operation: str, response: dict[str, Any]) -> Exception:
        code = _code(response)
        if code == "ConditionalCheckFailedException":
            return ConditionFailed([Reason(CONDITION_FAILED, response.get("Item"))])
        if code != "TransactionCanceledException":
            return translate_client_error(self.settings, operation, response)
        found = response.get("CancellationReasons") or []
        codes = [str(reason.get("Code") or "") for reason in found]
        reasons = [
            Reason("" if code == "None" else code, reason.get("Item") or None)
            for code, reason in zip(codes, found, strict=True)
        ]
        refused = {reason.code for reason in reasons if reason.code}
        if refused and refused <= {CONDITION_FAILED, _CONFLICT}:
            return ConditionFailed(reasons)
        return self._refuse(operation, response, refused)

    def _refuse(self, operation: str, response: dict[str, Any], refused: set[str]) -> Exception:
        """The error for a transaction that was cancelled for what is no condition, such as a missing capacity."""
        for code in sorted(refused - {CONDITION_FAILED, _CONFLICT}):
            error = {**response.get("Error", {}), "Code": code}
            return translate_client_error(self.settings, operation, {**response, "Error": error})
        return BackendUnavailable(f"{self.settings.place} cancelled {operation}", table=self.settings.table)

    def close(self) -> None:
        """Close the connections of this process; a later call opens new ones."""
        if self._client is not None and self._generation == generation():
            self._client.close()
            self._client = None


def _code(response: dict[str, Any]) -> str:
    return str(response.get("Error", {}).get("Code") or "")
