"""The boto3 client of one lock table: made from Hudi's keys, without retries of its own, and quiet about secrets."""

from __future__ import annotations

import logging
from typing import Any, Final

from hudi_locks.config import Options, lock_keys
from hudi_locks.lock import import_extra
from hudi_locks.redaction import open_log
from hudi_locks_providers._dynamodb.settings import DynamoSettings

__all__ = ["build_client"]

_logger = open_log(__name__)
_PROVIDER: Final = "dynamodb"
_CONNECT_TIMEOUT_S: Final = 3
_MOST_READ_TIMEOUT_S: Final = 10.0
_LEAST_READ_TIMEOUT_S: Final = 1.0
_CONNECTIONS: Final = 64
"""As many threads as may wait for different locks at once without queueing for a connection."""


def build_client(options: Options, settings: DynamoSettings) -> Any:
    """A low-level DynamoDB client.

    Its retries are off: a conditional request that is sent again by itself meets its own effect and reports a failure.

    Raises:
        ProviderLoadError: boto3 is not installed.
    """
    boto3 = import_extra("boto3", provider=_PROVIDER)
    _VEIL.cover(options)
    config = import_extra("botocore.config", provider=_PROVIDER).Config
    session = boto3.Session(region_name=settings.region, **_static_credentials(options))
    role_arn = options.find(lock_keys.AWS_ROLE_ARN)
    if role_arn:
        session = _assume_role(boto3, session, options, role_arn)
    return session.client(
        "dynamodb",
        endpoint_url=settings.endpoint_url,
        config=config(
            retries={"total_max_attempts": 1},
            connect_timeout=_CONNECT_TIMEOUT_S,
            read_timeout=_read_timeout_s(settings),
            max_pool_connections=_CONNECTIONS,
            tcp_keepalive=True,
            parameter_validation=False,
        ),
    )


_LEAST_SECRET: Final = 8
"""Letters; what is shorter is a placeholder for a service that asks for none, and may be a word of any message."""


class _Veil(logging.Filter):
    """Hides the secrets of our options in botocore's debug log, which shows signed headers with the session token."""

    _LOGGERS: Final = ("botocore.auth", "botocore.endpoint")
    _SECRETS: Final = (lock_keys.AWS_ACCESS_KEY, lock_keys.AWS_SECRET_KEY, lock_keys.AWS_SESSION_TOKEN)

    def __init__(self) -> None:
        super().__init__()
        self._hidden: list[str] = []

    def cover(self, options: Options) -> None:
        found = {value for key in self._SECRETS if len(value := options.find(key) or "") >= _LEAST_SECRET}
        self._hidden = sorted(found.union(self._hidden), key=len, reverse=True)  # one may be a part of another
        for name in self._LOGGERS:
            logging.getLogger(name).addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        for secret in self._hidden:
            text = text.replace(secret, "***")
        record.msg, record.args = text, ()
        return True


_VEIL: Final = _Veil()


def _read_timeout_s(settings: DynamoSettings) -> float:
    """Short enough that a renewal whose answer does not come can be repeated within the lease."""
    return max(_LEAST_READ_TIMEOUT_S, min(_MOST_READ_TIMEOUT_S, settings.lease_s / 6))


def _static_credentials(options: Options) -> dict[str, str | None]:
    """The credentials in the options if both halves are there; nothing else, so that the default chain decides."""
    access, secret = options.find(lock_keys.AWS_ACCESS_KEY), options.find(lock_keys.AWS_SECRET_KEY)
    if access and secret:
        token = options.find(lock_keys.AWS_SESSION_TOKEN)
        return {"aws_access_key_id": access, "aws_secret_access_key": secret, "aws_session_token": token}
    if access or secret:
        _logger.warning(
            "only one of %s and %s is given: AWS's default chain decides",
            lock_keys.AWS_ACCESS_KEY.name,
            lock_keys.AWS_SECRET_KEY.name,
        )
    return {}


def _assume_role(boto3: Any, base: Any, options: Options, role_arn: str) -> Any:
    """A session with the credentials of the role, which are fetched when first needed, and again before they expire."""
    credentials = import_extra("botocore.credentials", provider=_PROVIDER)
    inner = import_extra("botocore.session", provider=_PROVIDER).get_session()
    request = {"RoleArn": role_arn, "RoleSessionName": options.get_value(lock_keys.AWS_ROLE_SESSION_NAME)}
    external_id = options.find(lock_keys.AWS_ROLE_EXTERNAL_ID)
    if external_id:
        request["ExternalId"] = external_id

    def fetch() -> dict[str, str]:
        found = base.client("sts").assume_role(**request)["Credentials"]
        return {
            "access_key": found["AccessKeyId"],
            "secret_key": found["SecretAccessKey"],
            "token": found["SessionToken"],
            "expiry_time": found["Expiration"].isoformat(),
        }

    inner._credentials = credentials.DeferredRefreshableCredentials(  # noqa: SLF001  # botocore has no public way to set refreshable ones
        refresh_using=fetch, method="sts-assume-role"
    )
    return boto3.Session(botocore_session=inner, region_name=base.region_name)
