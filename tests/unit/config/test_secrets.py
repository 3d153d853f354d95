"""Secrets are known by their form, and shown in no output."""

from __future__ import annotations

import logging
import pickle

import pytest

from hudi_locks.config import Options, check_options, redact
from hudi_locks.errors import ConfigError, HudiLocksError
from hudi_locks.redaction import hide_secrets

SECRET = "hunter2-p4ss"
FORMS = [
    f"jdbc:hive2://etl:{SECRET}@hive:10000/default",
    f"jdbc:hive2://hive:10000/default;user=etl;password={SECRET}",
    f"jdbc:mysql://db/x?user=u&password={SECRET}&useSSL=true",
    f"jdbc:sqlserver://db;databaseName=x;PWD={SECRET}",
    f"jdbc:oracle:thin:scott/{SECRET}@//db:1521/svc",
    f"jdbc:mysql://root:p@/:{SECRET}@db:3306/x",
    f"thrift://u:{SECRET}@one:9083,thrift://u:{SECRET}@two:9083",
    f"redis://:{SECRET}@cache:6379/0",
    f"etl:{SECRET}@zk-1:2181,zk-2:2181/locks",
    f"digest:etl:{SECRET}",
    f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={SECRET}==;EndpointSuffix=core",
    f"https://a.blob.core/c?sv=2024&se=2030&sig={SECRET}%3D",
    f"https://service/x?token={SECRET}",
    f"https://s3/b/k?X-Amz-Security-Token={SECRET}&X-Amz-Signature={SECRET}",
    f'org.apache.Login required username="u" password="{SECRET} {SECRET}";',
    f"{{'user': 'u', 'password': '{SECRET}'}}",
    f'{{"client_secret": "{SECRET}"}}',
    f"Authorization: Bearer {SECRET}",
    f"hoodie.datasource.hive_sync.password={SECRET}",
]
NAMES = [
    "hoodie.datasource.hive_sync.password",
    "hoodie.write.lock.zookeeper.auth",
    "javax.jdo.option.ConnectionPassword",
    "fs.azure.account.key.mine.dfs.core.windows.net",
    "fs.s3a.secret.key",
    "sasl.jaas.config",
    "basic.auth.user.info",
    "my.api_key",
    "my.sas",
]
HARMLESS = [
    "hudi-locks show /t --provider zookeeper --option hudi_locks.chain.token=second",
    "nothing removed: the lock on table is not held under 7; it is held under 8 by pid 3 on host",
    "ours (pid 12 on h@x) at file:///data/lock, last sign of life 3 s ago",
    "thrift://one:9083,thrift://two:9083",
    "hdfs://user@namenode:8020/warehouse",
    "hoodie.disaster.author=me",
    "Held(table, HELD, token=4, owner=nightly)",
    "one@example.org, two@example.org",
]


@pytest.mark.parametrize("text", FORMS)
def test_a_secret_is_known_by_its_form_wherever_it_stands(text: str) -> None:
    assert SECRET not in hide_secrets(text)
    assert SECRET not in hide_secrets(f"asked for '{text}' and found nothing; give another")
    assert hide_secrets(hide_secrets(text)) == hide_secrets(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_is_left_as_it_is(text: str) -> None:
    assert hide_secrets(text) == text


def test_the_rest_of_an_address_is_still_shown() -> None:
    assert hide_secrets(f"thrift://u:{SECRET}@one:9083,thrift://two:2") == "thrift://u:***@one:9083,thrift://two:2"
    assert hide_secrets(f"jdbc:hive2://h:1/d;password={SECRET};ssl=true") == "jdbc:hive2://h:1/d;password=***;ssl=true"


@pytest.mark.parametrize("text", FORMS)
def test_options_show_no_secret_by_form(text: str) -> None:
    name = "hoodie.datasource.hive_sync.jdbcurl"
    assert SECRET not in str(redact({name: text, "hoodie.write.lock.hivemetastore.uris": text}))
    assert SECRET not in repr(Options({name: text}))
    assert SECRET.encode() not in pickle.dumps(Options({name: text}))


@pytest.mark.parametrize("name", NAMES)
def test_options_show_no_secret_by_name(name: str) -> None:
    assert redact({name: SECRET}) == {name: "***"}
    assert SECRET.encode() not in pickle.dumps(Options({name: SECRET}))


@pytest.mark.parametrize("text", FORMS)
def test_no_error_shows_a_secret(text: str) -> None:
    error = HudiLocksError(f"asked for {text}", asked=text, keys=(text, "x"), by_name={"url": text})
    for each in (error, pickle.loads(pickle.dumps(error))):
        assert SECRET not in f"{each} {each!r} {each.facts} {each.asked} {vars(each)}"
    assert SECRET.encode() not in pickle.dumps(error)


def test_a_refused_value_of_a_secret_key_is_not_shown() -> None:
    """The bounds of a value are told without it, as its type is."""
    given = {"hoodie.write.lock.client.num_retries": f"redis://:{SECRET}@x"}
    with pytest.raises(ConfigError) as caught:
        check_options(given)
    assert SECRET not in str(caught.value)


def test_pickled_options_say_what_was_left_out_of_them() -> None:
    options = Options({"hoodie.table.name": "t", "hoodie.aws.secret.key": SECRET})
    copy = pickle.loads(pickle.dumps(options))
    assert copy["hoodie.table.name"] == "t"
    assert set(copy) == set(options)
    assert redact(copy) == redact(options)
    with pytest.raises(ConfigError, match="left out when these options were pickled") as caught:
        _ = copy["hoodie.aws.secret.key"]
    assert caught.value.key == "hoodie.aws.secret.key"
    assert (copy | {"hoodie.aws.secret.key": SECRET})["hoodie.aws.secret.key"] == SECRET
    assert pickle.loads(pickle.dumps(copy))["hoodie.table.name"] == "t"


def test_a_log_record_of_the_package_shows_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    """What a lock service says may repeat the address that it was asked at."""
    from hudi_locks.redaction import open_log

    log = open_log("hudi_locks.tests.secrets")
    with caplog.at_level(logging.DEBUG):
        log.warning("%s cannot be reached: %s", f"thrift://u:{SECRET}@h:1", OSError(f"password={SECRET}"))
        try:
            raise OSError(f"password={SECRET}")
        except OSError:
            log.exception("failed")
    assert SECRET not in caplog.text
    assert "thrift://u:***@h:1 cannot be reached: password=***" in caplog.text
    assert "Traceback" in caplog.text


@pytest.mark.timeout(60)
def test_a_long_text_takes_no_time_that_grows_with_its_square() -> None:
    """Such as the content of a file, within what another library says."""
    text = "a" * 100_000
    assert hide_secrets(text) == text
    assert hide_secrets(f"{text}.password={SECRET}") == f"{text}.password=***"
