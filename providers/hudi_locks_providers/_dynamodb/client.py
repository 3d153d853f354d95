"""The boto3 client of one lock table: made from Hudi's keys, and without retries of its own."""

from __future__ import annotations

from typing import Any, Final

from hudi_locks.config import Options
from hudi_locks.lock import import_extra
from hudi_locks_providers._aws import drop_user, open_session
from hudi_locks_providers._dynamodb.settings import DynamoSettings

__all__ = ["build_client"]

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
    session = open_session(options, provider=_PROVIDER, region=settings.region)
    config = import_extra("botocore.config", provider=_PROVIDER).Config
    return session.client(
        "dynamodb",
        endpoint_url=settings.endpoint_url and drop_user(settings.endpoint_url),
        config=config(
            retries={"total_max_attempts": 1},
            connect_timeout=_CONNECT_TIMEOUT_S,
            read_timeout=_read_timeout_s(settings),
            max_pool_connections=_CONNECTIONS,
            tcp_keepalive=True,
            parameter_validation=False,
        ),
    )


def _read_timeout_s(settings: DynamoSettings) -> float:
    """Short enough that a renewal whose answer does not come can be repeated within the lease."""
    return max(_LEAST_READ_TIMEOUT_S, min(_MOST_READ_TIMEOUT_S, settings.lease_s / 6))
