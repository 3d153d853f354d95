"""Settings, permissions and errors."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from hudi_locks_providers._dynamodb.client import build_client
from hudi_locks_providers._dynamodb.settings import DynamoSettings
from hudi_locks_providers.dynamodb import DynamoDBImplicitLockProvider, DynamoDBLockProvider

from hudi_locks import (
    BackendRefused,
    BackendUnavailable,
    ConfigError,
    LockScope,
    ManualClock,
    Owner,
)
from hudi_locks.config import Options

Client = Callable[..., DynamoDBLockProvider]


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("ThrottlingException", BackendUnavailable, "trans"),
        ("InternalServerError", BackendUnavailable, "Internal"),
        ("AccessDeniedException", BackendRefused, "dynamodb:PutItem"),
        ("ResourceNotFoundException", BackendRefused, "table hudi_locks"),
        ("ValidationException", BackendRefused, "planted"),
        ("UnrecognizedClientException", BackendRefused, "hoodie.aws"),
    ],
)
def test_errors_are_told_apart(
    client: Client, stub: Any, table: LockScope, ada: Owner, code: str, kind: type[Exception], said: str
) -> None:
    provider = client()

    stub.fail(stub.refusal(code, "TransactWriteItems"), "transact_write_items")
    with pytest.raises(kind, match=f"(?i){said}"):
        provider.try_acquire(table, ada, 0)


def test_a_quoted_session_token_is_not_shown(client: Client, stub: Any, table: LockScope) -> None:
    answer = stub.refusal("InvalidSignatureException", "GetItem")
    answer.response["Error"]["Message"] = "x-amz-security-token:s3cr3t"

    stub.fail(answer)
    with pytest.raises(BackendRefused) as told:
        client().holder(table)
    assert "s3cr3t" not in str(told.value)


def test_a_conflict_with_a_transaction_is_sent_again(client: Client, stub: Any, table: LockScope, ada: Owner) -> None:
    provider = client()
    lease = provider.try_acquire(table, ada, 0)
    assert lease is not None
    conflicts = [stub.refusal("TransactionConflictException", "UpdateItem")] * 3

    def conflict(method: str, request: Any) -> None:
        if conflicts:
            raise conflicts.pop()

    stub.before = conflict
    provider.renew(lease)
    assert not conflicts


def test_settings_that_cannot_work_are_refused(clock: ManualClock) -> None:
    for options, said in (
        ({}, "hoodie.table.name"),
        ({"hoodie.table.name": "t", "hoodie.write.lock.wait_time_ms": 2}, "lease"),
    ):
        with pytest.raises(ConfigError, match=said):
            DynamoDBLockProvider(options, clock=clock, on_lost=lambda *_: None)


def test_the_implicit_key_comes_from_the_base_path(clock: ManualClock) -> None:
    made = DynamoDBImplicitLockProvider(
        {"hoodie.base.path": "s3a://my-bucket/my_lake/my_table"}, clock=clock, on_lost=lambda *_: None
    )
    assert made.keys.base == "C0E15D0CE1AD11CC"
    with pytest.raises(ConfigError, match=r"hoodie\.base\.path"):
        DynamoDBImplicitLockProvider({}, clock=clock, on_lost=lambda *_: None)


def test_the_policy_names_the_table() -> None:
    policy = DynamoDBLockProvider.iam_policy({"hoodie.write.lock.dynamodb.region": "eu-north-1"})
    actions = [action for statement in policy["Statement"] for action in statement["Action"]]
    assert len(actions) == 7
    assert {statement["Resource"] for statement in policy["Statement"]} == {
        "arn:aws:dynamodb:eu-north-1:*:table/hudi_locks"
    }


def test_the_real_client_is_as_the_keys_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    options = Options(
        {
            "hoodie.write.lock.dynamodb.endpoint_url": "dynamo.example:8000",
            "hoodie.aws.access.key": "id",
            "hoodie.aws.secret.key": "secret",
            "hoodie.aws.session.token": "token",
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        client = build_client(options, DynamoSettings.from_options(options))
    credentials = client._request_signer._credentials
    assert (client.meta.endpoint_url, client.meta.region_name) == ("https://dynamo.example:8000", "eu-west-3")
    assert (credentials.access_key, credentials.secret_key, credentials.token) == ("id", "secret", "token")
    assert client.meta.config.retries["total_max_attempts"] == 1
    client.close()


def test_a_service_that_ignores_conditions_is_found_out(client: Client, stub: Any) -> None:
    findings = client().probe()
    assert all(finding.ok for finding in findings)
    assert stub.items == {}

    def ignore_conditions(method: str, request: Any) -> None:
        request.pop("ConditionExpression", None)

    stub.before = ignore_conditions
    assert {"creates-once", "one-winner"} <= {finding.name for finding in client().probe() if not finding.ok}


def test_a_role_is_assumed_with_its_external_id_when_first_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, str]] = []

    def assume_role(**request: str) -> dict[str, Any]:
        asked.append(request)
        ends = datetime.now(timezone.utc) + timedelta(hours=1)
        found = {"AccessKeyId": "role-id", "SecretAccessKey": "s", "SessionToken": "t", "Expiration": ends}
        return {"Credentials": found}

    real = boto3.Session.client
    fake = SimpleNamespace(assume_role=assume_role)
    monkeypatch.setattr(
        boto3.Session, "client", lambda self, name, **more: fake if name == "sts" else real(self, name, **more)
    )
    options = Options(
        {
            "hoodie.aws.access.key": "id",
            "hoodie.aws.secret.key": "secret",
            "hoodie.aws.role.arn": "arn:aws:iam::1:role/writer",
            "hoodie.aws.role.external.id": "external",
            "hoodie.aws.role.session.name": "nightly",
        }
    )
    made = build_client(options, DynamoSettings.from_options(options))
    assert asked == []
    assert made._request_signer._credentials.get_frozen_credentials().access_key == "role-id"
    assert asked == [{"RoleArn": "arn:aws:iam::1:role/writer", "RoleSessionName": "nightly", "ExternalId": "external"}]
    made.close()


def test_debug_logs_of_the_client_hide_the_session_token(caplog: pytest.LogCaptureFixture) -> None:
    options = Options(
        {
            "hoodie.aws.access.key": "id",
            "hoodie.aws.secret.key": "s3cr3t-key-token",
            "hoodie.aws.session.token": "key-token",
            "hoodie.write.lock.dynamodb.endpoint_url": "http://127.0.0.1:1",
        }
    )
    made = build_client(options, DynamoSettings.from_options(options))
    with caplog.at_level(logging.DEBUG), pytest.raises(EndpointConnectionError):
        made.list_tables()
    made.close()
    assert "***" in caplog.text
    assert "s3cr3t" not in caplog.text
    assert "key-token" not in caplog.text


def test_one_half_of_static_credentials_is_told(caplog: pytest.LogCaptureFixture) -> None:
    options = Options({"hoodie.aws.access.key": "id"})
    build_client(options, DynamoSettings.from_options(options)).close()
    assert "hoodie.aws.secret.key" in caplog.text
