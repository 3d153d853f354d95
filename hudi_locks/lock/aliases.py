"""Names under which providers are asked for: Hudi's Java classes, and what each short name needs installed."""

from __future__ import annotations

from typing import Final

__all__ = ["BUNDLED", "EXTRAS", "JAVA_CLASSES", "name_provider"]

BUNDLED: Final = (
    ("chain", "hudi_locks_providers.chain:ChainLockProvider"),
    ("dynamodb", "hudi_locks_providers.dynamodb:DynamoDBLockProvider"),
    ("dynamodb_implicit", "hudi_locks_providers.dynamodb:DynamoDBImplicitLockProvider"),
    ("filesystem", "hudi_locks_providers.filesystem:FileSystemLockProvider"),
    ("hive_metastore", "hudi_locks_providers.hive_metastore:HiveMetastoreLockProvider"),
    ("in_process", "hudi_locks_providers.in_process:InProcessLockProvider"),
    ("noop", "hudi_locks_providers.noop:NoopLockProvider"),
    ("storage", "hudi_locks_providers.storage:StorageLockProvider"),
    ("zookeeper", "hudi_locks_providers.zookeeper:ZooKeeperLockProvider"),
    ("zookeeper_implicit", "hudi_locks_providers.zookeeper:ZooKeeperImplicitLockProvider"),
)
"""The entry points of this distribution once more, sorted: for executors that were sent bare files or an archive,
where no installed distribution tells of its entry points. An installed entry point of the same name wins."""

JAVA_CLASSES: Final = (
    ("org.apache.hudi.aws.transaction.lock.DynamoDBBasedImplicitPartitionKeyLockProvider", "dynamodb_implicit"),
    ("org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider", "dynamodb"),
    ("org.apache.hudi.client.transaction.lock.DynamoDBBasedLockProvider", "dynamodb"),
    ("org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider", "filesystem"),
    ("org.apache.hudi.client.transaction.lock.FileSystemBasedLockProviderTestClass", "filesystem"),
    ("org.apache.hudi.client.transaction.lock.InProcessLockProvider", "in_process"),
    ("org.apache.hudi.client.transaction.lock.NoopLockProvider", "noop"),
    ("org.apache.hudi.client.transaction.lock.StorageBasedLockProvider", "storage"),
    ("org.apache.hudi.client.transaction.lock.ZookeeperBasedImplicitBasePathLockProvider", "zookeeper_implicit"),
    ("org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider", "zookeeper"),
    ("org.apache.hudi.hive.HiveMetastoreBasedLockProvider", "hive_metastore"),
    ("org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider", "hive_metastore"),
)
"""Java class and our short name, sorted by the class."""

EXTRAS: Final = (
    ("boto3", "dynamodb"),
    ("botocore", "dynamodb"),
    ("hive_metastore_client", "hive"),
    ("kazoo", "zookeeper"),
    ("obstore", "s3"),
    ("thrift", "hive"),
    ("thrift_files", "hive"),
)
"""Module that a bundled provider imports and the extra that installs it, sorted by the module."""

_NAMES: Final = {**dict(JAVA_CLASSES), **{named: short for short, named in BUNDLED}}


def name_provider(asked: str) -> str:
    """The short name of a provider, however it was asked for; what is not known here stays as it is. Loads nothing."""
    word = asked.strip()
    return _NAMES.get(word, word)
