"""Two writers that change the columns at the same time: neither change is lost."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hudi_locks.format import CommitMetadata
from hudi_locks.transaction import Outcome
from hudi_locks.transaction.schemas import unite_schemas


def schema(**columns: str) -> str:
    fields = [{"name": name, "type": ["null", kind], "default": None} for name, kind in columns.items()]
    return json.dumps({"type": "record", "name": "t_record", "namespace": "hoodie.t", "fields": fields})


def columns_of(avro: str | None) -> dict[str, str]:
    assert avro is not None
    return {field["name"]: field["type"][1] for field in json.loads(avro)["fields"]}


@pytest.mark.parametrize(
    ("before", "now", "ours", "united"),
    [
        ({"a": "int"}, {"a": "int"}, {"a": "int", "b": "int"}, {"a": "int", "b": "int"}),
        ({"a": "int"}, {"a": "int", "c": "int"}, {"a": "int"}, {"a": "int", "c": "int"}),
        ({"a": "int"}, {"a": "int", "c": "int"}, {"a": "int", "b": "int"}, {"a": "int", "c": "int", "b": "int"}),
        ({"a": "int"}, {"a": "int", "b": "int"}, {"a": "int", "b": "int"}, {"a": "int", "b": "int"}),
        ({"a": "int"}, {"a": "long"}, {"a": "int"}, {"a": "long"}),
        ({"a": "int"}, {"a": "int"}, {"a": "long"}, {"a": "long"}),
        ({}, {"a": "int"}, {"b": "int"}, {"a": "int", "b": "int"}),
    ],
)
def test_columns_added_by_either_stay(
    before: dict[str, str], now: dict[str, str], ours: dict[str, str], united: dict[str, str]
) -> None:
    found = unite_schemas(schema(**before), schema(**now), ours=schema(**ours))
    assert columns_of(found.schema) == united
    assert not found.clashes


@pytest.mark.parametrize(
    ("before", "now", "ours"),
    [
        ({"a": "int"}, {"a": "int", "b": "int"}, {"a": "int", "b": "string"}),
        ({"a": "int"}, {"a": "long"}, {"a": "double"}),
        ({}, {"b": "int"}, {"b": "string"}),
    ],
)
def test_a_column_that_both_changed_in_different_ways_clashes(
    before: dict[str, str], now: dict[str, str], ours: dict[str, str]
) -> None:
    assert unite_schemas(schema(**before), schema(**now), ours=schema(**ours)).clashes


def with_schema(metadata: CommitMetadata, **columns: str) -> CommitMetadata:
    return replace(metadata, extra={"schema": schema(**columns)})


def newest_columns(harness: Any) -> dict[str, str]:
    newest = harness.timeline().completed_between("")[-1]
    data = harness.storage.read(harness.timeline().paths[newest])
    return columns_of(CommitMetadata.decode(data, "newest").schema)


def test_the_later_commit_records_the_columns_of_both(harness: Any) -> None:
    first, second = harness.open(), harness.open()
    one, two = first.begin("commit", "UPSERT"), second.begin("commit", "UPSERT")
    assert one.publish(with_schema(harness.write(one, "g"), a="int", b="int")).is_committed
    assert two.publish(with_schema(harness.write(two, "h"), a="int", c="int")).is_committed
    assert newest_columns(harness) == {"a": "int", "b": "int", "c": "int"}


def test_a_clash_aborts_the_later_write_and_says_which_column(harness: Any) -> None:
    first, second = harness.open(), harness.open()
    one, two = first.begin("commit", "UPSERT"), second.begin("commit", "UPSERT")
    assert one.publish(with_schema(harness.write(one, "g"), a="int", b="int")).is_committed
    result = two.publish(with_schema(harness.write(two, "h"), a="int", b="string"))
    assert result.outcome is Outcome.ABORTED
    assert result.conflict is not None
    assert result.conflict.other == one.instant
    assert "b" in result.conflict.columns
    assert "column b" in str(result.conflict)
    assert "give them other names" in result.conflict.advice
    assert newest_columns(harness) == {"a": "int", "b": "int"}


def test_without_schema_resolution_the_columns_of_the_later_commit_stand(harness: Any) -> None:
    off = {"hoodie.write.concurrency.schema.conflict.resolution.enable": "false"}
    first, second = harness.open(), harness.open(**off)
    one, two = first.begin("commit", "UPSERT"), second.begin("commit", "UPSERT")
    assert one.publish(with_schema(harness.write(one, "g"), a="int", b="int")).is_committed
    assert two.publish(with_schema(harness.write(two, "h"), a="int", b="string")).is_committed
    assert newest_columns(harness) == {"a": "int", "b": "string"}
