"""Which JVM lock holder joins which provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from hudi_locks.config import Options, lock_keys, table_keys
from hudi_locks.lock import available_providers
from hudi_locks.lock.aliases import JAVA_CLASSES
from hudi_locks_conformance.harness import Harness
from hudi_locks_conformance.partners.awslabs import awslabs
from hudi_locks_conformance.partners.jvm import Partner, hudi, hudi_storage

__all__ = ["HUDI_JVM", "NoPartner", "find_java_class", "find_partners"]

HUDI_JVM: Final = "hudi-jvm"
"""Asks for the Java class that the provider's alias stands for."""
_VERSIONS: Final = ("1.2.0", "1.0.2")
_PACKAGE: Final = "org.apache.hudi.client.transaction.lock"
_IN_BUNDLE: Final = MappingProxyType(
    {
        "filesystem": f"{_PACKAGE}.FileSystemBasedLockProvider",
        "hive_metastore": "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
        "zookeeper": f"{_PACKAGE}.ZookeeperBasedLockProvider",
        "zookeeper_implicit": f"{_PACKAGE}.ZookeeperBasedImplicitBasePathLockProvider",
    }
)
_ELSEWHERE: Final = MappingProxyType(
    {
        "dynamodb": "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
        "storage": f"{_PACKAGE}.StorageBasedLockProvider",
    }
)
"""Classes whose module, or whose client's, is not in the bundle: something stands for them."""


class NoPartner(LookupError):
    """No JVM lock holder can be had for a provider; says which and what to do."""


def find_partners(harness: Harness, options: Mapping[str, str] | None = None) -> list[Partner]:
    """JVM lock holders that must exclude the provider, the newest release first.

    Args:
        harness: The provider, and the partner that was asked for.
        options: Instead of the harness's.

    Raises:
        NoPartner: None was asked for, or none is known.
    """
    full = harness.options if options is None else options
    if not harness.partner:
        raise NoPartner(f"needs a JVM to contend with: add --partner {HUDI_JVM}, or Harness(partner={HUDI_JVM!r})")
    if harness.partner != HUDI_JVM:
        return [hudi(harness.partner, full, version=version) for version in _VERSIONS]
    alias = _find_alias(harness)
    if alias in _IN_BUNDLE:
        return [hudi(_IN_BUNDLE[alias], full, version=version) for version in _VERSIONS]
    if alias in _STAND_INS:
        return [_STAND_INS[alias](full)]
    raise NoPartner(f"no JVM lock holder is known for {harness.name}: give the Java class with --partner CLASS")


def find_java_class(harness: Harness) -> str:
    """The class that the provider joins, as a JVM writer's configuration names it; empty if none is known."""
    if harness.partner not in ("", HUDI_JVM):
        return harness.partner
    return {**_IN_BUNDLE, **_ELSEWHERE}.get(_find_alias(harness), "")


def _find_alias(harness: Harness) -> str:
    """Our short name for the provider, whichever way it was named."""
    short = dict(JAVA_CLASSES).get(harness.name, harness.name)
    names = {target: name for name, target in available_providers().items()}
    return names.get(f"{harness.kind.__module__}:{harness.kind.__qualname__}", short)


def _stand_in_for_dynamodb(options: Mapping[str, str]) -> Partner:
    given = Options(options)
    if not given.find(lock_keys.DYNAMODB_ENDPOINT_URL):
        key = lock_keys.DYNAMODB_ENDPOINT_URL.name
        raise NoPartner(f"the awslabs client, which stands for Hudi's DynamoDB class, is only run against {key}")
    return awslabs(options, lease_ms=given.get_value(lock_keys.WAIT_TIME_MS))


def _stand_in_for_storage(options: Mapping[str, str]) -> Partner:
    given = Options(options)
    endpoint = given.find(lock_keys.STORAGE_ENDPOINT_URL)
    if not (endpoint and (given.find(table_keys.BASE_PATH) or "").startswith("gs:")):
        raise NoPartner(
            "Hudi's clients for object stores cannot be had from Maven: its storage lock is only run over a client of"
            f" ours, against gs:// with {lock_keys.STORAGE_ENDPOINT_URL.name}; try --server fake-gcs-server"
        )
    return hudi_storage(options, endpoint)


_STAND_INS: Final[Mapping[str, Callable[[Mapping[str, str]], Partner]]] = MappingProxyType(
    {"dynamodb": _stand_in_for_dynamodb, "storage": _stand_in_for_storage}
)
