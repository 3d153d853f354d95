"""Each key of JVM Hudi is honoured, refused, or has no effect for a reason that is told."""

from __future__ import annotations

import warnings

import pytest
from hudi_keys import read_golden_keys

from hudi_locks.config import UNUSED_KEYS, Options, check_options, check_writer_options, find_key, find_unused
from hudi_locks.errors import ConfigError, NoEffectWarning

NAMES = sorted(read_golden_keys())


def test_each_key_of_hudi_is_known() -> None:
    assert len(NAMES) > 700
    assert [name for name in NAMES if find_key(name) is None and find_unused(name) is None] == []


def test_each_is_said_of_once() -> None:
    assert [name for keys in UNUSED_KEYS for name in keys.names if find_key(name)] == []
    assert [name for name in NAMES if find_key(name) is None and len(list_homes(name)) > 1] == []


def list_homes(name: str) -> list[str]:
    return [keys.topic for keys in UNUSED_KEYS if name in keys.names or name.startswith(keys.prefixes)]


def test_each_unused_name_is_one_of_hudi() -> None:
    assert [name for keys in UNUSED_KEYS for name in keys.names if name not in NAMES] == []
    prefixes = [prefix for keys in UNUSED_KEYS for prefix in keys.prefixes]
    assert [prefix for prefix in prefixes if not any(name.startswith(prefix) for name in NAMES)] == []


@pytest.mark.parametrize("name", [name for name in NAMES if find_key(name) is None])
def test_an_unused_key_is_warned_of_with_its_reason(name: str) -> None:
    keys = find_unused(name)
    assert keys is not None
    with pytest.warns(NoEffectWarning) as heard:
        check_options({name: "x"})
    assert [str(one.message) for one in heard] == [f"{name} has no effect here: {keys.reason}"]


def test_no_key_of_hudi_is_taken_for_a_slip() -> None:
    assert [refusal for name in NAMES if "did you mean" in (refusal := find_refusal(name))] == []


def find_refusal(name: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            check_options({name: "1"}, is_writer=False)
        except ConfigError as error:
            return str(error)
    return ""


def test_a_slip_below_a_prefix_is_refused_still() -> None:
    with pytest.raises(ConfigError, match=r"did you mean hoodie.memory.merge.max.size\?"):
        check_options({"hoodie.memory.merge.max.sizes": "1"})


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("hoodie.clean.partition.filter.selected", "a,b", "a clean here looks into every partition"),
        ("hoodie.cleaner.partition.filter.regex", "a.*", "set hoodie.clean.automatic=false"),
        ("hoodie.precommit.validators", "org.acme.Check", "check the DataFrame before"),
        ("hoodie.prewrite.validators", "org.acme.Check", "check the DataFrame before"),
        ("hoodie.errortable.enable", "true", "divide the DataFrame before"),
        ("hoodie.write.ignore.failed", "true", "it would be lost"),
        ("hoodie.datasource.insert.dup.policy", "fail", "drop leaves such rows out"),
        ("hoodie.merge.allow.duplicate.on.inserts", "false", "use upsert"),
        ("hoodie.datasource.write.schema.allow.auto.evolution.column.drop", "true", "table.schema.drop"),
        ("hoodie.write.schema", "{}", "name and cast them there"),
        ("hoodie.allow.operation.metadata.field", "true", "write such a table by Flink"),
        ("hoodie.payload.update.on.same.ordering.field", "false", "the later one wins"),
        ("hoodie.index.class", "org.acme.Index", "hoodie.index.type"),
        ("hoodie.metaserver.enabled", "true", "below its folder alone"),
        ("hoodie.datasource.write.record.merger.impls", "org.acme.Merger", "hoodie.record.merge.mode"),
        ("hoodie.table.service.manager.enabled", "true", "hoodie.table.services.enabled=false"),
        ("hoodie.clustering.schedule.inline", "true", "hudi-locks cluster --schedule"),
        ("hoodie.datasource.view.type", "realtime", "hoodie.datasource.query.type"),
    ],
)
def test_what_would_change_rows_or_remove_files_is_refused(name: str, value: str, told: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}={value} is not offered: .*{told}") as caught:
        check_writer_options(Options({name: value}))
    assert caught.value.key == name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hoodie.datasource.insert.dup.policy", "NONE"),
        ("hoodie.precommit.validators", ""),
        ("hoodie.table.service.manager.enabled", "false"),
        ("hoodie.compact.inline.trigger.strategy", "NUM_COMMITS"),
        ("hoodie.datasource.write.record.merger.impls", "org.apache.hudi.common.model.HoodieAvroRecordMerger"),
    ],
)
def test_what_happens_anyway_may_be_asked_for(name: str, value: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_writer_options(check_options({name: value}))
