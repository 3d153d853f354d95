"""What DynamoDB, or the way to it, fails with: worth another attempt, or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hudi_locks.errors import BackendRefused, BackendUnavailable, LockError
from hudi_locks_providers._dynamodb.settings import DynamoSettings

__all__ = ["NO_TABLE", "translate_client_error", "translate_sdk_error"]

NO_TABLE: Final = "ResourceNotFoundException"
_PASSING: Final = frozenset(
    {
        "InternalServerError",
        "InternalFailure",
        "LimitExceededException",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
_DENIED: Final = frozenset({"AccessDeniedException", "AccessDenied", "NotAuthorized", "UnauthorizedOperation"})
_BAD_CREDENTIALS: Final = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "IncompleteSignatureException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_PASSING_SDK_ERRORS: Final = frozenset(
    {"ConnectionError", "CredentialRetrievalError", "HTTPClientError", "IncompleteReadError", "MetadataRetrievalError"}
)
"""Names of botocore's classes, looked for among the bases, so that this module imports without it."""
_SERVER_FAULT: Final = 500


def translate_client_error(settings: DynamoSettings, operation: str, response: Mapping[str, Any]) -> LockError:
    """The error for an answer that says no, apart from a condition that does not hold."""
    error = response.get("Error", {})
    code, said = str(error.get("Code", "")), str(error.get("Message", ""))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    facts = {"table": settings.table, "arn": settings.arn, "operation": operation, "code": code}
    what = f"{settings.place} answered {operation} with {code}"
    if code in _PASSING or status >= _SERVER_FAULT:
        return BackendUnavailable(f"{what}: {said}", **facts)
    if code in _DENIED:
        return _say_denied(settings, what, facts)
    if code in _BAD_CREDENTIALS:  # what the service says may quote the signed headers, and a session token among them
        hint = "check the credentials (hoodie.aws.*, else AWS's default chain), the region and this machine's clock"
        return BackendRefused(f"{what}: {hint}", **facts)
    if code == NO_TABLE:
        return BackendRefused(f"{what}: there is no table {settings.table} ({settings.arn})", **facts)
    return BackendRefused(f"{what}: {said}", **facts)


def _say_denied(settings: DynamoSettings, what: str, facts: dict[str, str]) -> BackendRefused:
    operation = facts["operation"]
    if operation == "AssumeRole":
        return BackendRefused(
            f"{what}: these credentials may not assume the role", permission="sts:AssumeRole", **facts
        )
    permissions = ", ".join(f"dynamodb:{action}" for action in _ACTIONS.get(operation, (operation,)))
    return BackendRefused(
        f"{what}: these credentials need {permissions} on {settings.arn}; `hudi-locks doctor --iam` prints the policy",
        permission=permissions,
        **facts,
    )


_ACTIONS: Final = {
    "TransactWriteItems": ("PutItem", "UpdateItem", "DeleteItem"),
    "TransactGetItems": ("GetItem",),
}
"""What a transaction asks for."""


def translate_sdk_error(settings: DynamoSettings, operation: str, error: Exception) -> LockError:
    """The error for a request that got no answer, or could not be made."""
    names = {base.__name__ for base in type(error).__mro__}
    facts = {"table": settings.table, "arn": settings.arn, "operation": operation, "code": type(error).__name__}
    if names & _PASSING_SDK_ERRORS:
        return BackendUnavailable(f"{settings.place} did not answer {operation}: {error}", **facts)
    return BackendRefused(f"{operation} could not be sent to {settings.place}: {error}", **facts)
