"""Every key of Hudi's concurrency-control documentation: accepted as written there, with its type and meaning."""

from __future__ import annotations

import pytest

from hudi_locks.config import Key, Options, check_options, datasource_keys, find_key, lock_keys, write_keys

LOCK = "hoodie.write.lock."
DOCUMENTED = [
    ("hoodie.write.concurrency.mode", write_keys.CONCURRENCY_MODE, str, "SINGLE_WRITER", "concurrent writers"),
    ("hoodie.cleaner.policy.failed.writes", write_keys.FAILED_WRITES_CLEANER_POLICY, str, "EAGER", "failed writes"),
    ("hoodie.clean.failed.writes.policy", write_keys.FAILED_WRITES_CLEANER_POLICY, str, "EAGER", "failed writes"),
    (LOCK + "provider", lock_keys.PROVIDER, str, None, "there is no default"),
    (LOCK + "wait_time_ms", lock_keys.WAIT_TIME_MS, int, 60_000, "one attempt"),
    (LOCK + "num_retries", lock_keys.NUM_RETRIES, int, 15, "one attempt asks"),
    (LOCK + "client.wait_time_ms", lock_keys.CLIENT_WAIT_TIME_MS_BETWEEN_RETRY, int, 5_000, "between two attempts"),
    (
        LOCK + "client.wait_time_ms_between_retry",
        lock_keys.CLIENT_WAIT_TIME_MS_BETWEEN_RETRY,
        int,
        5_000,
        "between two attempts",
    ),
    (LOCK + "client.num_retries", lock_keys.CLIENT_NUM_RETRIES, int, 50, "attempts"),
    (LOCK + "zookeeper.base_path", lock_keys.ZOOKEEPER_BASE_PATH, str, None, "node"),
    (LOCK + "zookeeper.port", lock_keys.ZOOKEEPER_PORT, str, None, "port"),
    (LOCK + "zookeeper.url", lock_keys.ZOOKEEPER_URL, str, None, "host:port"),
    (LOCK + "hivemetastore.database", lock_keys.HIVE_DATABASE, str, None, "database"),
    (LOCK + "hivemetastore.table", lock_keys.HIVE_TABLE, str, None, "table"),
    (LOCK + "dynamodb.endpoint_url", lock_keys.DYNAMODB_ENDPOINT_URL, str, None, "address"),
    (LOCK + "dynamodb.table", lock_keys.DYNAMODB_TABLE, str, "hudi_locks", "table that holds the locks"),
    (LOCK + "dynamodb.partition_key", lock_keys.DYNAMODB_PARTITION_KEY, str, None, "attribute 'key'"),
    (LOCK + "dynamodb.region", lock_keys.DYNAMODB_REGION, str, None, "region"),
    ("hoodie.aws.access.key", lock_keys.AWS_ACCESS_KEY, str, None, "access key"),
    ("hoodie.aws.secret.key", lock_keys.AWS_SECRET_KEY, str, None, "secret key"),
    ("hoodie.aws.session.token", lock_keys.AWS_SESSION_TOKEN, str, None, "session token"),
    (LOCK + "filesystem.path", lock_keys.FILESYSTEM_PATH, str, None, "folder"),
    (LOCK + "filesystem.expire", lock_keys.FILESYSTEM_EXPIRE, int, 0, "minutes"),
    (
        "hoodie.write.concurrency.early.conflict.detection.enable",
        write_keys.EARLY_CONFLICT_DETECTION_ENABLE,
        bool,
        False,
        "before files are written",
    ),
    (
        "hoodie.datasource.write.insert.drop.duplicates",
        datasource_keys.INSERT_DROP_DUPLICATES,
        bool,
        False,
        "leaves out rows",
    ),
    ("hoodie.combine.before.insert", datasource_keys.COMBINE_BEFORE_INSERT, bool, False, "merges rows of one key"),
]
SECRET = {"hoodie.aws.access.key", "hoodie.aws.secret.key", "hoodie.aws.session.token"}


@pytest.mark.parametrize(("name", "key", "kind", "default", "meaning"), DOCUMENTED, ids=[row[0] for row in DOCUMENTED])
def test_documented_key(name: str, key: Key[str], kind: type, default: object, meaning: str) -> None:
    assert find_key(name) is key
    assert (key.kind, key.default) == (kind, default)
    assert meaning in key.doc
    assert key.secret == (name in SECRET)


@pytest.mark.parametrize(("name", "key", "kind", "default", "meaning"), DOCUMENTED, ids=[row[0] for row in DOCUMENTED])
def test_documented_key_is_read_as_written(name: str, key: Key[str], kind: type, default: object, meaning: str) -> None:
    text = {int: "7", bool: "TRUE", str: next(iter(key.choices), "abc")}[kind]
    assert Options({name: text}).find(key) == {int: 7, bool: True, str: text}[kind]


def test_documented_multi_writer_settings_pass() -> None:
    check_options(
        {
            "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
            "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
            "hoodie.cleaner.policy.failed.writes": "LAZY",
        }
    )
    found = check_options(
        {"hoodie.write.concurrency.mode": "single_writer", "hoodie.cleaner.policy.failed.writes": "EAGER"}
    )
    assert found.get_value(write_keys.CONCURRENCY_MODE) == "single_writer"
