"""The awslabs DynamoDB lock client, which is what Hudi's DynamoDB provider is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_locks.config import Options, lock_keys
from hudi_locks_conformance.partners.jvm import Partner
from hudi_locks_conformance.servers.cache import fetch_maven

__all__ = ["awslabs"]

_JARS: Final = ("com.amazonaws:dynamodb-lock-client:1.4.0", "org.slf4j:slf4j-nop:1.7.36")


def awslabs(options: Mapping[str, object], *, lease_ms: int = 20_000, delete_on_release: bool = True) -> Partner:
    """The lock client, set up as Hudi does, apart from a quicker poll.

    Args:
        options: Hudi's keys: endpoint, table and partition key.
        lease_ms: Its lease; it renews each third.
        delete_on_release: Whether a release deletes the item, as Hudi asks for; else it is marked as released.
    """
    given = Options(options)
    settings = {
        "endpoint": given.get_value(lock_keys.DYNAMODB_ENDPOINT_URL),
        "table": given.get_value(lock_keys.DYNAMODB_TABLE),
        "key": given.get_value(lock_keys.DYNAMODB_PARTITION_KEY),
        "lease_ms": str(lease_ms),
        "delete": str(delete_on_release).lower(),
    }
    return Partner("awslabs", "AwslabsContender", _find_jars, "awslabs", settings)


def _find_jars() -> list[str]:
    return [f"{fetch_maven('dynamodb-lock-client', _JARS)}/*"]
