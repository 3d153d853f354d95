"""Misspelt keys, contradictions and secrets."""

from __future__ import annotations

import pickle

import pytest

from hudi_locks.config import KEYS, Options, check_options, find_key, lock_keys, nearest_key, redact
from hudi_locks.errors import ConfigError, UnknownKeyWarning

OCC = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "filesystem",
}


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("hoodie.writer.lock.provider", "hoodie.write.lock.provider"),
        ("hoodie.write.lock.wait.time.ms", "hoodie.write.lock.wait_time_ms"),
        ("hoodie.write.lock.zookeeper.base-path", "hoodie.write.lock.zookeeper.base_path"),
        ("hoodie.datasource.write.recordkey.fields", "hoodie.datasource.write.recordkey.field"),
        ("Hoodie.Table.Name", "hoodie.table.name"),
        ("hudi_locks.foreign_writer", "hudi_locks.foreign_writers"),
    ],
)
def test_slip_of_the_pen_is_refused_with_the_key_meant(slip: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"did you mean {meant}") as caught:
        check_options({slip: "x"})
    assert caught.value.nearest == meant


def test_unknown_key_only_warns_and_names_the_nearest() -> None:
    with pytest.warns(UnknownKeyWarning, match="nearest known one is hoodie.write.lock.provider"):
        check_options({"hoodie.write.lock.provider.class": "x"})
    with pytest.warns(UnknownKeyWarning, match="hoodie.acme.thing is not read"):
        check_options({"hoodie.acme.thing": "z-order"})
    assert dict(check_options({"spark.app.name": "not ours"})) == {"spark.app.name": "not ours"}


def test_nothing_known_is_like_nonsense() -> None:
    assert nearest_key("hoodie.zzzzzzzzzzzzzzzzzzzzzzzzzzzzzz") is None


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({**OCC, "hoodie.clean.failed.writes.policy": "EAGER"}, "set it to LAZY"),
        ({**OCC, "hoodie.cleaner.policy.failed.writes": "never"}, "hoodie.cleaner.policy.failed.writes=never"),
        ({"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}, "there is no default"),
        ({**OCC, "hoodie.write.lock.provider": "noop"}, "excludes nobody"),
        (
            {"hoodie.write.lock.provider": "in_process", "hudi_locks.foreign_writers": True},
            "excludes threads of this process",
        ),
        ({"hoodie.write.concurrency.early.conflict.detection.enable": "true"}, "not with SINGLE_WRITER"),
        (
            {
                "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
                "hoodie.write.lock.provider": "filesystem",
                "hoodie.write.concurrency.early.conflict.detection.enable": "true",
            },
            "not with NON_BLOCKING",
        ),
        (
            {
                "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
                "hoodie.write.lock.provider": "filesystem",
                "hoodie.index.type": "BLOOM",
            },
            "needs hoodie.index.type=BUCKET",
        ),
        (
            {
                "hoodie.write.lock.client.wait_time_ms": 1,
                "hoodie.write.lock.client.wait_time_ms_between_retry": 2,
            },
            "names of one key",
        ),
        (
            {
                "hoodie.write.lock.wait_time_ms_between_retry": 10,
                "hoodie.write.lock.max_wait_time_ms_between_retry": 5,
            },
            "cannot be longer",
        ),
        ({"hoodie.write.lock.storage.renew.interval.secs": 31}, "outlast ten renewals"),
    ],
)
def test_contradiction_is_refused(options: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        check_options(options)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"hoodie.write.lock.wait_time_ms": "60s"}, "hoodie.write.lock.wait_time_ms='60s' is no int"),
        ({"hoodie.write.lock.client.wait_time_ms": "-1"}, "hoodie.write.lock.client.wait_time_ms=-1 is below"),
        ({"hoodie.table.cdc.enabled": "yes"}, "is no bool"),
        ({"hoodie.write.concurrency.mode": "both"}, "none of SINGLE_WRITER"),
    ],
)
def test_bad_value_names_key_value_and_what_was_expected(options: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        check_options(options)


def test_secrets_are_hidden_known_or_not() -> None:
    shown = redact({"hoodie.aws.secret.key": "abc", "hoodie.my.password": "def", "hoodie.table.name": "t"})
    assert shown == {"hoodie.aws.secret.key": "***", "hoodie.my.password": "***", "hoodie.table.name": "t"}
    assert "abc" not in repr(Options({"hoodie.aws.secret.key": "abc"}))


def test_options_survive_pickling_and_do_not_follow_their_source() -> None:
    source: dict[str, object] = {"hoodie.table.name": "t", "gone": None}
    options = Options(source)
    source["hoodie.table.name"] = "u"
    assert dict(pickle.loads(pickle.dumps(options))) == {"hoodie.table.name": "t"}


def test_own_name_wins_over_an_alias() -> None:
    key = lock_keys.CLIENT_WAIT_TIME_MS_BETWEEN_RETRY
    assert Options({key.aliases[0]: 1, key.name: 2}).find(key) == 2


def test_every_declared_key_is_sound() -> None:
    for name, key in KEYS.items():
        assert find_key(name) is key
        assert key.doc
        assert key.name.startswith(("hoodie.", "hudi_locks.", "as.of.", "ignore"))
        if key.default is not None:
            assert Options({name: key.default}).find(key) == key.default


def test_names_shared_by_two_keys_are_the_ordering_columns_alone() -> None:
    shared = {alias for key in KEYS.values() for alias in key.aliases if find_key(alias) is not key}
    assert shared == {"hoodie.table.ordering.fields", "hoodie.table.precombine.field"}
