"""Where the lock table is, and how its locks live: Hudi's keys, read once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from hudi_locks.config import Options, lock_keys
from hudi_locks.errors import ConfigError

__all__ = ["DynamoSettings"]

_DEFAULT_REGION: Final = "us-east-1"
_LEAST_LEASE_MS: Final = 3
"""Hudi renews each third of the lease; below this a third is nothing."""


@dataclass(frozen=True)
class DynamoSettings:
    """The settings of one lock table.

    Attributes:
        table: Its name.
        region: Its AWS region; also what requests are signed for.
        endpoint_url: Another service than the region's own, with its scheme; None for the region's own.
        lease_ms: How long a holder may be silent before others take over.
        billing_mode: PAY_PER_REQUEST or PROVISIONED, when the table is made.
        read_capacity: Read units, PROVISIONED only.
        write_capacity: Write units, PROVISIONED only.
        creation_timeout_s: Longest wait for a table just made.
    """

    table: str
    region: str
    endpoint_url: str | None
    lease_ms: int
    billing_mode: str
    read_capacity: int
    write_capacity: int
    creation_timeout_s: float

    @classmethod
    def from_options(cls, options: Options) -> DynamoSettings:
        """The settings that Hudi's keys ask for.

        Raises:
            ConfigError: A key has no usable value.
        """
        return cls(
            table=options.get_value(lock_keys.DYNAMODB_TABLE),
            region=options.find(lock_keys.DYNAMODB_REGION) or os.environ.get("AWS_REGION") or _DEFAULT_REGION,
            endpoint_url=_endpoint_url(options),
            lease_ms=_lease_ms(options),
            billing_mode=options.get_value(lock_keys.DYNAMODB_BILLING_MODE).upper(),
            read_capacity=options.get_value(lock_keys.DYNAMODB_READ_CAPACITY),
            write_capacity=options.get_value(lock_keys.DYNAMODB_WRITE_CAPACITY),
            creation_timeout_s=options.get_value(lock_keys.DYNAMODB_TABLE_CREATION_TIMEOUT) / 1000,
        )

    @property
    def lease_s(self) -> float:
        """The lease in seconds."""
        return self.lease_ms / 1000

    @property
    def arn(self) -> str:
        """The table's ARN, with a wildcard for the account, which only AWS knows."""
        return f"arn:{_partition(self.region)}:dynamodb:{self.region}:*:table/{self.table}"

    @property
    def place(self) -> str:
        """The table and where it is, for a person."""
        return f"DynamoDB table {self.table} at {self.endpoint_url or self.region}"


def _endpoint_url(options: Options) -> str | None:
    given = (options.find(lock_keys.DYNAMODB_ENDPOINT_URL) or "").strip()
    if not given:
        return None
    return given if "://" in given else f"https://{given}"


def _lease_ms(options: Options) -> int:
    lease_ms = options.get_value(lock_keys.WAIT_TIME_MS)
    if lease_ms < _LEAST_LEASE_MS:
        raise ConfigError(
            f"{lock_keys.WAIT_TIME_MS.name}={lease_ms} is also the lease of a DynamoDB lock, which must be"
            f" {_LEAST_LEASE_MS} ms at least; give what a holder needs to renew in time, such as 60000",
            key=lock_keys.WAIT_TIME_MS.name,
        )
    return lease_ms


def _partition(region: str) -> str:
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"
